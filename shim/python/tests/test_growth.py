"""Containers that grow as samples are served: which are told of, and that nothing is asked of what lies in them."""
import unittest

from harness import HookTest

# Looks at all times, however short the run.
ALWAYS = "FIRST_NS, APART, SHARE = 0, 40, 0\n"
GROWING = """
import collections, functools, weakref
CACHE, seen = {}, set()

class Grows(Dataset):
    def __init__(self):
        self.log, self.short, self.recent = [], [0.5] * 500, collections.deque(maxlen=20)
    def __len__(self):
        return 64
    def __getitem__(self, i):
        x = torch.full((5000,), float(i))
        self.keep(i, x)
        return x
    def keep(self, i, x):
        self.log.append(x)
        self.recent.append(x.clone())
        CACHE[i, id(x)] = x.numpy().copy()

def run(dataset, workers=0, passes=2):
    losses = []
    for epoch in range(passes):
        for batch in DataLoader(dataset, batch_size=4, num_workers=workers):
            losses.append(batch.clone())
    return len(losses)
"""
# Whatever is asked of these, they note.
HOSTILE = """
class Meta(type):
    def __getattribute__(cls, name):
        seen.add("Meta." + name)
        return type.__getattribute__(cls, name)
    def __instancecheck__(cls, obj):
        seen.add("Meta.isinstance")
        return False
    def __eq__(cls, other):
        seen.add("Meta.==")
        return cls is other
    __hash__ = type.__hash__

def noting(name):
    def method(self, *args):
        seen.add(type(self).__mro__[0].__name__ + "." + name)
        raise RuntimeError(name)
    return method

asked = {name: noting(name) for name in ("__len__", "__iter__", "__getitem__", "__contains__", "__eq__", "__sizeof__", "__bool__", "__getattr__",
                                         "keys", "values", "items", "nbytes", "numel", "untyped_storage", "storage")}
asked["__hash__"] = object.__hash__
List, Dict, Deque = (Meta(k.__name__.title(), (k,), dict(asked)) for k in (list, dict, collections.deque))
Thing = Meta("Thing", (), dict(asked))
Tensor = type("Tensor", (torch.Tensor,), {"__torch_function__": classmethod(lambda cls, f, *args: seen.add("torch " + f.__name__))})

class Hostile(Grows):
    def __init__(self):
        Grows.__init__(self)
        self.list, self.dict, self.deque, self.own = List(), Dict(), Deque(), []
    def keep(self, i, x):
        for _ in range(40):
            list.append(self.list, x)
            dict.__setitem__(self.dict, (i, _, id(x)), x)
            collections.deque.append(self.deque, x)
            self.own.append(Thing())
            self.own.append(x.as_subclass(Tensor))
"""


class Growth(HookTest):
    def looks(self, text):
        self.change("growth", ALWAYS)
        code, out, err = self.run_program(GROWING + text)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return out

    def test_what_is_told(self):
        self.looks("run(Grows())")
        ring = self.main_ring()
        last = {c.path: c for c in ring.of("container")}
        self.assertEqual({"dataset.log", "losses"} - set(last), set(), sorted(last))
        self.assertNotIn("dataset.short", last)
        log = last["dataset.log"]
        self.assertEqual((log.items, getattr(log, "class"), log.bound, log.cap), (128, "list", "", -1))
        self.assertAlmostEqual(log.added_bytes / (log.items - log.first_items) / 20000, 1, delta=0.1)
        self.assertEqual((last["dataset.recent"].cap, last["losses"].function.rpartition(".")[2]), (20, "run"))
        self.assertTrue(all(f.anon > 0 and not f.cut for f in ring.of("footprint")))

    def test_a_large_container_of_a_class_of_the_programs_own(self):
        self.looks("""
class Memo(dict):
    def __init__(self):
        self.hits = []

class Own(Grows):
    def __init__(self):
        Grows.__init__(self)
        self.memo = Memo()
    def keep(self, i, x):
        for k in range(3):
            self.memo[i, k, id(x)] = {"image": torch.ones(20000), "sizes": [1.0] * 30}
        self.memo.hits.append(x)
run(Own())
""")
        last = {c.path: c for c in self.main_ring().of("container")}
        self.assertEqual({"dataset.memo", "dataset.memo.hits"} - set(last), set(), sorted(last))
        self.assertEqual((last["dataset.memo"].items, getattr(last["dataset.memo"], "class")), (384, "__main__.Memo"))
        self.assertEqual([path for path in last if path.startswith("dataset.memo[") and path != "dataset.memo[*]"], [], "its items one by one")

    def test_what_is_put_into_a_container_that_grows(self):
        self.looks("""
class Labelled(Grows):
    def __init__(self):
        Grows.__init__(self)
        self.by_label = {k: [torch.ones(20000)] for k in range(6)}
    def keep(self, i, x):
        self.by_label[i % 6] += [torch.ones(20000), torch.ones(20000)]
        self.late = getattr(self, "late", {})
        self.late.setdefault("images", []).append(x.clone())
run(Labelled(), passes=6)
""")
        last = {c.path: c for c in self.main_ring().of("container")}
        self.assertEqual({"dataset.by_label[*]", "dataset.late['images']"} - set(last), set(), sorted(last))
        self.assertEqual(last["dataset.by_label[*]"].items, 6 + 12 * 64)
        self.assertEqual([path for path in last if path.startswith("dataset.by_label[") and "][" in path], [], "the tensors one by one")

    def test_the_collector_is_no_look(self):
        self.change("growth", """
            _write = Growth.write
            def write(self, *args):
                collect and gc.collect()
                _write(self, *args)
            Growth.write, collect = write, True
            """)
        out = self.looks("""
from dptrace_hook.read import growth
from dptrace_hook.watch.iterators import _around
run(Grows())
print(_around["growth"].spent, growth.SHARE)
growth.collect = False
run(Grows())
print(_around["growth"].spent > 0)
""")
        self.assertEqual(out.split(), ["0", "0", "True"])

    def test_in_a_worker(self):
        self.looks("run(Grows(), workers=1, passes=1)")
        workers = [r for r in self.rings() if any(c.worker == 0 for c in r.of("container"))]
        self.assertEqual(len(workers), 1)
        self.assertEqual({"dataset.log", "dataset.recent"} - {c.path for c in workers[0].of("container")}, set())

    def test_nothing_is_asked(self):
        self.assertEqual(self.looks(HOSTILE + "run(Hostile())\nprint(sorted(seen - {'torch clone', 'torch __len__'}))").strip(), "[]")
        self.assertTrue(self.main_ring().of("container"))

    def test_nothing_is_kept(self):
        out = self.looks("""
import gc
class Kept(Grows):
    pass
d = Kept()
run(d)
gone = weakref.ref(d), weakref.ref(d.log[0])
del d
CACHE.clear()
gc.collect()
print([r() is None for r in gone])
""")
        self.assertEqual(out.strip(), "[True, True]")

    def test_an_error_of_ours(self):
        self.change("growth", ALWAYS + "def together(grown):\n    raise RuntimeError")
        self.run_both(GROWING + "print(run(Grows()))")


if __name__ == "__main__":
    unittest.main()
