"""What is written for each kind of loader, compared with what the program itself prints."""
import json
import os
import shutil
import sys
import unittest

from harness import PYTHON, HookTest, layouts, versions

# Prints each batch's indices; the worker prints its own generator's state around each fetch to a file of its own.
PROGRAM = """
class Told(Noise):
    def __getitem__(self, i):
        x = super().__getitem__(i)
        with open("states.%d" % os.getpid(), "a") as f:
            s = self.rng.bit_generator.state
            m = np.random.get_state()
            r = random.getstate()[1]
            f.write("%d %d %s %d %s %d\\n" % (i, s["state"]["state"], m[1][1:5].tobytes().hex(), m[2],
                    np.array(r[1:5], dtype="<u4").tobytes().hex(), r[-1]))
        return x, i

def pick(samples):
    return torch.stack([s[0] for s in samples]), [s[1] for s in samples]

class Both(DataLoader):
    def __iter__(self):
        for x, order in super().__iter__():
            orders.append(order)
            yield x

orders = []
if __name__ == "__main__":
    how = sys.argv[1] if len(sys.argv) > 1 else HOW
    torch.manual_seed(1); random.seed(1); np.random.seed(1)
    options = {} if how == "none" else {"num_workers": 2, "multiprocessing_context": "fork" if how == "persistent" else how,
            "persistent_workers": how == "persistent"}
    fit(Both(Told(), batch_size=4, shuffle=True, collate_fn=pick, **options))
    import json
    print(json.dumps(orders))
"""

CLOCK = """
clock = 10**12


def mono():
    global clock
    clock += 1000
    return clock


cpu = mono
"""


class Records(HookTest):
    def test_a_slower_hook_says_so(self):
        """What the hook says that it costs rises with what it costs, in the workers and in the main process. By a clock of the
        test's own, which goes on by 1 us with each look at it: the machine's also counts what others do."""
        self.change("ring", CLOCK)
        for how in ("fork", "none"):
            cost = []
            for slower in (False, True):
                for name in os.listdir(self.spool):
                    os.unlink(os.path.join(self.spool, name))
                if slower:
                    self.change("slots", """
                        _look = Slots.look
                        def _slow(self, *args):
                            ring.clock += 4000000
                            _look(self, *args)
                        Slots.look = _slow
                        """)
                self.record(how)
                readers = [r for r in self.rings() if r.of("fetch")]
                self.assertEqual(len(readers), 1 if how == "none" else 4)
                cost.append(min(r.hook_ns for r in readers))
            self.assertGreater(cost[1] - cost[0], 4000000 - 1000000, (how, cost))  # of the first fetch, which no other is like
            shutil.rmtree(os.path.join(self.hook, "dptrace_hook"))
            shutil.copytree(os.path.join(PYTHON, "dptrace_hook"), os.path.join(self.hook, "dptrace_hook"))
            self.change("ring", CLOCK)

    def test_nothing_is_held_back_from_a_program_that_is_killed(self):
        for end in ("os._exit(0)", "os.kill(os.getpid(), signal.SIGKILL)", "pass"):
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))
            self.run_program("""
                import signal
                class Small(Dataset):
                    def __len__(self):
                        return 120
                    def __getitem__(self, i):
                        return torch.zeros(1)
                if __name__ == "__main__":
                    loader = DataLoader(Small(), batch_size=1, num_workers=2, persistent_workers=True)
                    for batch in loader:
                        pass
                    again = iter(loader)
                    for _ in range(50):
                        next(again)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # torch's would raise
                    for worker in again._workers:
                        os.kill(worker.pid, signal.SIGKILL)
                    %s
                """ % end)
            self.assert_no_errors()
            main = self.main_ring()
            ended = [n.status & 255 for n in main.of("next")].count(layouts.STATUS_VALUES.index("exit"))
            self.assertEqual(ended, 1 if end == "pass" else 0)
            self.assertEqual((len(main.of("next")) - ended, len(main.of("put"))), (120 + 1 + 50, 120 + 54), end)
            workers = [r for r in self.rings() if r.of("fetch")]
            self.assertEqual([len([f for f in r.of("fetch") if f.pass_ == 0]) for r in workers], [60, 60])

    def record(self, how):
        self.write("states", "")
        code, out, err = self.run_program("HOW = %r\n" % how + PROGRAM)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return json.loads(out.splitlines()[-1])

    def check(self, how):
        orders = self.record(how)
        main, workers = self.main_ring(), [r for r in self.rings() if any(w.phase == "ready" for w in r.of("worker"))]
        process = main.of("process")[0]
        self.assertEqual(process.python, "%d.%d.%d" % sys.version_info[:3])
        self.assertTrue(process.torch and process.numpy)
        loader = main.of("loader")[0]
        self.assertEqual((loader.num_workers, loader.batch_size, loader.persistent), (0 if how == "none" else 2, 4, how == "persistent"))
        self.assertEqual(loader.start_method, {"none": "", "persistent": "fork"}.get(how, how))
        self.assertTrue(loader.file.endswith("main.py"))
        self.assertIn("fit(Both(", open(loader.file).read().splitlines()[loader.line - 1])
        self.assertEqual([(p.pass_, p.phase, getattr(p, "end", "")) for p in main.of("pass")],
                         [(0, "begin", ""), (0, "end", "exhausted"), (1, "begin", ""), (1, "end", "exhausted")])
        self.assertEqual([p.delivered for p in main.of("pass") if p.phase == "end"], [6, 6])
        puts = sorted(main.of("put"), key=lambda p: (p.pass_, p.batch))
        self.assertEqual([p.indices for p in puts], orders)
        ok = [n for n in main.of("next") if n.status & 255 == 1]
        self.assertEqual([n.batch for n in ok], list(range(6)) * 2)
        self.assertTrue(all(n.status & 256 for n in ok), "gradients were enabled")
        self.assertEqual([n.steps for n in ok], list(range(12)))
        self.assertEqual([n.optimizer for n in ok], [0] + [1] * 11)
        self.assertEqual([n.status & 255 for n in main.of("next")].count(0), 2)
        self.assertEqual([o.class_ if hasattr(o, "class_") else vars(o)["class"] for o in main.of("optimizer")], ["torch.optim.sgd.SGD"])
        if how == "none":
            self.assertEqual(workers, [])
            self.fetches(main, 2, -1)
            return
        self.assertEqual(len(workers), 2 if how == "persistent" else 4)
        pids = {w.pid for w in main.of("worker") if w.phase == "begin"}
        self.assertEqual(pids, {w.pid for w in workers})
        self.assertEqual([w.exit_code for w in main.of("worker") if w.phase == "exit"], [0] * len(workers))
        for w in workers:
            self.assertEqual([e.phase for e in w.of("worker")], ["ready", "end"])
            self.assertEqual(w.flags, layouts.FLAG_ENDED, "ended in good order")
            self.fetches(w, 2 if how == "persistent" else 1, w.of("worker")[0].worker)
        # the seeds are base_seed + worker
        bases = {p.pass_: p.base_seed for p in main.of("pass") if p.phase == "begin"}
        for w in main.of("worker"):
            if w.phase == "begin":
                self.assertEqual([r.of("worker")[0].seed for r in workers if r.pid == w.pid], [bases[w.pass_] + w.worker])

    def fetches(self, ring, passes, worker):
        """Fetches, and the states around them as the program saw them."""
        fetches = ring.of("fetch")
        each = 6 if worker == -1 else 3
        self.assertEqual([(f.pass_, f.fetch, f.worker, f.samples) for f in fetches],
                         [(p, n, worker, 4) for p in range(passes) for n in range(each)])
        slots = {s.slot: s for s in ring.of("slot")}
        names = {s.path: n for n, s in slots.items()}
        self.assertLessEqual({"numpy", "random", "torch", "dataset.rng"}, set(names))
        own = slots[names["dataset.rng"]]
        self.assertEqual((own.kind, own.role, own.attr), ("pcg64", "dataset", "rng"))
        self.assertEqual(own.owner.split(".")[-1], "Told")
        told = [line.split() for line in open(self.work + "/states.%d" % ring.pid)]
        at = [t for t in told[3::4]]  # after each fetch's last sample
        after = {n: [s for s in ring.of("state") if s.slot == n and s.when == "after"] for n in slots}
        for name in ("dataset.rng", "numpy", "random", "torch"):
            self.assertEqual([(s.pass_, s.fetch) for s in after[names[name]]], [(p, n) for p in range(passes) for n in range(each)], name)
        self.assertEqual([int.from_bytes(s.raw[:16], "little") for s in after[names["dataset.rng"]]], [int(t[1]) for t in at])
        self.assertEqual([(s.id.hex(), s.pos) for s in after[names["numpy"]]], [(t[2], int(t[3])) for t in at])
        self.assertEqual([(s.id.hex(), s.pos) for s in after[names["random"]]], [(t[4], int(t[5])) for t in at])
        begin = [s for s in ring.of("state") if s.when == "begin" and s.pass_ == 0]
        self.assertEqual({len(s.raw) for s in begin if slots[s.slot].kind == "mt19937"}, {2500})

    def test_main_process(self):
        self.check("none")

    def test_fork(self):
        self.check("fork")

    def test_spawn(self):
        self.check("spawn")

    def test_forkserver(self):
        self.check("forkserver")

    def test_persistent(self):
        self.check("persistent")

    @unittest.skipUnless(versions("torchdata.stateful_dataloader") or versions("torchdata"), "torchdata is not installed")
    def test_stateful_data_loader(self):
        program = """
            import warnings
            warnings.simplefilter("ignore")
            from torchdata.stateful_dataloader import StatefulDataLoader
            if __name__ == "__main__":
                for workers in (2, 0):
                    fit(StatefulDataLoader(Noise(), batch_size=4, num_workers=workers,
                            **({"multiprocessing_context": "fork"} if workers else {})))
            """
        code, out, err = self.run_program(program)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        workers = [r for r in self.rings() if any(w.phase == "ready" for w in r.of("worker"))]
        self.assertEqual([len(w.of("fetch")) for w in workers], [3, 3, 3, 3])
        self.assertEqual(len(self.main_ring().of("fetch")), 12)
        self.assertEqual(len([n for n in self.main_ring().of("next") if n.status & 255 == 1]), 24)
        self.assertEqual([os.path.basename(r.file) for r in self.main_ring().of("loader")], ["main.py"] * 2)

    def test_made_by_a_library(self):
        """What a library makes, of a program's loader or by itself, is placed at the program's line."""
        code, out, err = self.run_program("""
            import os, sys
            os.makedirs("site-packages/anylib")
            with open("site-packages/anylib/__init__.py", "w") as f:
                f.write("from torch.utils.data import DataLoader\\n"
                        "def prepare(loader):\\n    return DataLoader(loader.dataset, batch_size=4)\\n")
            sys.path.insert(0, "site-packages")
            import anylib
            fit(anylib.prepare(DataLoader(Noise())), 1)
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        loader, = self.main_ring().of("loader")
        self.assertEqual(os.path.basename(loader.file), "main.py")
        self.assertEqual(os.path.basename(os.path.dirname(loader.stack.split(":")[0])), "anylib")

    def test_what_a_partial_or_a_method_calls_is_named(self):
        code, out, err = self.run_program("""
            import functools
            def seed(worker, rank=0):
                pass
            class Config:
                def seed(self, worker):
                    pass
                def __call__(self, worker):
                    pass
            class Late(functools.partial):
                pass
            for init in (seed, functools.partial(seed, rank=1), Late(Config().seed), Config().seed, Config(), functools.partial(Config())):
                fit(DataLoader(Noise(), batch_size=4, worker_init_fn=init), 1)
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        self.assertEqual([l.worker_init for l in self.main_ring().of("loader")], [
            "__main__.seed", "functools.partial of __main__.seed", "functools.partial of __main__.Config.seed", "__main__.Config.seed",
            "__main__.Config", "functools.partial of __main__.Config"])

    def test_a_pass_that_is_left_early(self):
        code, out, err = self.run_program("""
            if __name__ == "__main__":
                for workers in (0, 2):
                    loader = DataLoader(Noise(), batch_size=4, num_workers=workers, multiprocessing_context="fork" if workers else None)
                    for batch in loader:
                        break
                    fit(loader, 1)
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        ends = [(p.loader, p.pass_, p.end, p.delivered) for p in self.main_ring().of("pass") if p.phase == "end"]
        self.assertEqual(ends, [(1, 0, "dropped", 1), (1, 1, "exhausted", 6), (2, 0, "dropped", 1), (2, 1, "exhausted", 6)])

    def test_an_iterable_with_a_generator_among_its_locals(self):
        code, out, err = self.run_program("""
            class Stream(IterableDataset):
                def __iter__(self):
                    hidden = np.random.default_rng(2)
                    for i in range(12):
                        yield torch.from_numpy(hidden.normal(size=4))
            if __name__ == "__main__":
                fit(DataLoader(Stream(), batch_size=4, num_workers=2, multiprocessing_context="fork"), 1)
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        for ring in self.rings():
            if any(w.phase == "ready" for w in ring.of("worker")):
                found = [s for s in ring.of("slot") if "hidden" in s.path]
                self.assertEqual(len(found), 1)
                states = [(s.when, s.fetch) for s in ring.of("state") if s.slot == found[0].slot]
                self.assertEqual(states[:3], [("found", 0), ("after", 1), ("after", 2)])

    def test_generators_of_the_libraries_that_are_replaced(self):
        """Where they hang in a module's dictionary, and NumPy's in the RandomState that hangs there: at once, while Python does not look."""
        code, out, err = self.run_program("""
            class Replaces(Noise):
                def __getitem__(self, i):
                    if i == 41:
                        random._inst = random.Random(1)
                    if i == 43:
                        torch.default_generator = torch.Generator()
                    if i == 45:
                        np.random.mtrand._rand = np.random.RandomState(1)
                    if i == 47:
                        getattr(np.random, "set_bit_generator", lambda bits: None)(np.random.MT19937(2))
                    return torch.zeros(1)
            if __name__ == "__main__":
                print(hasattr(np.random, "set_bit_generator"))
                for batch in DataLoader(Replaces(60), batch_size=1, num_workers=1, multiprocessing_context="fork"):
                    pass
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        worker, = [r for r in self.rings() if any(w.phase == "ready" for w in r.of("worker"))]
        names = {s.slot: s.path for s in worker.of("slot")}
        found = [(names[s.slot], s.fetch) for s in worker.of("state") if s.when == "found"]
        self.assertEqual(found, [("random", 41), ("torch", 43), ("numpy", 45)] + [("numpy", 47)] * ("True" in out))

    def test_grad_and_steps_tell_evaluation(self):
        code, out, err = self.run_program("""
            if __name__ == "__main__":
                train, held_out = DataLoader(Noise(), batch_size=4), DataLoader(Noise(8), batch_size=4)
                fit(train, 1)
                with torch.no_grad():
                    for batch in held_out:
                        pass
            """)
        self.assertEqual(code, 0, err)
        nexts = [n for n in self.main_ring().of("next") if n.status & 255 == 1]
        self.assertEqual([bool(n.status & 256) for n in nexts if n.loader == 1], [True] * 6)
        self.assertEqual([(bool(n.status & 256), n.steps) for n in nexts if n.loader == 2], [(False, 6)] * 2)

    def test_two_optimizers_are_two(self):
        code, out, err = self.run_program("""
            if __name__ == "__main__":
                for trial in range(2):
                    fit(DataLoader(Noise(8), batch_size=4), 1)
            """)
        self.assertEqual(code, 0, err)
        self.assertEqual([o.optimizer for o in self.main_ring().of("optimizer")], [1, 2])


class Children(HookTest):
    def kinds(self):
        return sorted(r.of("process")[0].kind for r in self.rings() if r.of("process"))

    def states(self, kind):
        found = {}
        for ring in self.rings():
            if ring.of("process") and ring.of("process")[0].kind == kind:
                paths = {s.slot: s.path for s in ring.of("slot")}
                for s in ring.of("state"):
                    found.setdefault((ring.pid, paths[s.slot]), []).append((s.when, s.id.hex(), s.pos))
        return found

    def test_pool_and_executor_children_are_read_after_each_task(self):
        code, out, err = self.run_program("""
            import multiprocessing, concurrent.futures
            def work(i):
                x = np.random.uniform(size=3)
                s = np.random.get_state()
                return os.getpid(), s[1][1:5].tobytes().hex(), s[2]
            if __name__ == "__main__":
                np.random.seed(1)  # numpy >= 2.4 loads its generator at first use
                context = multiprocessing.get_context("fork")
                with context.Pool(1) as pool:
                    told = pool.map(work, range(3), chunksize=1)
                with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
                    told += list(executor.map(work, range(2)))
                import json
                print(json.dumps(told))
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        told, seen = json.loads(out), self.states("task")
        for pid in {t[0] for t in told}:
            self.assertEqual(seen[(pid, "numpy")][0][0], "fork")
            self.assertEqual([s[1:] for s in seen[(pid, "numpy")] if s[0] == "task"], [(t[1], t[2]) for t in told if t[0] == pid])

    def test_a_thread_pool_is_no_child(self):
        """Its workers are threads of the program's own process, its queue an object of C that nobody can dress."""
        code, out, err = self.run_program("""
            from multiprocessing.pool import ThreadPool
            if __name__ == "__main__":
                with ThreadPool(2) as pool:
                    print(pool.map(str, range(4)))
                fit(DataLoader(Noise(8), batch_size=4), 1)
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        self.assertNotIn("task", self.kinds())

    def test_a_bare_fork_and_a_process(self):
        code, out, err = self.run_program("""
            import multiprocessing
            def work():
                np.random.uniform(size=3)
            if __name__ == "__main__":
                np.random.seed(1)  # numpy >= 2.4 loads its generator at first use
                pid = os.fork()
                if not pid:
                    np.random.uniform(size=3)
                    sys.exit(0)
                os.waitpid(pid, 0)
                hard = os.fork()
                if not hard:
                    os._exit(0)
                os.waitpid(hard, 0)
                p = multiprocessing.get_context("fork").Process(target=work)
                p.start(); p.join()
                print(pid, hard, p.pid)
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        bare, hard, process = map(int, out.split())
        seen = self.states("fork")
        self.assertEqual([s[0] for s in seen[(bare, "numpy")]], ["fork", "end"])
        self.assertEqual([s[0] for s in seen[(hard, "numpy")]], ["fork"])
        self.assertEqual([s[0] for s in seen[(process, "numpy")]], ["fork", "end"])
        self.assertNotEqual(seen[(bare, "numpy")][0][1:], seen[(bare, "numpy")][1][1:])


class OpenCV(HookTest):
    """Its generator has no getter, so a stand-in module shows as much as the real one."""

    def test_seed_and_bytes_drawn(self):
        self.write("cv2.py", """
            import numpy
            def setRNGSeed(seed): pass
            def randu(dst, low, high): return dst
            def randn(dst, mean, stddev): return dst
            def randShuffle(dst, iterFactor=1.0): return dst
            """)
        code, out, err = self.run_program("""
            import cv2
            class Speckle(Noise):
                def __getitem__(self, i):
                    cv2.randu(np.zeros(4), 0, 1)
                    return torch.zeros(4)
            if __name__ == "__main__":
                cv2.setRNGSeed(7)
                fit(DataLoader(Speckle(8), batch_size=4, num_workers=2, multiprocessing_context="fork"), 1)
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        for ring in self.rings():
            if any(w.phase == "ready" for w in ring.of("worker")):
                slot, = [s.slot for s in ring.of("slot") if s.path == "cv2"]
                states = [(s.when, int.from_bytes(s.raw[:8], "little"), int.from_bytes(s.raw[8:], "little")) for s in ring.of("state")
                          if s.slot == slot]
                self.assertEqual(states, [("begin", 7, 0), ("after", 7, 128), ("end", 7, 128)])
