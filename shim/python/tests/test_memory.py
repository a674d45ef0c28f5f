"""What workers inherit or are sent: extents of Python objects, how much of them is copied, what is pickled."""
import multiprocessing
import os
import unittest

from harness import HookTest, OLD

# Reads its records as the arguments say, and prints the worker's growth as the kernel tells it.
PROGRAM = """
import gc

def rollup():
    with open("/proc/self/smaps_rollup") as f:
        found = {line.split(":")[0]: int(line.split()[1]) << 10 for line in list(f)[1:]}
    return found["Private_Dirty"] - found["Anonymous"]

class Recorded(Dataset):
    def __init__(self, records):
        self.records = records
    def __len__(self):
        return 64
    def __getitem__(self, i):
        if READ:
            for r in self.records[i::64]:
                r["path"] if type(r) is dict else r
        return i

def begin(worker):
    global at_begin
    at_begin = rollup()

def collate(samples):
    return torch.utils.data.get_worker_info().id, rollup() - at_begin

def run(records, epochs=1, **options):
    gc.disable()
    copied = {}
    for epoch in range(epochs):
        for worker, bytes_ in DataLoader(Recorded(records), batch_size=8, num_workers=2, multiprocessing_context="fork",
                worker_init_fn=begin, collate_fn=collate, **options):
            copied[worker] = bytes_
        print(*(copied[w] for w in sorted(copied)))
"""
RECORDS = """
READ = %r
if __name__ == "__main__":
    run([{"path": "/data/%%d.jpg" %% i, "label": i} for i in range(300000)])
"""


def readable():
    try:
        with open("/proc/self/pagemap", "rb") as f:
            return len(f.read(8)) == 8 and os.path.exists("/proc/self/smaps_rollup")
    except OSError:
        return False


def workers(rings):
    return [r for r in rings if any(w.phase == "ready" for w in r.of("worker"))]


@unittest.skipUnless(readable(), "/proc/self/pagemap cannot be read")
class Copied(HookTest):
    def record(self, text, **options):
        code, out, err = self.run_program(PROGRAM + text, **options)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return out

    def test_what_a_worker_copies_is_what_the_kernel_says(self):
        out = self.record(RECORDS % True)
        main = self.main_ring()
        extent, = main.of("extent")
        self.assertEqual((extent.loader, extent.pass_, extent.path, vars(extent)["class"], extent.items),
                         (1, 0, "dataset.records", "list", 300000))
        self.assertEqual(len(extent.starts), len(extent.counts))
        self.assertGreater(extent.sampled, 4000)
        real = [int(n) for n in out.split()]
        self.assertEqual(len(workers(self.rings())), 2)
        for ring in workers(self.rings()):
            rows = [p for p in ring.of("private") if p.extent == extent.extent]
            self.assertEqual((rows[0].when, rows[0].fetch, rows[-1].when, rows[-1].fetch), ("begin", 0, "end", 4))
            self.assertEqual({p.parent for p in rows}, {main.pid})
            copied = rows[-1].private - rows[0].private
            self.assertLess(rows[0].private, 4 << 20, "right after the fork nothing is copied")
            self.assertAlmostEqual(copied / real[rows[0].worker], 1, delta=0.2)
            self.assertGreater(copied, 20 << 20)
            self.assertLess(copied, rows[-1].present)
            self.assertLess(0.7 * copied, extent.plateau)
            self.assertGreater(2 * copied, extent.plateau)
            whole = [p for p in ring.of("private") if p.extent == 0]
            self.assertEqual([(p.present, p.private) for p in whole], [(p.present, p.private) for p in rows])

    def test_what_is_not_read_is_not_copied(self):
        self.record(RECORDS % False)
        for ring in workers(self.rings()):
            last = ring.of("private")[-1]
            self.assertGreater(last.present, 40 << 20)
            self.assertLess(last.private, 6 << 20)

    def test_each_pass_of_persistent_workers_has_its_end(self):
        if OLD:
            self.skipTest("persistent workers of torch 1.8")
        self.record("""
READ = True
if __name__ == "__main__":
    import gc
    gc.disable()
    data = DataLoader(Recorded([str(i) for i in range(100000)]), batch_size=8, num_workers=2, multiprocessing_context="fork",
            persistent_workers=True)
    for epoch in range(3):
        for batch in data:
            pass
    del data
""")
        self.assertEqual(len(self.main_ring().of("extent")), 1)
        found = workers(self.rings())
        self.assertEqual(len(found), 2)
        for ring in found:
            rows = [(p.pass_, p.when, p.fetch) for p in ring.of("private") if p.extent == 0 and p.when != "window"]
            self.assertEqual(rows, [(n, when, 4 * (when == "end")) for n in range(3) for when in ("begin", "end")])

    def test_looks_are_few_where_they_cost_much(self):
        self.change("pagemap", "_SHARE = 10**9\n")
        self.record(RECORDS % True)
        for ring in workers(self.rings()):
            self.assertEqual([p.when for p in ring.of("private") if p.extent == 0], ["begin", "end"])

    def test_looks_come_at_ever_longer_distances(self):
        self.change("pagemap", "_SHARE = 0\n")
        self.record("""
READ = False
if __name__ == "__main__":
    for batch in DataLoader(Recorded([str(i) for i in range(100000)]), batch_size=1, num_workers=1, multiprocessing_context="fork"):
        pass
""")
        ring, = workers(self.rings())
        self.assertEqual([p.fetch for p in ring.of("private") if p.extent == 0 and p.when == "window"], [1, 2, 4, 8, 16, 32, 64])

    def test_without_pagemap_there_are_no_rows(self):
        self.change("pagemap", "_PAGEMAP = '/proc/self/nothing'\n")
        self.record(RECORDS % True)
        self.assertEqual(len(self.main_ring().of("extent")), 1)
        self.assertEqual([p for r in self.rings() for p in r.of("private")], [])


class Extents(HookTest):
    """Which containers are found, and how they are called."""

    def found(self, text):
        for module in ("extents", "addresses"):
            self.change(module, "MAX_NS = 1 << 60")  # a slow machine has time enough
        program = """
            import collections, functools
            from torch.utils.data import ConcatDataset, Subset, TensorDataset
            N = 5000
            def texts(n=N):
                return ["/data/%09d.jpg" % i for i in range(n)]
            class Data(Dataset):
                def __init__(self, **attributes):
                    self.__dict__.update(attributes)
                def __len__(self):
                    return 8
                def __getitem__(self, i):
                    return i
            def load(data, **options):
                options.setdefault("multiprocessing_context", "fork")
                for batch in DataLoader(data, batch_size=4, sampler=None if isinstance(data, IterableDataset) else range(8),
                        **dict({"num_workers": 1}, **options)):
                    pass
            """
        program = "\n".join(line[12:] for line in program.splitlines()) + "\n"
        code, out, err = self.run_program(program + "\n".join(line[12:] for line in text.splitlines()))
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return [(e.loader, e.path, vars(e)["class"].split(".")[-1], e.items) for e in self.main_ring().of("extent")]

    def test_of_every_kind_and_wherever_they_hang(self):
        self.assertEqual(self.found("""
            TABLE = texts()
            class Named(Data):
                cache = {i: str(i) for i in range(N)}
                def __getitem__(self, i):
                    return len(TABLE)
            class Slotted:
                __slots__ = ("path",)
                def __init__(self, path):
                    self.path = path
            class Plain:
                def __init__(self, path):
                    self.path = path
            class Records(list):
                pass
            class Stream(IterableDataset):
                def __init__(self):
                    self.urls = texts()
                def __iter__(self):
                    return iter(range(8))
            def collate(samples, vocabulary):
                return len(vocabulary)
            if __name__ == "__main__":
                load(Data(samples=[(t, i % 10) for i, t in enumerate(texts())], classes=["c%d" % i for i in range(10)],
                        targets=[i % 10 for i in range(N)]))
                load(Data(columns={"path": texts(), "box": [[i, float(i)] for i in range(N)]}))
                load(Subset(Data(records=texts()), list(range(0, N, 2))))
                load(ConcatDataset([Data(x=texts()), Data(y=texts())]))
                load(Named())
                load(Data(a=[Slotted(t) for t in texts()], b=[Plain(t) for t in texts(4000)]))
                load(Data(a=collections.OrderedDict((t, 1) for t in texts()), b=collections.deque(texts(4000)), c=set(texts(3000)),
                        d=Records(texts(2000))))
                load(Data(o=np.array(texts(), dtype=object)))
                load(Stream())
                load(Data(), collate_fn=functools.partial(collate, vocabulary=texts()))
                load(texts())
                load(Data(frames=[texts(200) for i in range(200)]))
            """), [
            (1, "dataset.samples", "list", 5000),
            (2, "dataset.columns['path']", "list", 5000), (2, "dataset.columns['box']", "list", 5000),
            (3, "dataset.dataset.records", "list", 5000), (3, "dataset.indices", "list", 2500),
            (4, "dataset.datasets[0].x", "list", 5000), (4, "dataset.datasets[1].y", "list", 5000),
            (5, "dataset.cache", "dict", 5000), (5, "__main__.TABLE", "list", 5000),
            (6, "dataset.a", "list", 5000), (6, "dataset.b", "list", 4000),
            (7, "dataset.a", "OrderedDict", 5000), (7, "dataset.b", "deque", 4000), (7, "dataset.c", "set", 3000),
            (7, "dataset.d", "Records", 2000),
            (8, "dataset.o", "ndarray", 5000),
            (9, "dataset.urls", "list", 5000),
            (10, "collate_fn.keywords['vocabulary']", "list", 5000),
            (11, "dataset", "list", 5000),
            (12, "dataset.frames", "list", 200)])

    def test_what_is_no_container_of_many_objects_is_left_alone(self):
        self.assertEqual(self.found("""
            if __name__ == "__main__":
                load(Data(a=np.arange(10**6), b=torch.arange(10**6), c=b"x" * 10**6, d="x" * 10**6, e=range(10**6), f=np.array(["a"] * N),
                        g=np.zeros(N, dtype="U20")))
                load(Data(a=[None] * N, b=[i % 100 for i in range(N)], c=[("same",)] * N, d={i: None for i in range(200)}, e=texts(999)))
                load(TensorDataset(torch.zeros(N)))
            """), [])

    def test_many_alike_are_one(self):
        self.assertEqual(self.found("""
            if __name__ == "__main__":
                load(ConcatDataset([Data(records=texts()) for i in range(20)]))
            """), [(1, "dataset.datasets[*].records", "list", 100000)])

    def test_written_once_for_a_loader_and_its_container(self):
        self.assertEqual(self.found("""
            if __name__ == "__main__":
                data = Data(records=texts())
                loader = DataLoader(data, num_workers=1, multiprocessing_context="fork")
                for epoch in range(3):
                    for batch in loader:
                        pass
                data.records = texts(N + 1)
                for batch in loader:
                    pass
                load(data)
            """), [(1, "dataset.records", "list", 5000), (1, "dataset.records", "list", 5001), (2, "dataset.records", "list", 5001)])

    def test_only_for_workers_that_are_forked(self):
        self.assertEqual(self.found("""
            if __name__ == "__main__":
                load(Data(a=texts()), num_workers=0, multiprocessing_context=None)
                load(Data(a=texts()), multiprocessing_context="spawn")
                load(Data(a=texts()), multiprocessing_context="forkserver")
            """), [])
        self.assertEqual([p for r in self.rings() for p in r.of("private")], [])

    def test_nothing_of_the_program_is_called(self):
        self.assertEqual(self.found("""
            class Loud:
                def __init__(self, n):
                    object.__setattr__(self, "n", n)
                def fail(self, *args):
                    raise SystemExit("called")
                __getattr__ = __getattribute__ = __len__ = __iter__ = __eq__ = __bool__ = __repr__ = fail
                __sizeof__ = __reduce__ = __getitem__ = fail
                def __hash__(self):
                    if armed:
                        raise SystemExit("hashed")
                    return object.__hash__(self)
            class Quiet(list):
                def fail(self, *args):
                    raise SystemExit("called")
                __len__ = __iter__ = __getitem__ = __eq__ = __bool__ = fail
            armed = False
            if __name__ == "__main__":
                many = [Loud(i) for i in range(N)]
                keyed, ordered = {}, collections.OrderedDict()
                for i in range(64):
                    keyed[many[i]], ordered[many[i]] = texts(2), 1
                data = Data(a=many, c=Quiet(texts()), d=collections.defaultdict(lambda: 1 / 0, {i: Loud(i) for i in range(N)}))
                armed = True
                load(data)
            """), [(1, "dataset.a", "list", 5000), (1, "dataset.c", "Quiet", 5000), (1, "dataset.d", "defaultdict", 5000)])


class Pickled(HookTest):
    PROGRAM = """
        class Large(Dataset):
            def __init__(self):
                self.records = [{"path": "/data/%%d.jpg" %% i} for i in range(20000)]
            def __len__(self):
                return 8
            def __getitem__(self, i):
                return i
        if __name__ == "__main__":
            import multiprocessing
            multiprocessing.set_start_method(%r)
            process = multiprocessing.Process(target=print, args=("a" * 1000000 if False else "",))  # no worker of a loader
            process.start(); process.join()
            loader = DataLoader(Large(), num_workers=2, batch_size=4)
            for epoch in range(2):
                for batch in loader:
                    pass
        """

    def begins(self, method):
        code, out, err = self.run_program(self.PROGRAM % method)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        found = [w for w in self.main_ring().of("worker") if w.phase == "begin"]
        self.assertEqual([(w.pass_, w.worker) for w in found], [(0, 0), (0, 1), (1, 0), (1, 1)])
        return found

    def test_every_worker_is_sent_the_dataset(self):
        for method in ("spawn", "forkserver"):
            for w in self.begins(method):
                self.assertGreater(w.pickled_bytes, 20000 * 15)
                self.assertLess(w.pickled_bytes, 20000 * 60)
                self.assertGreater(w.pickle_ns, 0)
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))

    @unittest.skipUnless("fork" in multiprocessing.get_all_start_methods(), "no fork")
    def test_forked_workers_are_sent_nothing(self):
        self.assertEqual({(w.pickled_bytes, w.pickle_ns) for w in self.begins("fork")}, {(0, 0)})

    def test_what_cannot_be_pickled_fails_as_ever(self):
        program = """
            class Bad(Noise):
                def __init__(self):
                    super().__init__()
                    self.f = lambda: 1
            if __name__ == "__main__":
                for attempt in range(2):
                    try:
                        for batch in DataLoader(Bad(), num_workers=2, multiprocessing_context="spawn"):
                            pass
                    except Exception as e:
                        print(type(e).__name__, str(e)[:40])
            """
        self.assertIn("Can't pickle local object", self.run_both(program))


# Processes that a program forks itself. kept() is what the parent is still seen to hold, of which processes.
FORKING = """
import multiprocessing
import torch.multiprocessing
N = 5000
def texts(n=N, of="data"):
    return ["/%s/%09d.jpg" % (of, i) for i in range(n)]
class Data(Dataset):
    def __init__(self, records):
        self.records = records
    def __len__(self):
        return 64
    def __getitem__(self, i):
        return sum(map(len, self.records[i::64]))
fork = multiprocessing.get_context("fork")
def use(*given, **named):
    pass
def run(process):
    process.start()
    process.join()
"""


@unittest.skipUnless(readable(), "/proc/self/pagemap cannot be read")
class Forked(HookTest):
    def record(self, text, **options):
        for module in ("extents", "addresses"):
            self.change(module, "MAX_NS = 1 << 60")
        self.change("processes", "_FIRST = 1 << 60")
        code, out, err = self.run_program(FORKING + "\n".join(line[12:] for line in text.splitlines()), **options)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        self.main = self.first_ring()
        return out

    def first_ring(self):
        """The ring of the process that is nobody's child."""
        rings = self.rings()
        first, = [r for r in rings if r.of("process")[0].ppid not in [other.pid for other in rings]]
        return first

    def extents(self):
        return [(e.target, e.path, e.items) for e in self.main.of("extent") if e.loader == 0]

    def looks(self):
        """{pid: [(when, fetch, extent, present, private)]} of processes that are no workers."""
        found = {}
        for ring in self.rings():
            for p in ring.of("private"):
                if p.worker == -1 and p.when != "held":
                    self.assertEqual(p.parent, self.main.pid)
                    found.setdefault(ring.pid, []).append((p.when, p.fetch, p.extent, p.present, p.private))
        return found

    def held(self):
        """The paths of what the parent held as its children ended, in the order of their ends."""
        paths = {e.extent: e.path for e in self.main.of("extent")}
        return [paths[p.extent] for p in self.main.of("private") if p.when == "held"]

    def test_what_start_processes_leaves_to_its_processes(self):
        self.record("""
            def train(rank, dataset, epochs):
                for epoch in range(epochs):
                    for batch in DataLoader(dataset, batch_size=8):
                        pass
            def main():
                dataset = Data(texts(200000))
                torch.multiprocessing.start_processes(train, args=(dataset, 1), nprocs=2, start_method="fork")
            if __name__ == "__main__":
                main()
            """)
        self.assertEqual(self.extents(), [("__main__.train", "args[0].records", 200000)])
        self.assertEqual(self.held(), 2 * ["args[0].records"])
        self.assertEqual(len(self.looks()), 2)
        for rows in self.looks().values():
            rows = [r for r in rows if r[2] != 0]
            self.assertEqual((rows[0][:2], rows[-1][:2]), (("begin", 0), ("end", 8)))
            self.assertLess(rows[0][4], 4 << 20, "right after the fork nothing is copied")
            self.assertGreater(rows[-1][4], 12 << 20)

    def test_what_is_not_read_is_not_copied(self):
        self.record("""
            if __name__ == "__main__":
                records = texts(200000)
                run(fork.Process(target=use, args=(records,)))
            """)
        rows, = self.looks().values()
        self.assertEqual([r[0] for r in rows if r[2]], ["begin", "end"])
        self.assertLess(rows[-1][4], 6 << 20)
        self.assertEqual(self.held(), ["args[0]"])

    def test_looks_come_at_ever_longer_distances(self):
        self.change("pagemap", "_SHARE = 0\n")
        self.record("""
            def train(data):
                for batch in DataLoader(data, batch_size=4):
                    pass
            if __name__ == "__main__":
                data = Data(texts())
                run(fork.Process(target=train, args=(data,)))
            """)
        rows, = self.looks().values()
        self.assertEqual([r[:2] for r in rows if r[2] == 0],
                         [("begin", 0)] + [("window", n) for n in (1, 2, 4, 8, 16)] + [("end", 16)])

    def test_wherever_it_hangs(self):
        self.record("""
            import functools
            TABLE = texts()
            OTHER = texts(4000)
            def reads():
                return len(TABLE)
            class Trainer:
                def __init__(self):
                    self.rows = texts()
                def fit(self):
                    pass
            class Reader(fork.Process):
                def __init__(self, rows):
                    super().__init__()
                    self.rows = rows
                def run(self):
                    return len(OTHER)
            if __name__ == "__main__":
                trainer, given = Trainer(), texts()
                run(fork.Process(target=use, args=(1, given), kwargs={"names": texts()}))
                run(fork.Process(target=reads))
                run(fork.Process(target=trainer.fit))
                run(fork.Process(target=functools.partial(use, given)))
                run(fork.Process(target=lambda: given))
                run(Reader(given))
            """)
        self.assertEqual(self.extents(), [
            ("__main__.use", "args[1]", 5000), ("__main__.use", "kwargs['names']", 5000),
            ("__main__.reads", "__main__.TABLE", 5000),
            ("__main__.Trainer.fit", "self.rows", 5000),
            ("__main__.use", "use.args[0]", 5000),
            ("__main__.<lambda>", "__main__.given", 5000),
            ("__main__.Reader", "self.rows", 5000), ("__main__.Reader", "__main__.OTHER", 4000)])
        self.assertEqual(self.held(), ["args[1]", "__main__.TABLE", "self.rows", "use.args[0]", "__main__.given", "self.rows", "__main__.OTHER"])
        self.assertEqual([[r[0] for r in rows if r[2] == 0] for rows in self.looks().values()], 6 * [["begin", "end"]])

    def test_a_parent_that_lets_go_holds_nothing(self):
        self.record("""
            import time
            def shards():
                started = []
                for k in range(3):
                    rows = texts(of="shard%d" % k)  # often where those before the last lay
                    started.append(fork.Process(target=time.sleep, args=(0.5,), kwargs={"rows": rows}))
                    started[-1].run = lambda: time.sleep(0.5)
                    started[-1].start()
                del rows
                for process in started:
                    process.join()
            def inline():
                run(fork.Process(target=use, args=(texts(),)))
            def deletes():
                rows = texts()
                process = fork.Process(target=use, args=(rows,))
                process.start()
                del rows
                process.join()
            def again():
                rows = texts(of="first")
                process = fork.Process(target=use, args=(rows,))
                process.start()
                del rows
                rows = texts(of="again")
                process.join()
            if __name__ == "__main__":
                shards()
                inline()
                deletes()
                again()
            """)
        self.assertEqual([e[2] for e in self.extents()], 6 * [5000])
        self.assertEqual(len(self.looks()), 6)
        self.assertEqual(self.held(), [])

    def test_a_parent_that_waits_in_another_thread(self):
        self.record("""
            def wait():
                run(fork.Process(target=use, args=(TABLE,)))
            if __name__ == "__main__":
                TABLE = texts()
                thread = threading.Thread(target=wait)
                thread.start()
                thread.join()
            """)
        self.assertEqual(self.held(), ["args[0]"])

    def test_callers_keep_their_own_dictionaries_of_variables(self):
        out = self.record("""
            def main():
                mine = locals()
                rows = texts()
                process = fork.Process(target=use, args=(rows,))
                run(process)
                print(sorted(mine), process.exitcode)
            if __name__ == "__main__":
                main()
                print("texts" in globals())
            """)
        self.assertEqual(out.split("\n")[:2], ["[] 0", "True"])

    def test_processes_that_inherit_nothing(self):
        self.record("""
            import concurrent.futures
            def length(i):
                return len(TABLE)
            TABLE = []
            if __name__ == "__main__":
                TABLE = texts()
                run(multiprocessing.get_context("spawn").Process(target=use, args=(texts(),)))
                with fork.Pool(1) as pool:
                    pool.map(length, [1])
                with concurrent.futures.ProcessPoolExecutor(1, mp_context=fork) as pool:
                    list(pool.map(length, [1]))
                for batch in DataLoader(Data(texts()), num_workers=1, multiprocessing_context="fork"):
                    pass
                run(fork.Process(target=use, args=(np.arange(10**6), list(range(100)))))
            """)
        self.assertEqual(self.extents(), [])
        self.assertEqual(self.looks(), {})
        self.assertEqual(self.held(), [])

    def test_one_that_is_killed_has_looked_before(self):
        self.record("""
            def ends(rows):
                os._exit(0)
            if __name__ == "__main__":
                rows = texts()
                run(fork.Process(target=ends, args=(rows,)))
            """)
        rows, = self.looks().values()
        self.assertEqual([r[0] for r in rows if r[2]], ["begin"])

    def test_every_part_of_it_may_fail(self):
        program = FORKING + """
class Reader(fork.Process):
    def run(self):
        print(len(rows), flush=True)
if __name__ == "__main__":
    rows = texts()
    run(fork.Process(target=print, args=(rows[0], rows[1:1])))
    run(Reader())
    torch.multiprocessing.start_processes(use, args=(rows,), nprocs=1, start_method="fork")
    process = fork.Process(target=sys.exit, args=(3,))
    run(process)
    print(process.exitcode)
"""
        plain = self.run_program(program, hooked=False)
        self.assertEqual(plain[0], 0, plain[2])
        self.assertEqual(self.run_program(program), plain)
        path = self.module("processes")
        with open(path) as f:
            whole = f.read()
        for name in ("being_forked", "before_fork", "after_fork", "ended", "_held", "Child.look"):
            self.assertIn("def %s(" % name.split(".")[-1], whole)
            self.change("processes", "def _planted(*args, **kwargs):\n    raise ValueError('planted')\n\n\n%s = _planted\n" % name)
            self.assertEqual(self.run_program(program), plain, name)
            with open(path, "w") as f:
                f.write(whole)

    def test_many_forks_are_not_all_looked_at(self):
        self.change("processes", "_SHARE = 1 << 40")
        code, out, err = self.run_program(FORKING + """
if __name__ == "__main__":
    rows = texts()
    for i in range(12):
        run(fork.Process(target=use, args=(rows,)))
""")
        self.assertEqual(code, 0, err)
        self.main = self.first_ring()
        self.assertEqual(len(self.looks()), 8)
