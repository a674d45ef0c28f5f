"""The search for generators in the whole process, in this one: who holds them, by random names; and what was not looked at."""
import collections
import contextvars
import dataclasses
import enum
import functools
import gc
import itertools
import random
import sys
import threading
import types
import unittest
from unittest import mock

import numpy as np
import torch.utils.data
from harness import PYTHON

sys.path.insert(0, PYTHON)
from dptrace_hook.record import guard, ring  # noqa: E402
from dptrace_hook.read import discover, heap, holders, objects, rng, slots  # noqa: E402


class Plain:
    def __init__(self, held):
        self.held = held


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Base:
    __slots__ = ("__held",)

    def __init__(self, held):
        self.__held = held


class Derived(Base):
    __slots__ = ()


@dataclasses.dataclass
class Record:
    held: object


class Local(threading.local):
    def __init__(self):
        self.made = True


class Sampler(torch.utils.data.Sampler):
    def __init__(self, held):
        self.held = held


def array(g):
    a = np.empty(2, dtype=object)
    a[1] = g
    return a


def cached(g, maxsize=None):
    @functools.lru_cache(maxsize)
    def factory():
        return g
    factory()
    return factory


def closed(g):
    def draw():
        return g
    return draw


def default(g):
    def draw(x, r=g):
        return r
    return draw


def keyword(g):
    def draw(*, r=g):
        return r
    return draw


def suspended(g):
    def draws(r):
        while True:
            yield r
    made = draws(g)
    next(made)
    return made


def member(g):
    return enum.Enum("Streams", {"IMAGE": g})


def variable(g):
    v = contextvars.ContextVar("stream", default=g)
    return v


def thread_local(g, cls=threading.local):
    made = cls()
    made.held = g
    return made


# What holds a generator, and how the way from it is spelled; None: it has a name of its own.
HOLDERS = {
    "itself": (lambda g: g, ""), "instance": (Plain, ".held"), "slots": (Slotted, ".held"), "mangled slots": (Derived, "._Base__held"),
    "dataclass": (Record, ".held"), "namespace": (lambda g: types.SimpleNamespace(held=g), ".held"),
    "list": (lambda g: [1, g], "[1]"), "tuple": (lambda g: (1, g), "[1]"), "dict": (lambda g: {"a": g}, "['a']"),
    "tuple as key": (lambda g: {("a", 1): g}, "[('a', 1)]"), "deque": (lambda g: collections.deque([g]), "[0]"),
    "set": (lambda g: {g}, "[...]"), "key": (lambda g: {g: 1}, None), "array": (array, "[1]"), "proxy": (lambda g: types.MappingProxyType({"a": g}), "['a']"),
    "partial": (lambda g: functools.partial(print, file=g), ".keywords['file']"), "iterator": (lambda g: itertools.cycle([g]), None),
    "cached": (cached, None), "bounded cache": (lambda g: cached(g, 4), None), "closure": (closed, None), "default": (default, None),
    "keyword": (keyword, None), "suspended": (suspended, None), "member": (member, None), "context variable": (variable, None),
    "thread-local": (thread_local, ".held"), "own thread-local": (lambda g: thread_local(g, Local), ".held"), "method": (lambda g: Plain(g).__init__, ".__self__.held"),
}
OWN = {"cached": "lru_cache of test_heap.cached.<locals>.factory()", "bounded cache": "lru_cache of test_heap.cached.<locals>.factory() (2)",
       "closure": "test_heap.closed.<locals>.draw<closure g>", "default": "test_heap.default.<locals>.draw<default r>",
       "keyword": "test_heap.keyword.<locals>.draw<default>['r']", "suspended": "test_heap.suspended.<locals>.draws()<local r>",
       "member": "test_heap.Streams.IMAGE.value", "context variable": "ContextVar 'stream'"}
GENERATORS = [lambda s: np.random.default_rng(s), lambda s: np.random.RandomState(s), lambda s: random.Random(s), lambda s: np.random.PCG64(s),
              lambda s: torch.Generator().manual_seed(s), lambda s: torch.quasirandom.SobolEngine(3, scramble=True, seed=s)]


class Search(unittest.TestCase):
    def setUp(self):
        self.written, self.count = [], guard.count
        for patch in (mock.patch.object(ring, "put_json", lambda kind, facts, t=0: self.written.append(facts)),
                      mock.patch.dict(heap._state, {"tried": False, "last": 0, "took": 0, "loaders": 0, "forked": False, "bare": False}),
                      mock.patch.dict(heap._hidden, clear=True), mock.patch.object(heap, "MAX_NS", 1 << 62)):
            patch.start()
            self.addCleanup(patch.stop)
        self.module = types.ModuleType("planted_%d" % random.randrange(10**9))
        sys.modules[self.module.__name__] = self.module
        self.addCleanup(sys.modules.pop, self.module.__name__)

    def tearDown(self):
        self.module.__dict__.clear()
        gc.collect()
        self.assertEqual(guard.count, self.count, guard.last)

    def found(self):
        heap.look((0, 0, -1))
        return {found.path: found for found in heap.hidden()}

    def word(self):
        return "".join(random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(4))

    def test_each_holder_of_each_kind(self):
        expected = {}
        for shape, (make, way) in sorted(HOLDERS.items()):
            for number, generator in enumerate(GENERATORS):
                if shape in OWN and number:  # one name for all
                    continue
                name, g = self.word(), generator(random.randrange(1000))
                setattr(self.module, name, make(g))
                path = OWN.get(shape) or "%s.%s%s" % (self.module.__name__, name, way if way is not None else "")
                expected[path] = (shape, g, way is None and shape not in OWN)
        with mock.patch.object(heap, "MAX_FOUND", 1000), mock.patch.object(holders, "MAX_WIDTH", 1000):
            found = self.found()
        for path, (shape, g, begins) in expected.items():
            with self.subTest(shape, path=path):
                paths = [p for p, f in found.items() if f.obj is g]
                self.assertEqual(len(paths), 1, "%s: found as %s" % (shape, paths))
                self.assertTrue(paths[0].startswith(path.replace(" (2)", "")) if begins or "cache" in shape else paths[0] == path,
                                "%s is %s" % (paths[0], path))
                self.assertIs(found[paths[0]].current(), g)
        self.assertEqual([w["why"] for w in self.written], [""])

    def test_holders_of_holders(self):
        for _ in range(20):
            name, g = self.word(), random.choice(GENERATORS)(random.randrange(1000))
            nested = [s for s, (_, way) in HOLDERS.items() if way]
            shapes, held, way = [random.choice(nested) for _ in range(random.randint(2, 4))], g, ""
            for shape in shapes:
                try:
                    held, way = HOLDERS[shape][0](held), HOLDERS[shape][1] + way
                except TypeError:  # a list in a set
                    pass
            setattr(self.module, name, held)
            found = {id(f.obj): p for p, f in self.found().items()}
            paths = [found[id(g)]] if id(g) in found else []
            heap._state.update(last=0)
            # an object in an array, and nothing else, is not led to from it
            if not any(s == "array" for s in shapes[1:]):
                self.assertEqual(paths, ["%s.%s%s" % (self.module.__name__, name, way)], shapes)
            else:
                self.assertEqual(len(paths), 1, shapes)

    def test_what_is_somebody_elses(self):
        import tempfile
        tempfile.NamedTemporaryFile().close()  # names its files by a generator of its own
        loader = torch.utils.data.DataLoader([1, 2], generator=torch.Generator())
        sampler = Sampler(random.Random(1))
        self.module.all = [loader, sampler]
        self.assertEqual(self.found(), {})

    def test_those_that_a_walk_finds_are_not_found_again(self):
        g = np.random.default_rng(1)
        self.module.RNG, dataset = g, Plain([g.bit_generator, torch.Generator()])
        heap.look((0, 0, -1), dataset, None)
        self.assertEqual(heap.hidden(), [])

    def test_what_only_we_hold_is_forgotten(self):
        self.module.a, self.module.b = random.Random(1), random.Random(2)
        self.assertEqual(len(self.found()), 2)
        del self.module.b
        heap._prune()
        self.assertEqual([f.path for f in heap.hidden()], [self.module.__name__ + ".a"])

    def test_one_that_is_replaced(self):
        self.module.rng = random.Random(1)
        found, = self.found().values()
        self.module.rng = random.Random(2)
        self.assertIs(found.current(), self.module.rng)

    def test_one_whose_holder_is_replaced(self):
        for make in (Plain, Slotted, lambda g: types.SimpleNamespace(held=[g]), lambda g: {("a", 1): Plain({"b": g})}):
            with self.subTest(make=make):
                self.module.deep = {"x": [make(random.Random(1))]}
                found, = [f for p, f in self.found().items() if p.startswith(self.module.__name__ + ".deep")]
                found = heap._hidden[id(found.obj)][0]
                heap._state.update(last=0)
                before = found.obj
                self.assertIs(found.again().current(), before)
                other = random.Random(2)
                self.module.deep = {"x": [make(other)]}
                self.assertIs(found.again().current(), other)
                self.module.deep = None
                self.assertIs(found.again().current(), before)
                heap._hidden.clear()

    def test_what_was_not_looked_at_is_said(self):
        self.module.a = torch.Generator()
        for why, patch in (("time", mock.patch.object(heap, "MAX_NS", -1)), ("objects", mock.patch.object(heap, "MAX_BLOCKS", 0)),
                           ("names", mock.patch.object(heap, "MAX_FOUND", 0)), ("frozen", mock.patch.object(gc, "get_freeze_count", lambda: 7))):
            heap._state.update(tried=False, last=0)
            del self.written[:]
            with patch:
                heap.look((3, 4, -1))
            self.assertEqual([(w["why"], w["loader"], w["pass"], w["left"] > 0) for w in self.written], [(why, 3, 4, why != "objects")])

    def test_it_is_not_done_again_and_again(self):
        heap.look((0, 0, -1))
        last = heap._state["last"]
        heap.look((0, 0, -1))
        self.assertEqual(heap._state["last"], last)
        loader = torch.utils.data.DataLoader([1, 2])
        for number in range(1, heap.LOADERS + 1):
            heap.look_for(loader, (number, 1))
            self.assertEqual(heap._state["last"], last)
            heap.look_for(loader, (number, 0))
            self.assertNotEqual(heap._state["last"], last)
            self.assertEqual((self.written[-1]["loader"], self.written[-1]["why"]), (number, ""))
            last = heap._state["last"]
        heap.look_for(loader, (number + 1, 0))
        self.assertEqual(heap._state["last"], last)

    def test_not_beside_a_loaders_workers(self):
        process = mock.Mock()
        heap.started(process)
        self.addCleanup(heap._workers.clear)
        with mock.patch.object(sys.modules["multiprocessing.process"], "_children", {process}):
            self.assertEqual(self.found(), {})
        self.assertEqual([w["why"] for w in self.written], ["children"])


def held(path, generator):
    made = holders.Held(path, generator, "random", "process", "")
    made.root = made.steps = None
    return made


class Watched(unittest.TestCase):
    """What slots.Slots makes of hidden generators."""

    def test_written_only_once_it_has_moved(self):
        states, names = [], []
        quiet, moved = random.Random(1), random.Random(2)
        found = [held("p.quiet", quiet), held("p.moved", moved)]
        with mock.patch.object(heap, "hidden", lambda: found), mock.patch.dict(slots._NUMBERS, clear=True), \
                mock.patch.object(ring, "put_json", lambda kind, facts, t=0: names.append(facts.get("path"))), \
                mock.patch.object(ring, "pack", lambda kind, t, *values: states.append(values[:6])):
            s = slots.Slots(0, 0, 1)
            s.begin()
            del names[:], states[:]
            for fetch in range(40):
                if fetch >= 20:
                    moved.random()
                s.after(fetch, 5)
            s.end(39)
        self.assertEqual(names, ["p.moved"])
        number = states[0][0]
        mine = [(fetch, when) for slot, _, _, _, fetch, when in states if slot == number]
        self.assertEqual(mine[0], (0, slots.BEGIN))
        self.assertEqual(mine[1:-1], [(fetch, slots.AFTER) for fetch in range(20, 40)])
        self.assertEqual(mine[-1], (39, slots.END))

    def test_many_are_looked_at_in_turn(self):
        many = [random.Random(i) for i in range(50)]
        found = [held("p[%d]" % i, r) for i, r in enumerate(many)]
        names = []
        with mock.patch.object(heap, "hidden", lambda: found), mock.patch.dict(slots._NUMBERS, clear=True), \
                mock.patch.object(ring, "put_json", lambda kind, facts, t=0: names.append(facts.get("path"))), mock.patch.object(ring, "put"):
            s = slots.Slots(0, 0, 1)
            s.begin()
            s.after(0, 5)
            s.after(1, 5)
            looks = []
            for i, h in enumerate(s.hidden):
                h.reader = mock.Mock(peek=lambda i=i, last=h.last: looks.append(i) or last)
            for fetch in range(2, 15):
                s.after(fetch, 5)
            self.assertEqual(sorted(looks), list(range(50)))


class Walks(unittest.TestCase):
    """What the walk from a dataset says of where it ended."""

    def cut(self, dataset):
        walk = discover.Walk()
        walk.roots(dataset, None)
        return {why: tuple(told) for why, told in walk.cut.items()}

    def test_complete(self):
        self.assertEqual(self.cut(Plain([1, {"a": (2, [3])}, np.zeros(9), torch.zeros(3), list(range(10**5))])), {})

    def test_items(self):
        self.assertEqual(self.cut(Plain([(i,) for i in range(100)])), {"items": ("dataset.held", 100 - discover.MAX_ITEMS)})
        self.assertEqual(self.cut(Plain({i: [] for i in range(70)}))["items"], ("dataset.held", 70 - discover.MAX_ITEMS))

    def test_nodes(self):
        wide = [[[[] for _ in range(60)] for _ in range(60)] for _ in range(60)]
        self.assertIn("nodes", self.cut(Plain(wide)))

    def test_barred(self):
        class Barred:
            __dict__ = property(lambda self: 1 / 0)
        self.assertEqual(self.cut(Plain(Barred())), {"barred": ("dataset.held (%s)" % objects.name(Barred), 1)})

    def test_a_large_cache(self):
        made = cached_of(100)
        self.assertEqual(self.cut(Plain(made))["items"][1], 100)


def cached_of(n):
    @functools.lru_cache(None)
    def results(i):
        return [i]
    for i in range(n):
        results(i)
    return results


class Engines(unittest.TestCase):
    def test_state(self):
        from dptrace_hook.watch import quasi
        quasi.watch(sys.modules["torch.quasirandom"])
        make = functools.partial(torch.quasirandom.SobolEngine, 3)
        a, b, c, d = make(scramble=True, seed=1), make(scramble=True, seed=1), make(scramble=True, seed=2), make()
        readers = [rng.reader(e) for e in (a, b, c, d)]
        self.assertEqual(len({r.raw()[:16] for r in readers}), 3)
        a.draw(5)
        self.assertEqual(int.from_bytes(readers[0].peek()[8:], "little"), 15)
        jumps = readers[0].peek()[:8]
        a.fast_forward(2)
        self.assertEqual(int.from_bytes(readers[0].peek()[8:], "little"), 21)
        self.assertNotEqual(readers[0].peek()[:8], jumps)
        self.assertEqual(readers[0].raw()[:16], readers[1].raw()[:16])


if __name__ == "__main__":
    unittest.main()
