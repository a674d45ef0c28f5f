"""Values that hang on a dataset as passes begin: in persistent workers and their parent, and on the ranks of a run."""
import os
import unittest

from harness import HookTest

DATA = """
import functools
from torch.utils.data import Subset, ConcatDataset

class Jitter:
    def __init__(self):
        self.strength, self.unused = 0.5, 1
    def __call__(self, x):
        return x * self.strength

class Compose:
    def __init__(self, transforms):
        self.transforms = transforms
    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x

class Held(Dataset):
    fixed = 3
    def __init__(self, n=8):
        self.n, self.epoch, self.served, self.name = n, 0, 0, "train"
        self.long, self.huge, self.none, self.on = "x" * 65, 1 << 70, None, True
        self.transform = Compose([Jitter(), functools.partial(scale, config={"by": 2})])
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        self.served += 1
        return self.transform(torch.ones(4) * weigh(self) + getattr(self, "on"))

def weigh(data):
    return data.epoch + 1

def scale(x, config):
    return x * config["by"]

class Collate:
    def __init__(self):
        self.pad = 0
    def __call__(self, samples):
        return torch.stack(samples) + self.pad

def passes(loader, change=lambda n: None, n=3):
    for i in range(n):
        change(i)
        for batch in loader:
            pass
"""


class Persistent(HookTest):
    def record(self, program, how="fork"):
        code, out, err = self.run_program(DATA + "\nif __name__ == '__main__':\n    how = %r\n" % how + program)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        workers = [r for r in self.rings() if any(w.phase == "ready" for w in r.of("worker"))]
        told = [a for a in self.main_ring().of("attribute") if a.when != "begin"]  # those are modes.py's
        return told, [w.of("attribute") for w in workers]

    FUNCTIONS = """
    def weak(x):
        return x
    def strong(x):
        return 2 * x
    data = Held()
    def change(n):
        data.transform = strong if n else weak
        data.other = (lambda x: x) if n else (
            lambda x: -x)
    change(0)
    loader = DataLoader(data, batch_size=2, num_workers=1, persistent_workers=True)
    passes(loader, change, 2)
"""

    def test_functions(self):
        told, workers = self.record(self.FUNCTIONS)
        values = [(a.path, a.value.partition(" of line")[0]) for a in told if vars(a)["class"] == "builtins.function" and a.when == "iter"]
        self.assertEqual(values, [("collate_fn", "default_collate"), ("dataset.transform", "weak"), ("dataset.other", "<lambda>"),
                                  ("dataset.transform", "strong"), ("dataset.other", "<lambda>")])
        self.assertEqual([(a.path, a.value) for a in workers[0] if a.path == "dataset.transform"], [("dataset.transform", "weak")])

    RENEWED = """
    import numpy as np
    class Rows(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, i):
            return torch.ones(2) * self.rows[0]
    data = Rows()
    data.rows, data.grown, data.written = list(range(20)), {"a": [1]}, np.zeros(3000)
    data.filled, data.path, data.of = torch.zeros(9), "x" * 80, Jitter()
    data.names, data.steps, data.shared = ["%d.png" % i for i in range(500)], [scale], torch.zeros(3).share_memory_()
    data.none, data.mode, data.kept = None, "all", [Jitter(), {"a": 1}]
    def change(n):
        if n == 1:
            data.rows, data.none, data.kept = list(range(20)), [4], [Jitter(), {"a": 1}]
            data.grown["b"] = 2
            data.shared[0] = 1
        elif n == 2:
            data.rows = list(range(1, 21))
            data.filled[3] = 1
            data.written += 1
            data.names = data.names[::-1]
            data.steps[0] = weigh
            data.of = Compose([])
            data.mode, data.path = {1}, 5
            data.later = []
    passes(DataLoader(data, batch_size=4, num_workers=1, persistent_workers=True), change)
"""

    def test_renewed(self):
        told, workers = self.record(self.RENEWED)
        kinds = lambda a: (a.pass_, a.path, vars(a)["class"].split(".")[-1], a.items, a.value, a.read)  # noqa: E731
        found = [kinds(a) for a in told if a.pass_ and a.when == "iter" and vars(a)["class"]]
        self.assertEqual(sorted(found), sorted([
            (1, "dataset.none", "list", 0, "[4]", "no"), (1, "dataset.grown['b']", "int", 0, "2", "no"),
            (2, "dataset.rows", "list", 20, "", "yes"), (2, "dataset.filled", "Tensor", 9, "", "no"),
            (2, "dataset.written", "ndarray", 3000, "", "no"), (2, "dataset.names", "list", 500, "", "no"),
            (2, "dataset.steps", "list", 1, "", "no"), (2, "dataset.of", "Compose", 0, "__main__.Compose", "no"),
            (2, "dataset.of.transforms", "list", 0, "[]", "no"),
            (2, "dataset.mode", "set", 1, "", "no"), (2, "dataset.path", "int", 0, "5", "no"), (2, "dataset.later", "list", 0, "[]", "no")]))
        self.assertEqual({a.path for a in told if a.pass_ and a.when == "iter" and not vars(a)["class"]},
                         {"dataset.of.strength", "dataset.of.unused"})
        self.assertEqual([(a.path, a.value) for a in told if a.when == "shared"], [], "what changed there is read by nobody")
        self.assertEqual([a for a in workers[0] if a.pass_], [])
        first = {a.path: (vars(a)["class"], a.value, a.items, a.ordered) for a in told if not a.pass_}
        self.assertEqual({a.path: (vars(a)["class"], a.value, a.items, a.ordered) for a in workers[0]}, first)
        self.assertTrue(first["dataset.rows"][3])

    def test_beside_what_the_short_digest_sees(self):
        """Of a long list the parent looks at all, the workers at some."""
        told, workers = self.record("""
    class Rows(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, i):
            return torch.ones(2) * len(self.names[i])
    data = Rows()
    data.names = ["%d.png" % i for i in range(500)]
    def change(n):
        data.names[13] = str(n)
    passes(DataLoader(data, batch_size=4, num_workers=1, persistent_workers=True), change)
""")
        self.assertEqual([(a.pass_, a.path, a.value, a.ordered, a.read) for a in told if a.pass_],
                         [(n, "dataset.names", "", "", "yes") for n in (1, 2)])
        self.assertEqual([a for a in workers[0] if a.pass_], [])

    def test_what_is_not_compared(self):
        told, _ = self.record("""
    class Big(Dataset):
        def __init__(self):
            self.names, self.unused = [str(i) for i in range(30000)], [str(i) for i in range(30000)]
            self.extension = np.random.RandomState(1).randint
            self.spread = functools.lru_cache(3)(weigh)
        def __len__(self):
            return 8
        def __getitem__(self, i):
            return torch.ones(2) * len(self.names[i]) + self.extension(3)
    passes(DataLoader(Big(), batch_size=4, num_workers=1, persistent_workers=True))
""")
        self.assertEqual([(a.pass_, a.path, a.value, a.items, a.read) for a in told if a.when == "missed"],
                         [(1, "dataset.names", "", 30000, "yes")])

    def test_shared(self):
        told, _ = self.record("""
    import multiprocessing
    class Clock(Dataset):
        def __init__(self):
            self.n, self.t, self.unread = multiprocessing.Value("i", 0), torch.zeros(2).share_memory_(), torch.zeros(2).share_memory_()
            self.array, self.still, self.epoch = torch.zeros(2).share_memory_().numpy(), torch.zeros(1).share_memory_(), 0
            self.queue = multiprocessing.SimpleQueue()
        def __len__(self):
            return 8
        def __getitem__(self, i):
            self.queue.empty()
            return self.n.value + self.t + self.array[0] + self.still
    data = Clock()
    def change(n):
        data.n.value = n
        data.t[1] = data.array[0] = data.unread[0] = n
        data.epoch = n
    passes(DataLoader(data, batch_size=4, num_workers=1, persistent_workers=True), change, 2)
""")
        self.assertEqual(sorted((a.path, a.value) for a in told if a.when == "shared"),
                         [("dataset.array", "changed"), ("dataset.n", "changed"), ("dataset.queue", ""), ("dataset.t", "changed")])
        self.assertEqual([(a.path, a.value, a.read) for a in told if a.when == "iter" and a.pass_], [("dataset.epoch", "1", "no")])

    CHANGES = """
    data = Held()
    def change(n):
        data.epoch = n
        data.transform.transforms[0].strength = n + 0.5
        loader.collate_fn.pad = n
        if n == 2:
            data.name = None
            del data.none
    loader = DataLoader(ConcatDataset([Subset(data, range(8))]), batch_size=2, collate_fn=Collate(), num_workers=2, persistent_workers=True,
            multiprocessing_context=how)
    passes(loader, change)
"""

    def changes(self, how):
        told, workers = self.record(self.CHANGES, how)
        at = "dataset.datasets[0].dataset."
        plain = {a.path: (vars(a)["class"].split(".")[-1], a.value, a.attr) for a in told if a.pass_ == 0 and a.value}
        self.assertEqual({path: v for path, v in plain.items() if not path.startswith("__main__")}, {
            "dataset": ("ConcatDataset", "torch.utils.data.dataset.ConcatDataset", "dataset"),
            "dataset.cumulative_sizes": ("list", "[8]", "cumulative_sizes"),
            at[:-1]: ("Held", "__main__.Held", "dataset"),
            at + "n": ("int", "8", "n"), at + "epoch": ("int", "0", "epoch"), at + "served": ("int", "0", "served"),
            at + "name": ("str", "'train'", "name"), at + "none": ("NoneType", "None", "none"), at + "on": ("bool", "True", "on"),
            at + "transform": ("Compose", "__main__.Compose", "transform"),
            at + "transform.transforms[0].strength": ("float", "0.5", "strength"),
            at + "transform.transforms[0].unused": ("int", "1", "unused"),
            at + "transform.transforms[1].keywords['config']['by']": ("int", "2", "by"),
            "collate_fn": ("Collate", "__main__.Collate", "collate_fn"), "collate_fn.pad": ("int", "0", "pad")})
        self.assertEqual(plain["__main__.Held.fixed"], ("int", "3", "fixed"))
        self.assertEqual({(a.when, a.worker, a.loader) for a in told}, {("iter", -1, 1)})
        later = sorted((a.pass_, a.path.split(".")[-1], a.value, getattr(a, "read", "")) for a in told if a.pass_)
        self.assertEqual(later, [(1, "epoch", "1", "yes"), (1, "pad", "1", "yes"), (1, "strength", "1.5", "yes"),
                                 (2, "epoch", "2", "yes"), (2, "name", "None", "no"), (2, "none", "", ""), (2, "pad", "2", "yes"),
                                 (2, "strength", "2.5", "yes")])
        self.assertEqual(len(workers), 2)
        for worker in workers:
            self.assertEqual({(a.when, a.loader) for a in worker}, {("fetch", 0)})
            mine = {a.path: (vars(a)["class"].split(".")[-1], a.value, a.attr) for a in worker if a.pass_ == 0 and a.value}
            self.assertEqual(mine, plain, "the same places in the copy")
            self.assertEqual([(a.pass_, a.path, a.value) for a in worker if a.pass_], [(1, at + "served", "4"), (2, at + "served", "8")])
        epoch = next(a for a in told if a.path == at + "epoch")
        with open(epoch.source) as f:
            self.assertIn("self.epoch", "".join(f.read().splitlines()[epoch.first - 1:epoch.last]))

    def test_fork(self):
        self.changes("fork")

    def test_spawn(self):
        self.changes("spawn")

    def test_forkserver(self):
        self.changes("forkserver")

    def test_fresh_workers_and_none_are_not_looked_at(self):
        told, workers = self.record("""
    for options in {}, {"num_workers": 1, "multiprocessing_context": how}:
        passes(DataLoader(Held(), batch_size=2, **options))
""")
        self.assertEqual((told, workers), ([], [[]] * 3))

    def test_many(self):
        """Bounded by number, in the same places everywhere."""
        told, workers = self.record("""
    class Node:
        def __init__(self, depth):
            self.a, self.b, self.me = 1, 2, self
            self.nodes = [Node(depth - 1) for i in range(12)] if depth else []
    data = Held()
    data.node, data.table, data.records = Node(4), {i: i for i in range(10 ** 5)}, [(i, str(i)) for i in range(10 ** 5)]
    passes(DataLoader(data, num_workers=1, persistent_workers=True, multiprocessing_context=how), n=2)
""")
        self.assertEqual(len([a for a in told if a.pass_ == 0]), 128)
        self.assertEqual([a.path for a in told if a.pass_ == 0], [a.path for a in workers[0] if a.pass_ == 0])


class Ranks(HookTest):
    def record(self, program, world=2, how="WORLD_SIZE"):
        """Each rank's rows, by path: a process of its own, as launchers start them."""
        found = []
        for rank in range(world):
            code, out, err = self.run_program(DATA + "\nif __name__ == '__main__':\n    rank = %d\n" % rank + program,
                                              env={"WORLD_SIZE": str(world), "RANK": str(rank), "PYTHONHASHSEED": str(rank + 1)})
            self.assertEqual(code, 0, err)
            self.assert_no_errors()
            ring = self.main_ring()
            told = [a for a in ring.of("attribute") if a.when != "begin"]
            self.assertEqual({(a.when, a.worker, a.pass_) for a in told} - {("rank", -1, 0)}, set())
            found.append({a.path: a for a in told})
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))
        return found

    def test_contents(self):
        self.change("contents", "LOADER_NS = PROCESS_NS = 1 << 60")  # a slow machine has time enough
        one, two = self.record("""
    data = Held(4)
    names = ["f%d.jpg" % i for i in range(1000)]
    other = list(names)
    random.Random(rank).shuffle(other)
    data.same, data.shuffled, data.changed = names, other, names[:-1] + ["f%d" % rank]
    data.records = [{"file": n, "size": (i, 2.5, None), "tags": ["a", b"b"]} for i, n in enumerate(other)]
    data.table, data.labels = dict(zip(other, range(1000))), dict.fromkeys(other, 0)
    data.set, data.frozen, data.range = set(names), frozenset(other), range(rank, 9)
    data.array, data.tensor = np.array([int(n[1:-4]) for n in other]), torch.tensor([float(n[1:-4]) for n in other])
    data.matrix, data.strings, data.objects = np.eye(3), np.array(names), np.array([None, 1], dtype=object)
    data.large, data.huge = list(range(10 ** 5 + 1)), np.arange(1 << 22)
    data.large[1] += rank  # not among the sampled
    data.own, data.empty = [Jitter()], []
    loader = DataLoader(Subset(data, [0, 1]))
    passes(loader)
    passes(DataLoader(data))
""")
        self.assertEqual(list(one), list(two))
        whole = lambda name: (one["dataset.dataset." + name], two["dataset.dataset." + name])  # noqa: E731
        equal = lambda name: tuple(bool(getattr(a, how)) and getattr(a, how) == getattr(b, how)  # noqa: E731
                                   for a, b in [whole(name)] for how in ("ordered", "unordered"))
        wanted = {"same": (True, True), "shuffled": (False, True), "changed": (False, False), "records": (False, False),
                  "table": (False, False), "labels": (False, True),
                  "set": (False, True), "frozen": (False, True), "range": (False, False), "array": (False, True), "tensor": (False, True),
                  "matrix": (True, False),
                  "strings": (True, True), "large": (True, False), "huge": (True, False), "own": (False, False), "empty": (True, True)}
        self.assertEqual({name: equal(name) for name in wanted}, wanted)
        self.assertNotIn("dataset.dataset.objects", one)
        self.assertEqual({name: whole(name)[0].whole for name in ("same", "set", "array", "large", "huge", "own", "empty")},
                         {"same": True, "set": True, "array": True, "large": False, "huge": False, "own": False, "empty": True})
        self.assertEqual([whole(name)[0].items for name in ("same", "table", "range", "matrix", "large")], [1000, 1000, 9, 72, 10 ** 5 + 1])
        self.assertEqual((whole("n")[0].value, vars(whole("n")[0])["class"], whole("n")[0].dataset), ("4", "builtins.int", 1))
        self.assertEqual({a.loader for a in one.values()}, {1}, "once for each dataset")

    def test_a_list_is_a_dataset(self):
        one, two = self.record("""
    passes(DataLoader([float(i) for i in range(10)][::1 - 2 * rank]))
""")
        self.assertEqual(list(one), ["dataset"])
        self.assertEqual((one["dataset"].unordered, one["dataset"].items), (two["dataset"].unordered, 10))
        self.assertNotEqual(one["dataset"].ordered, two["dataset"].ordered)

    def test_mapped_files_are_not_read(self):
        one, _ = self.record("""
    data = Held(4)
    np.arange(1000).tofile("numbers")
    data.mapped = np.asarray(np.memmap("numbers", dtype=np.int64))
    data.view = data.mapped[10:]
    passes(DataLoader(data))
""")
        self.assertEqual([(one["dataset." + n].whole, one["dataset." + n].ordered) for n in ("mapped", "view")], [(False, "")] * 2)

    def test_one_process_is_not_looked_at(self):
        self.assertEqual(self.record("    passes(DataLoader(Held(4)))\n", world=1), [{}])

    def test_time_is_bounded(self):
        """What cannot be done in time is left out, and nothing is half done."""
        self.change("contents", "LOADER_NS = 0")
        one, _ = self.record("""
    data = Held(4)
    data.names = [str(i) for i in range(5000)]
    passes(DataLoader(data))
""")
        self.assertEqual(one, {})


if __name__ == "__main__":
    unittest.main()
