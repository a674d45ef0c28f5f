"""The native helper beside its twin: the same random programs give the same with both. Needs no torch; it may be run by itself with
any Python from 3.8 on. DPTRACE_TEST_NATIVE names another build of the helper (tools/native-test makes one with AddressSanitizer)."""
import collections.abc
import copy
import ctypes
import functools
import gc
import inspect
import itertools
import os
import pickle
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import types
import typing
import unittest
import weakref

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, PYTHON)
from dptrace_hook.patch import load, twin  # noqa: E402
from dptrace_hook.record import layouts  # noqa: E402

BUILD = os.environ.get("DPTRACE_TEST_NATIVE")
native = load.load(BUILD) if BUILD else load.native
BOTH = {"native": native, "twin": twin} if native is not twin else {"twin": twin}
NATIVE = unittest.skipIf(native is twin, "no native helper here: " + load.why)
PROGRAMS = int(os.environ.get("DPTRACE_TEST_PROGRAMS", "3000"))


def each(test):
    """The test once with each of the two."""
    @functools.wraps(test)
    def both(self):
        for name, module in BOTH.items():
            with self.subTest(name):
                test(self, module)
    return both


def described(e, seen=()):
    """All that a program can see of an exception, but for frames of the twin's."""
    if e is None or e in seen:
        return e and "again"
    frames, tb = [], e.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename != twin.__file__:
            frames.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
        tb = tb.tb_next
    seen += (e,)
    return type(e).__name__, repr(e.args), frames, e.__suppress_context__, described(e.__cause__, seen), described(e.__context__, seen)


class Programs:
    """What is done with wrappers, as a seed says."""

    def __init__(self, module, seed):
        self.module, self.random, self.events, self.level = module, random.Random(seed), [], 0

    def callback(self, name):
        does = self.random.choice(["nothing", "ok", "ok", "ok", "raises", "interrupts", "raises from"])
        if does == "nothing":
            return None

        def called(*args):
            handled = sys.exc_info()[1]
            self.events.append((name, [repr(a) for a in args], type(handled).__name__))
            if does == "raises":
                raise LookupError(name)
            if does == "raises from":
                try:
                    raise OSError(name)
                except OSError as e:
                    raise LookupError(name) from e
            if does == "interrupts":
                raise KeyboardInterrupt(name)
            return name
        return called

    def judge(self, name):
        does = self.random.choice(["nothing", "no", "no", "yes", "raises", "raises once", "interrupts", "strange"])
        if does == "nothing":
            return None
        state = []

        def theirs(e):
            self.events.append((name, described(e), type(sys.exc_info()[1]).__name__))
            state.append(e)
            if does == "raises" or (does == "raises once" and len(state) == 1):
                raise RuntimeError(name)
            if does == "interrupts":
                raise KeyboardInterrupt(name)
            return Strange() if does == "strange" else does in ("yes", "raises once")
        return theirs

    def original(self):
        does = self.random.choice(["returns", "returns", "raises", "raises from", "stops", "interrupts", "in a handler", "a builtin"])

        def function(*args, **kwargs):
            self.events.append(("original", repr(args), sorted(kwargs)))
            if does == "raises":
                raise ValueError(args)
            if does == "raises from":
                raise ValueError(args) from KeyError("k")
            if does == "stops":
                raise StopIteration(3)
            if does == "interrupts":
                raise KeyboardInterrupt
            if does == "in a handler":
                try:
                    raise OSError("first")
                except OSError:
                    raise ValueError("second")
            return args, kwargs
        return int if does == "a builtin" else function

    def wrapped(self):
        function = self.original()
        for i in range(self.random.randint(1, 3)):
            function = self.module.Around(function, self.callback("before %d" % i), self.callback("after %d" % i),
                                          self.callback("failed %d" % i), self.judge("theirs %d" % i))
        return function

    def call(self):
        function = self.wrapped()
        args = [self.random.choice([1, "x", None, (2,)]) for _ in range(self.random.randint(0, 2))]
        kwargs = {k: self.random.random() for k in self.random.sample(["a", "b"], self.random.randint(0, 2))}
        how = self.random.choice(["plain", "star", "empty", "method", "bound"])
        if how == "plain":
            return function(7)
        if how == "star":
            return function(*args, **kwargs)
        if how == "empty":
            return function(*args, **{})
        cls = type("Cls", (), {"f": function, "__repr__": lambda self: "<instance>"})
        if how == "bound" and isinstance(function, (types.FunctionType, BOTH.get("native", twin).Around if native is not twin else ())):
            bound = cls().f
            return bound(*args, **kwargs)
        return cls().f(*args, **kwargs)

    def run(self):
        """All that can be seen of it."""
        outer = self.random.random() < 0.3
        try:
            if outer:
                try:
                    raise IndexError("outer")
                except IndexError:
                    result = repr(self.call())
            else:
                result = repr(self.call())
            end = ("returned", result)
        except BaseException as e:
            end = ("raised", described(e))
        return self.events, end


class Strange:
    def __bool__(self):
        raise RuntimeError("no truth")


class Differential(unittest.TestCase):
    maxDiff = None

    @NATIVE
    def test_wrappers(self):
        ends = collections.Counter()
        for seed in range(PROGRAMS):
            results = [Programs(module, seed).run() for module in BOTH.values()]
            self.assertEqual(results[0], results[1], "seed %d" % seed)
            ends[results[0][1][0]] += 1
        self.assertGreater(min(ends.values()), PROGRAMS // 10, ends)

    @NATIVE
    def test_records(self):
        put = refused = 0
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            capacity = r.choice([64, 256, 512, 4096])
            before = os.urandom(128 + capacity)
            rings = [bytearray(before), bytearray(before)]
            for ring in rings:
                ring[8:24] = bytes(16)
            sinks = [module.Sink(ring, capacity, 128, 1, 2) for module, ring in zip(BOTH.values(), rings)]
            formats = ["".join(r.choice("BHIQhiq") for _ in range(r.randint(0, 12))) for _ in range(3)]
            records = [[module.Record(sink, kind + 1, form) for kind, form in enumerate(formats)] for module, sink in zip(BOTH.values(), sinks)]
            lists = [[module.Integers(sink, 9, form) for form in formats] for module, sink in zip(BOTH.values(), sinks)]
            for step in range(100):
                kind = r.randrange(3)
                t, values = r.randrange(1, 1 << 64), [value(code, r) for code in formats[kind]]
                if r.random() < 0.05 and values:
                    values[r.randrange(len(values))] = r.choice([1 << 64, -1 << 63, -(1 << 63) - 1, -1, 1 << 63, 1.5, None, "1", True, Index(3)])
                if r.random() < 0.02:
                    values = values[:-1] if values else values + [1, b""]
                payload = r.choice([bytes, bytearray, memoryview])(os.urandom(r.choice([0, 1, 7, 8, 40, r.randrange(200), 5000])))
                if r.random() < 0.5:
                    values.append(payload)
                does, snapshot = r.random(), bytes(rings[0])
                if does < 0.2:
                    seen = [outcome(sink.put, kind, payload, t) for sink in sinks]
                elif does < 0.4:
                    values = values[:len(formats[kind])] + [integers(r) for _ in range(r.choice([0, 1, 1, 1, 1, 1, 2, 2, 2, 3]))]
                    seen = [outcome(made[kind], t, *values) for made in lists]
                elif does < 0.9:
                    seen = [outcome(made[kind], t, *values) for made in records]
                else:  # the recorder has come so far
                    tail = r.choice([sinks[0].head, r.randint(0, sinks[0].head), r.randrange(1 << 64)] if r.random() < 0.1 else [sinks[0].head])
                    for ring in rings:
                        struct.pack_into("<Q", ring, 16, tail)
                    seen = [0, 0]
                self.assertEqual(seen[0], seen[1], (seed, step))
                states = [(s.head, s.tail, s.number, s.capacity) for s in sinks]
                self.assertEqual(states[0], states[1], (seed, step))
                if seen[0] not in (0, ("gave", True)):  # what is no record yet may have been begun
                    last = sinks[0].head
                    first = max(min(max(sinks[0].tail, struct.unpack_from("<Q", snapshot, 16)[0]), last), last - capacity)
                    for ring in rings:
                        self.assertEqual(ring[:128], snapshot[:128])
                        for at in range(first, last):
                            self.assertEqual(ring[128 + at % capacity], snapshot[128 + at % capacity])
                    rings[1][:] = rings[0]
                self.assertEqual(rings[0], rings[1], (seed, step))
                put, refused = put + (seen[0] == ("gave", True)), refused + (seen[0] == ("gave", False))
        self.assertGreater(min(put, refused), PROGRAMS // 10)

    @NATIVE
    def test_looks_at_memory(self):
        found = 0
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            memory = (ctypes.c_ubyte * 512)(*r.choices(range(256), k=512))
            start = ctypes.addressof(memory)
            looks = [module.Peeks() for module in BOTH.values()]
            n = 0

            def region():
                n1, n2 = r.randint(0, 32), r.randint(0, 34)
                known = [start + r.randrange(400) if n1 else 0, n1, start + r.randrange(400) if n2 else 0, n2, memory]
                if r.random() < 0.3:
                    at = 8 * r.randrange(60)
                    pointer = int.from_bytes(bytes(memory[at:at + 8]), "little")
                    known += [start + at, pointer if r.random() < 0.9 else 5]
                return known
            for step in range(60):
                does = r.random()
                if does < 0.1 or not n:
                    given = region()
                    seen = [outcome(p.add, *given) for p in looks]
                    n += seen[0][0] == "gave"
                elif does < 0.2:
                    given = [r.randrange(n + 1)] + region()
                    seen = [outcome(p.set, *given) for p in looks]
                elif does < 0.3:
                    seen = [outcome(p.last, step % (n + 1)) for p in looks]
                elif does < 0.6:
                    for _ in range(r.randint(0, 3)):
                        memory[r.randrange(512)] ^= r.randrange(256)
                    seen = [0, 0]
                else:
                    some = r.choice([(), (), (r.randint(-1, n),), (r.randint(0, n), r.randint(-2, n + 2))])
                    seen = [outcome(p.moved, *some) for p in looks]
                    found += seen[0] != ("gave", None)
                self.assertEqual(seen[0], seen[1], (seed, step))
        self.assertGreater(found, PROGRAMS // 10)


    @NATIVE
    def test_places(self):
        found = 0
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            dicts, objects, n = [{} for _ in range(3)], [object() for _ in range(4)] + [None], 0
            places = [module.Places() for module in BOTH.values()]
            for step in range(50):
                does = r.random()
                place = [r.choice(dicts + [type("D", (dict,), {})()] * (does < 0.01)), r.choice(["a", "b", "c"]), r.choice(objects)]
                if does < 0.15:
                    seen = [outcome(p.add, *place) for p in places]
                    n += seen[0][0] == "gave"
                elif does < 0.3:
                    index = r.randint(-1, n)
                    seen = [outcome(p.set, index, *place) for p in places]
                elif does < 0.5:
                    place[0][place[1]] = place[2]
                    seen = [0, 0]
                elif does < 0.6:
                    place[0].pop(place[1], None)
                    seen = [0, 0]
                else:
                    seen = [outcome(p.changed) for p in places]
                    found += seen[0][1] is not None
                self.assertEqual(seen[0], seen[1], (seed, step))
        self.assertGreater(found, PROGRAMS // 10)


    @NATIVE
    def test_fetches_of_a_worker(self):
        kinds = collections.Counter()
        for seed in range(PROGRAMS // 10):
            seen = []
            for module in BOTH.values():
                worker = Worker(module, seed)
                seen.append((worker.run(), worker.events))
            for one, other in zip(*[events for _, events in seen]):
                self.assertEqual(one, other, seed)
            self.assertEqual(seen[0], seen[1], seed)
            kinds.update([e[0] for e in seen[0][1]] + [record[0] for record in seen[0][0][0]])
        self.assertGreater(min(kinds[k] for k in ("enter", "leave", "look", "waiting", "ask", "full", "quiet", "raised", 6, 9)), PROGRAMS // 50, kinds)

    @NATIVE
    def test_batches_of_an_iterator(self):
        kinds = collections.Counter()
        for seed in range(PROGRAMS // 10):
            seen = []
            for module in BOTH.values():
                iterating = Iterating(module, seed)
                seen.append((iterating.run(), iterating.events))
            for one, other in zip(*[events for _, events in seen]):
                self.assertEqual(one, other, seed)
            self.assertEqual(seen[0], seen[1], seed)
            kinds.update([e[0] for e in seen[0][1]] + [record[0] for record in seen[0][0]])
        wanted = ("place", "placed", "arrive", "call", "hand", "rows", "flags", "begun", "full", "bell", "raised", 5, 7)
        self.assertGreater(min(kinds[k] for k in wanted), PROGRAMS // 50, kinds)

    @NATIVE
    def test_multiple(self):
        for seed in range(PROGRAMS):
            r = random.Random(seed)
            given, mask = integers(r), r.choice([0, 1, 3, 15, 255, -1, r.randrange(1 << 62)])
            self.assertEqual(*[outcome(module.multiple, given, mask) for module in BOTH.values()])

    @NATIVE
    def test_referents(self):
        hits = collections.Counter()
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            some = heap_of(r)
            types = r.sample(TYPES, r.randint(0, 6)) + [type(r.choice(some)) for _ in range(r.choice([0, 0, 3]))]
            always, untracked = tuple(types[:r.randint(0, 6)]), tuple(types[r.randint(0, 6):])
            given = r.choice([some] * 20 + [tuple(some), None]), r.choice([always] * 20 + [list(always)]), untracked
            for name in ("picked", "referents"):
                seen = [outcome(getattr(module, name), *given) for module in BOTH.values()]
                self.assertEqual(*[(how, list(map(id, found)) if how == "gave" else found) for how, found in seen], (seed, name))
                hits[name] += len(seen[0][1]) if seen[0][0] == "gave" else 0
            self.assertEqual(*[outcome(module.picked, some, always) for module in BOTH.values()])
        self.assertGreater(min(hits.values()), PROGRAMS // 10, hits)
        types = tuple(TYPES[:3]), tuple(TYPES[3:])
        everything = gc.get_objects()  # all of this process; less what is made as it is looked at
        self.assertEqual(*[len(module.picked(everything, *types)) for module in BOTH.values()])
        found = [module.referents(everything, *types) for module in BOTH.values()]
        both = [collections.Counter(map(id, each)) for each in found]
        self.assertGreater(len(found[0]), 1000)
        self.assertLess(sum(((both[0] - both[1]) + (both[1] - both[0])).values()), 50)


class Worker:
    """A worker's life as a seed says, and what can be seen of it but the times."""

    def __init__(self, module, seed):
        self.module, self.random, self.events = module, random.Random(seed), []
        self.records, self.drained = [], 0
        self.ring = bytearray(128 + 256)
        self.sink = module.Sink(self.ring, 256, 128, 1, 2)
        self.memory = (ctypes.c_ubyte * 32)()
        self.serving = type("Serving", (module.Serving,), {"__init__": lambda self, *args: None})(1, 2)
        self.serving.record = module.Record(self.sink, 6, "IIiIIqqqqi")
        self.state_record = module.Record(self.sink, 9, "IIIiIHHqq")
        self.serving.ask, self.serving.full = self.called("ask"), self.called("full")
        self.place = {"a": self}
        self.fetcher = types.SimpleNamespace()
        self.entering, self.leaving = module.entering(self.enter), module.leaving(self.leave)
        self.fetching()

    def called(self, name):
        def function(*args):
            self.events.append((name, [a for a in args if not isinstance(a, (self.module.Fetching, self.module.Serving))]))
            if self.random.random() < 0.1:
                raise LookupError(name)
        return function

    def fetching(self):
        f = type("Fetching", (self.module.Fetching,), {})()
        f.serving = self.random.choice([self.serving] * 5 + [None])
        f.number, f.worker, f.batched = self.random.randrange(9), self.random.randrange(9), self.random.randrange(2)
        f.peeks, f.places = self.module.Peeks(), self.random.choice([self.module.Places()] * 9 + [None])
        at = ctypes.addressof(self.memory)
        f.peeks.add(at, 16, at + 16, 8, self.memory)
        if f.places is not None:
            f.places.add(self.place, "a", self)
        f.peeks.add(at, 16, at + 16, 4, self.memory)
        f.peeks.add(at + 4, 16, at + 20, 12, self.memory, *self.random.choice([(), (at, 0)]))
        for i, forms in enumerate(((0, 3, 3), (0, 1, 3, 1), (0, 2, 3, 2))):
            f.peeks.tell(i, i + 7, self.random.choice(forms))
        f.state = self.random.choice([None, self.state_record, self.state_record])
        f.look = self.random.choice([None, self.look])
        self.one = f
        self.fetcher._dptrace = self.random.choice([f] * 9 + [None])

    def look(self, f, data):
        self.events.append(("look", data, f.skipped, f.samples))
        f.skipped, f.mask = 0, self.random.choice([-1, 0, 1, 7, 63])
        f.waiting = self.random.choice([None, lambda f, batch: self.called("waiting")(batch)])
        if self.random.random() < 0.1:
            raise LookupError

    def enter(self, args, kwargs):
        f = args[0].__dict__.get("_dptrace")
        self.events.append(("enter", f is not None))
        if f is not None:
            f.fetch += 1
            f.asked = args[1]
            f.t_collate = f.t_collated = f.digest_ns = f.rows_ns = f.stage = 0
        return f

    def leave(self, f, result, args, kwargs):
        self.events.append(("leave", result))
        if f is not None:
            self.events.append(("flushed", f.calls, f.fetched_samples, f.fetched_ns > 0, 0 <= f.own_ns <= 60000 * (f.calls + 2)))
            f.calls = f.own_ns = f.fetched_ns = f.fetched_samples = 0
            f.due = f.fetch + self.random.choice([0, 1, 2, 8])
            f.peeks.moved()
            f.places = f.places or self.module.Places()
            self.serving.done = self.random.choice([None, f])

    def state(self):
        f, s = self.one, self.serving
        return (f.fetch, f.samples, f.stage, f.calls, f.fetched_samples, f.skipped, f.mask, f.asked, f.waiting is None, f.t_collate > 0,
                f.t_collated > 0, s.batch, s.fetches, s.asks, s.done is None, self.sink.number, self.sink.head,
                sys.getrefcount(f), sys.getrefcount(s))

    def step(self):
        r, f, s = self.random, self.one, self.serving
        does = r.random()
        if does < 0.1:
            self.memory[r.randrange(32)] ^= r.randrange(2)
        elif does < 0.12:
            self.place["a"] = r.choice([self, None])
        elif does < 0.14:
            self.fetching()
        elif does < 0.3:
            s.next_ask = s.fetches + r.choice([0, 1, 5])
            s.asking((), None)
        elif does < 0.4:
            s.asked(None, r.choice([(5, [1]), (r.randrange(99), 2), None, (True, 2), [1, 2], ("x", 1), (1 << 70, 2), (-1, 2)]), (), None)
        elif does < 0.9:
            self.one_fetch()
        else:
            self.drain()

    def drain(self):
        while self.drained < self.sink.head:
            at = 128 + self.drained % 256
            length, kind, pad = struct.unpack_from("<IHH", self.ring, at)
            self.drained += length
            payload = bytes(self.ring[at + 24:at + length - pad])
            if kind == 6:
                values = struct.unpack("<IIiIIqqqqi", payload)
                self.records.append((kind, values[:5], [v >= 0 for v in values[5:9]], values[9]))
            elif kind == 9:
                self.records.append((kind, payload[:32], payload[40:]))  # but for the time
        struct.pack_into("<Q", self.ring, 16, self.sink.head)

    def one_fetch(self):
        r, f, s = self.random, self.one, self.serving
        n = r.choice([1, 4])
        asked = r.choice([list, list, tuple])(r.choices(range(1, 100), k=n)) if r.random() < 0.9 else r.choice([None, 3, ["x"], [True]])
        args = (self.fetcher, asked)
        before = len(self.events)
        token = self.entering(args, None)
        data = r.choice([list, list, tuple])(range(n)) if r.random() < 0.9 else "data"
        if token is not None and r.random() < 0.95:
            try:
                token.before_collate((data,), None)
                if r.random() < 0.9:
                    token.after_collate(None, "batch", (data,), None)
            except LookupError:
                self.events.append(("raised", token.stage))
                token.failed_collate(None, None, (data,), None)
        self.leaving(token, "batch", args, None)
        if before == len(self.events):
            self.events.append(("quiet", f.fetch, s.done is f))
        if r.random() < 0.8:
            s.putting((), None)
            s.put(None, None, (), None)

    def run(self):
        end = None
        for _ in range(60):
            try:
                self.step()
            except LookupError:
                self.events.append(("raised",))
            self.events.append(("state",) + self.state())
        self.drain()
        return self.records, end


class Slotted:
    __slots__ = ("held", "__weakref__")

    def __init__(self, held):
        self.held = held


class Meta(type):
    def __eq__(cls, other):
        raise RuntimeError("compared")

    def __hash__(cls):
        raise RuntimeError("hashed")


class Odd(metaclass=Meta):
    def __init__(self, held):
        self.held = held


TYPES = [dict, tuple, random.Random, Odd, Slotted, int, str, list, type, types.CodeType, type(None), types.FunctionType, Meta]


def heap_of(r):
    """Objects of many kinds, that hold others of them, and themselves."""
    some = [1, "a", None, int, Odd, gc, sample, {}, (), [], random.Random(1), len, len.__call__, dict.__dict__, sys._getframe(), ...]
    for _ in range(r.randint(0, 60)):
        held = [r.choice(some) for _ in range(r.randint(0, 4))]
        one = r.choice(some)

        def function(a=one, *, b=held):
            yield one, a, b
        running = function()
        if r.random() < 0.5:
            next(running)
        some.append(r.choice([
            lambda: held, lambda: tuple(held), lambda: dict(enumerate(held)), lambda: Slotted(one), lambda: Odd(one), lambda: function,
            lambda: running, lambda: functools.partial(sample, *held), lambda: random.Random(2).random, lambda: Odd(one).__init__,
            lambda: type("New", (Odd,), {"held": one}), lambda: iter(held), lambda: function.__code__,
            lambda: (lambda: one).__closure__[0], lambda: weakref.ref(function, id),
            lambda: set(map(id, held)), lambda: property(one), lambda: types.MappingProxyType({1: one}), lambda: (1, 2, "b"), lambda: {1: 2},
            lambda: functools.lru_cache(function), lambda: itertools.chain(held), lambda: collections.deque(held), lambda: zip(held)])())
    gc.collect(0) if r.random() < 0.1 else None  # which no longer tracks tuples of what needs no tracking
    some.append(some)
    return some


class Tensor:
    """Of a type whose shape is read without Python."""

    def __init__(self, shape):
        self.shape = shape

    def __repr__(self):
        return "Tensor"

    def __eq__(self, other):
        return type(other) is Tensor and repr(self.shape) == repr(other.shape)


class Iterating:
    """An iterator's life as a seed says, and what can be seen of it but the times."""
    PUT, NEXT = "IIIiqIi", "IIIiIqqQIQQQIi"

    def __init__(self, module, seed):
        self.module, self.random, self.events = module, random.Random(seed), []
        self.records, self.drained = [], 0
        self.ring = bytearray(128 + 512)
        self.sink = module.Sink(self.ring, 512, 128, 1, 2)
        t = self.training = module.Training()
        t.put, t.record = module.Integers(self.sink, 5, self.PUT), module.Record(self.sink, 7, self.NEXT)
        t.sink, t.tensor, t.due = self.sink, Tensor, 6
        t.full, t.bell, t.begun = self.called("full"), self.called("bell"), self.called("begun")
        t.rows, t.flags = self.called("rows", 3), self.called("flags", 512)
        t.grad, t.modes = lambda: self.grad, lambda: self.modes
        self.grad = self.modes = False
        self.iterator = types.SimpleNamespace(_send_idx=0, _rcvd_idx=0, _task_info={})
        self.make()
        for name in ("placing", "placed", "arriving", "calling", "handing"):
            setattr(self, name, getattr(module, name)(getattr(self, name + "_python")))

    def called(self, name, gives=None):
        def function(*args):
            self.events.append((name, [dict(a) if type(a) is dict else a for a in args]))
            if self.random.random() < 0.1:
                raise LookupError(name)
            return gives
        return function

    def make(self):
        r = self.random
        d = self.made = type("Delivering", (self.module.Delivering,), {})()
        d.loader, d.number, d.worker, d.single = r.randrange(9), r.randrange(9), r.choice([-1, -2, -2]), r.randrange(2)
        d.training, d.notes, d.arrived = self.training, r.choice([{"delivered": 0}] * 9 + [{}, {"delivered": "x"}]), {}
        d.ids = r.choice([None] * 9 + [len])
        self.iterator._dptrace = r.choice([d] * 12 + [None])

    def placing_python(self, args, kwargs):
        self.events.append(("place",))
        self.made.sending = 0
        return self.random.choice([self.made, None])

    def placed_python(self, d, result, args, kwargs):
        self.events.append(("placed", d is not None))
        if d is not None:
            d.index = None

    def arriving_python(self, token, result, args, kwargs):
        self.events.append(("arrive", result))

    def calling_python(self, args, kwargs):
        self.events.append(("call",))
        return self.random.choice([self.made, None])

    def handing_python(self, d, data, args, kwargs):
        t = self.training
        self.events.append(("hand", t.calls, 0 <= t.own_ns <= 20000 * (2 + 5 * (len(self.events) + 1))))
        t.calls = t.own_ns = 0
        t.due = self.random.choice([0, 2, 9])

    def place(self):
        r, i, args = self.random, self.iterator, (self.iterator,)
        if r.random() < 0.9:
            self.module.indexed(None, r.choice([integers(r), [1, 2, 3], (4, 5), 6, 1 << 70, None, ["a"], [], [True]]), args, None)
        token = self.placing(args, None)
        if r.random() < 0.9:
            if type(i._send_idx) is int:
                i._task_info[i._send_idx] = r.choice([(r.randrange(4),)] * 9 + [(0, "data"), (), None, ("x",), (True,)])
                i._send_idx += 1
            if r.random() < 0.1:
                i._send_idx = r.choice([r.randrange(99), True, "x", 0])
        if r.random() < 0.05:
            i._task_info = r.choice([{}, [], None])
        try:
            self.placed(token, None, args, None)
        finally:
            i._task_info = i._task_info if type(i._task_info) is dict else {}
            i._send_idx = i._send_idx if type(i._send_idx) is int else 0

    def arrive(self):
        r = self.random
        batch = self.iterator._rcvd_idx + r.randrange(3) if r.random() < 0.9 else r.choice([True, "x", None])
        self.arriving(None, r.choice([(True, (batch, "data"))] * 9 + [(False, None)]),
                      (self.iterator,), None)

    def data(self, depth=0):
        r = self.random
        kind = r.randrange(9 if depth < 5 else 4)
        if kind < 4:
            return Tensor(r.choice([(1, 2), (5,), (), (True,), ("x",), (1,)]))
        if kind < 8:
            return r.choice([lambda *a: list(a), lambda *a: a, lambda *a: dict(enumerate(a))])(*[self.data(depth + 1)
                                                                                               for _ in range(r.choice([0, 1, 1, 2]))])
        return r.choice([None, 3, "text"])

    def next(self):
        r, i, t, args = self.random, self.iterator, self.training, (self.iterator,)
        self.grad, self.modes = r.choice([False, True, True, 1]), r.random() < 0.1
        t.taken, t.ran, t.watched, t.look, t.armed, t.bits = [r.choice([0, 0, 1]) for _ in range(6)]
        t.last, t.grads_from, t.grads_to, t.restarts = r.sample(range(99), 4)
        token = self.calling(args, None)
        i._rcvd_idx = r.choice([0, 7, True, "x", i._send_idx]) if r.random() < 0.1 else i._rcvd_idx + 1
        if r.random() < 0.1:
            i._in_order = r.choice([True, False])
        t.child = r.choice([None] * 19 + [3])
        try:
            self.handing(token, self.data(), args, None)
        finally:
            i._rcvd_idx = i._rcvd_idx if type(i._rcvd_idx) is int else 0

    def state(self):
        d, t = self.made, self.training
        notes = dict(d.notes) if type(d.notes) is dict else None
        return (d.did if d.t_next else None, d.sending, d.got, repr(d.index) if type(d.index) is not set else set, notes, sorted(d.arrived), t.calls, t.delivered, t.then, t.bits, t.grads_from,
                self.sink.number, self.sink.head, self.sink.bell, sys.getrefcount(d), sys.getrefcount(t))

    def drain(self):
        while self.drained < self.sink.head:
            at = 128 + self.drained % 512
            length, kind, pad = struct.unpack_from("<IHH", self.ring, at)
            self.drained += length
            payload = bytes(self.ring[at + 24:at + length - pad])
            if kind == 5:
                self.records.append((kind, payload[:16], payload[24:]))  # but for the time
            elif kind == 7:
                values = struct.unpack("<" + self.NEXT, payload)
                self.records.append((kind, values[:5], values[6] > 0, values[7:]))
        struct.pack_into("<Q", self.ring, 16, self.sink.head)

    def step(self):
        r, does = self.random, self.random.random()
        if does < 0.02:
            self.make()
        elif does < 0.04:
            self.training.put = r.choice([None, self.training.put])
        elif does < 0.35:
            self.place()
        elif does < 0.6:
            self.arrive()
        elif does < 0.9:
            self.next()
        elif does < 0.95:
            self.sink.bell = self.sink.head + r.choice([0, 100])
        else:
            self.drain()

    def run(self):
        for _ in range(60):
            try:
                self.step()
            except LookupError:
                self.events.append(("raised",))
            self.events.append(("state",) + self.state())
        self.drain()
        return self.records


class Index:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number

    def __repr__(self):
        return "Index"


def integers(r):
    each = [r.randrange(-1 << 63, 1 << 63) for _ in range(r.choice([0, 1, 5, 40]))]
    if each and r.random() < 0.1:
        each[r.randrange(len(each))] = r.choice([1 << 63, -(1 << 63) - 1, True, None, 1.0, Index(2), "1"])
    return r.choice([list, list, list, tuple, tuple, set])(each) if r.random() < 0.97 else [7] * r.choice([4096, 4097])


def value(code, r):
    bits = 8 * struct.calcsize("<" + code)
    low, high = (0, 1 << bits) if code.isupper() else (-1 << bits - 1, 1 << bits - 1)
    return r.choice([low, high - 1, r.randrange(low, high)])


def outcome(function, *args):
    try:
        return "gave", function(*args)
    except Exception as e:
        return "raised", type(e)


def sample(a: int, b=(1, 2), *, c: "int" = 3) -> str:
    """What it says."""
    return a, b, c


class Holder:
    def method(self, a, *, b=2):
        """A method's."""
        return self, a, b


def plain(module, original):
    return module.Around(original, None, None, None, None)


class Manners(unittest.TestCase):
    """A wrapper passes for what it wraps."""

    @each
    def test_introspection(self, module):
        wrapped = plain(module, sample)
        self.assertEqual(inspect.signature(wrapped), inspect.signature(sample))
        for name in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
            self.assertIs(getattr(wrapped, name), getattr(sample, name), name)
        self.assertEqual(typing.get_type_hints(wrapped), {"a": int, "c": int, "return": str})
        self.assertEqual(inspect.getsource(wrapped), inspect.getsource(sample))
        self.assertTrue(inspect.isfunction(wrapped) and inspect.isroutine(wrapped) and callable(wrapped))
        self.assertIsInstance(wrapped, collections.abc.Callable)
        self.assertIsInstance(wrapped, types.FunctionType)
        self.assertEqual(inspect.getdoc(wrapped), "What it says.")

        @functools.wraps(wrapped)
        def outer(*args, **kwargs):
            return wrapped(*args, **kwargs)
        self.assertEqual(inspect.signature(outer), inspect.signature(sample))
        self.assertIs(module.original_of(wrapped), sample)
        self.assertIsNone(module.original_of(sample))
        self.assertIsNone(module.original_of(outer))
        self.assertIsNone(module.original_of(3))

    @NATIVE
    def test_nothing_is_different_natively(self):
        wrapped = plain(native, sample)
        for name in ("__code__", "__defaults__", "__kwdefaults__", "__dict__", "__closure__", "__globals__"):
            self.assertIs(getattr(wrapped, name), getattr(sample, name), name)
        self.assertEqual(inspect.getfullargspec(wrapped), inspect.getfullargspec(sample))
        self.assertEqual(inspect.getsourcefile(wrapped), inspect.getsourcefile(sample))
        self.assertIs(inspect.unwrap(wrapped), wrapped)
        self.assertFalse(hasattr(wrapped, "__wrapped__"))
        self.assertEqual((repr(wrapped), str(wrapped), dir(wrapped), wrapped.__class__), (repr(sample), str(sample), dir(sample), type(sample)))
        self.assertEqual(vars(wrapped), vars(sample))
        wrapped.mark = 1
        self.assertEqual(sample.mark, 1)
        del wrapped.mark
        self.assertFalse(hasattr(sample, "mark"))
        with self.assertRaises(AttributeError):
            wrapped.mark

    @each
    def test_methods(self, module):
        class Own(Holder):
            method = plain(module, Holder.method)
        own = Own()
        self.assertEqual(own.method(1, b=3), (own, 1, 3))
        self.assertEqual(Own.method(own, 1), (own, 1, 2))
        bound = own.method
        self.assertIs(type(bound), types.MethodType)
        self.assertEqual((bound(4), bound.__self__, bound.__name__), ((own, 4, 2), own, "method"))
        self.assertEqual(inspect.signature(bound), inspect.signature(Holder().method))
        self.assertEqual(inspect.signature(Own.method), inspect.signature(Holder.method))
        self.assertEqual(bound, own.method)
        self.assertIs(Own.method, Own.__dict__["method"])

    @each
    def test_init(self, module):
        class Own:
            def __init__(self, a, b=2):
                self.a = a
        before = inspect.signature(Own), inspect.getfullargspec(Own.__init__)
        Own.__init__ = plain(module, Own.__init__)
        self.assertEqual(Own(5).a, 5)
        self.assertEqual(inspect.signature(Own), before[0])
        if module is not twin:
            self.assertEqual(inspect.getfullargspec(Own.__init__), before[1])
        with self.assertRaisesRegex(TypeError, "missing 1 required positional argument: 'a'"):
            Own()

    @each
    def test_pickle_and_copy(self, module):
        original = sample
        try:
            globals()["sample"] = wrapped = plain(module, original)
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                self.assertIs(pickle.loads(pickle.dumps(wrapped, protocol)), wrapped)
                self.assertIs(pickle.loads(pickle._dumps(wrapped, protocol)), wrapped)
            self.assertIs(copy.copy(wrapped), wrapped)
            self.assertIs(copy.deepcopy([wrapped])[0], wrapped)
        finally:
            globals()["sample"] = original
        with self.assertRaises(pickle.PicklingError):  # it is no longer there
            pickle.dumps(wrapped)
        if module is not twin:  # what is no function goes as it would without us
            self.assertEqual(pickle.loads(pickle.dumps(plain(module, functools.partial(divmod, 7))))(2), (3, 1))
        holder = Holder
        original = Holder.method
        try:
            Holder.method = plain(module, original)
            bound = pickle.loads(pickle.dumps(Holder().method))
            self.assertIs(bound.__func__, holder.method)
        finally:
            Holder.method = original

    @each
    def test_identity(self, module):
        one, other = plain(module, sample), plain(module, sample)
        self.assertTrue(one == one and one != other)
        self.assertEqual({one: 1, other: 2}[one], 1)
        self.assertEqual(hash(one), hash(one))

    @each
    def test_what_is_asked_of_a_users_object(self, module):
        """Nothing, as it is wrapped and called."""
        class Delegating:
            def __getattribute__(self, name):
                raise RuntimeError(name)

            def __call__(self, x):
                return x + 1
        called = plain(module, Delegating())
        self.assertEqual(called(3), 4)

    @each
    def test_memory(self, module):
        def local():
            pass
        wrapped = plain(module, local)
        there = weakref.ref(wrapped)
        del wrapped
        self.assertIsNone(there())
        wrapped = plain(module, local)
        there = weakref.ref(wrapped)
        local.loop = wrapped
        del wrapped, local
        gc.collect()
        self.assertIsNone(there())

        class Own:
            pass
        own = Own()
        own.map = memoryview(bytearray(128 + 64))  # collected before what is made of it (gh-77894)
        own.sink = module.Sink(own.map, 64, 128, 1, 2)
        own.record = module.Record(own.sink, 1, "I")
        own.peeks = module.Peeks()
        own.peeks.add(0, 0, 0, 0, own)
        own.places = module.Places()
        own.places.add({"a": own}, "a", own)
        own.integers = module.Integers(own.sink, 1, "I")
        own.fetching, own.serving = type("F", (module.Fetching,), {})(), type("S", (module.Serving,), {})()
        own.fetching.serving, own.serving.done, own.fetching.asked, own.serving.record = own.serving, own.fetching, [own], own.record
        own.entering, own.leaving = module.entering(own.__init__), module.leaving(own.__init__)
        own.around = module.Around(own.record, own, None, None, own)
        there = weakref.ref(own)
        del own
        gc.collect()
        self.assertIsNone(there())

    @each
    def test_tracebacks(self, module):
        """Nothing of ours changes what was raised: identity, traceback, context, cause."""
        kept = []

        def raises(depth):
            if depth:
                return raises(depth - 1)
            try:
                {}["k"]
            except KeyError:
                e = ValueError("v")
                kept.append(e)
                raise e

        def lines(function):
            try:
                function(3)
            except ValueError as e:
                self.assertIs(e, kept[-1])
                return described(e)
        wrapped = module.Around(raises, lambda *a: 1, None, lambda token, raised, args, kwargs: self.assertIs(raised, kept[-1]), None)
        self.assertEqual(lines(raises), lines(wrapped))
        if module is not twin:
            try:
                wrapped(0)
            except ValueError as e:
                self.assertIs(e.__traceback__.tb_next.tb_frame.f_code, raises.__code__)

    @each
    def test_warnings_level(self, module):
        if module is twin:
            return
        import warnings

        def warns():
            warnings.warn("w", stacklevel=2)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            plain(module, warns)()
        self.assertEqual(seen[0].filename, __file__)

    @NATIVE
    def test_recursion(self):
        """As many levels as without us."""
        state = {}

        def down(n):
            state["n"] = n
            state["f"](n + 1)

        def through_c(n):
            state["n"] = n
            max([n], key=lambda n: state["f"](n + 1))

        def levels(function):
            state["f"] = function
            try:
                function(0)
            except RecursionError:
                return state["n"]
        for function in (down, through_c):
            without = levels(function)
            self.assertEqual(levels(plain(native, function)), without)
            self.assertEqual(levels(native.Around(function, lambda *a: 1, lambda *a: 1, lambda *a: 1, None)), without)
            self.assertEqual(levels(function), without, "what was given back was not taken")

    @each
    def test_threads(self, module):
        done = []
        wrapped = module.Around(lambda x: x, lambda a, k: a, lambda token, result, a, k: done.append(token == (result,)), None, None)
        threads = [threading.Thread(target=lambda: [wrapped(i) for i in range(2000)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual((len(done), all(done)), (8000, True))

    @each
    def test_arguments(self, module):
        for call in (lambda: module.Around(sample), lambda: module.Record(3, 1, "I"), lambda: module.Sink(bytearray(200)),
                     lambda: module.Sink(3, 64, 128, 1, 2), lambda: module.Peeks(1)):
            self.assertEqual(outcome(call), ("raised", TypeError))
        for capacity, after, head, tail in ((0, 128, 1, 2), (60, 128, 1, 2), (64, 127, 1, 2), (80, 128, 1, 2), (64, 128, 16, 2), (64, 128, 1, 16)):
            self.assertEqual(outcome(module.Sink, bytearray(128 + 64), capacity, after, head, tail), ("raised", ValueError))
        self.assertEqual(outcome(module.Sink, bytes(128 + 64), 64, 128, 1, 2), ("raised", BufferError))
        sink = module.Sink(bytearray(128 + 64), 64, 128, 1, 2)
        for form in ("l", "5I", "B" * 32, "<I"):
            self.assertEqual(outcome(module.Record, sink, 1, form), ("raised", struct.error))
            self.assertEqual(outcome(module.Integers, sink, 1, form), ("raised", struct.error))
        self.assertEqual(outcome(module.Record, sink, 1 << 16, "I"), ("raised", struct.error))
        self.assertEqual(outcome(sink.put, 1, "text"), ("raised", TypeError))


class Rings(unittest.TestCase):
    @each
    def test_layout(self, module):
        """A record as PROTOCOL.md has it, and the clock and the thread in it."""
        ring = bytearray(128 + 256)
        sink = module.Sink(ring, 256, 128, 1, 2)
        before = module.now()
        self.assertTrue(sink.put(7, b"12345"))
        head = dict(zip([name for name, _ in layouts.RECORD_FIELDS], layouts.packed(layouts.RECORD_FIELDS).unpack_from(ring, 128)))
        self.assertTrue(before <= head.pop("t_ns") <= module.now())
        self.assertEqual(head, {"length": 32, "type": 7, "pad": 3, "thread": threading.get_ident() & 0xFFFFFFFF, "number": 0})
        self.assertEqual((ring[152:157], struct.unpack_from("<Q", ring, 8)[0], sink.head), (b"12345", 32, 32))
        self.assertTrue(module.Record(sink, 9, "Hq")(5, 1, -2, b"x"))
        self.assertEqual(struct.unpack_from("<IHHQIIHq1s", ring, 160), (40, 9, 5, 5, threading.get_ident() & 0xFFFFFFFF, 1, 1, -2, b"x"))

    @each
    def test_close(self, module):
        import mmap
        ring = mmap.mmap(-1, 4096)
        sink = module.Sink(ring, 256, 128, 1, 2)
        record = module.Record(sink, 1, "I")
        sink.close()
        self.assertEqual((sink.put(1, b""), record(1, 2)), (False, False))
        ring.close()
        sink.close()

    @each
    def test_clocks(self, module):
        import time
        for ours, python in ((module.now, time.monotonic_ns), (module.cpu, time.thread_time_ns)):
            a, b, c = python(), ours(), python()
            self.assertTrue(a <= b <= c, (a, b, c))


class Loading(unittest.TestCase):
    def python(self, program, **environ):
        run = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, %r)\n" % PYTHON + program], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=dict(os.environ, **environ))
        self.assertEqual((run.returncode, run.stderr.decode()), (0, ""))
        return run.stdout.decode().split("\n")[0]

    PRINT = "from dptrace_hook.patch import load; print(load.native.__name__, load.why, '_dptrace_native' in sys.modules)"

    @NATIVE
    def test_native_is_taken_where_it_can_be(self):
        self.assertEqual(self.python(self.PRINT, DPTRACE_NATIVE=""), "_dptrace_native  False")

    def test_the_twin_on_request(self):
        self.assertEqual(self.python(self.PRINT, DPTRACE_NATIVE="0"), "dptrace_hook.patch.twin DPTRACE_NATIVE=0 False")

    @NATIVE
    def test_a_file_that_cannot_be_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            to = os.path.join(folder, "dptrace_hook")
            shutil.copytree(os.path.join(PYTHON, "dptrace_hook"), to)
            with open(os.path.join(to, "native", os.uname().machine + ".abi3.so"), "r+b") as f:
                f.truncate(100)
            said = self.python("sys.path[0] = %r\n" % folder + self.PRINT)
            self.assertRegex(said, "^dptrace_hook.patch.twin ImportError: .*abi3.so")
            shutil.rmtree(os.path.join(to, "native"))
            said = self.python("sys.path[0] = %r\n" % folder + self.PRINT)
            self.assertRegex(said, "^dptrace_hook.patch.twin ImportError: .*abi3.so")

    def test_other_machines(self):
        said = self.python("import os\nos.uname = lambda u=os.uname(): type(u)(u[:4] + ('riscv64',))\n" + self.PRINT)
        self.assertRegex(said, "^dptrace_hook.patch.twin ")

    @NATIVE
    def test_one_interpreter_only(self):
        said = self.python("""
try:
    import _xxsubinterpreters as several
except ImportError:
    import _interpreters as several
from dptrace_hook.patch import load
assert load.why == ""
try:
    one = several.create("legacy") if sys.version_info >= (3, 13) else several.create(isolated=False)
except TypeError:
    one = several.create()
several.run_string(one, "import sys; sys.path.insert(0, %r); from dptrace_hook.patch import load; print(load.native.__name__, load.why)" % sys.path[0])
several.destroy(one)
""")
        self.assertEqual(said, "dptrace_hook.patch.twin ImportError: loaded before in this process")

    def test_at_the_end_of_the_interpreter(self):
        """The globals of the callbacks' module are None: the original is called, and nothing is said."""
        for name in BOTH:
            said = self.python("""
import types
from dptrace_hook.patch import load, twin
M = twin if %r == "twin" else load.native
other = types.ModuleType("other")
exec('''
def needed(*args): raise ValueError
def before(args, kwargs): return needed.x
def after(token, result, args, kwargs): return needed.x
def failed(token, raised, args, kwargs): return needed.x
def theirs(e): return needed.x
def original(text, ok):
    write(1, text)
    return {}["none"] if not ok else 5
''', other.__dict__)
class Late:
    def __init__(self):
        self.write, self.KeyError = __import__("os").write, KeyError
        other.original.__globals__["write"] = self.write
        self.wrapped = [M.Around(other.original, other.before, other.after, other.failed, other.theirs),
                        M.Around(other.original, None, other.after, other.failed, other.theirs)]
        self.cleared = other.__dict__
    def __del__(self):
        for name in list(self.cleared):
            if name != "write" and not name.startswith("__"):
                self.cleared[name] = None
        if type(self.wrapped[0]).__name__ == "function":
            for name in list(self.wrapped[0].__globals__):
                if name != "__builtins__":
                    self.wrapped[0].__globals__[name] = None
        for each in self.wrapped:
            each(b"called ", True)
            try:
                each(b"raised ", False)
            except self.KeyError:
                self.write(1, b"as it should ")
sys.late = Late()
""" % name)
            self.assertEqual(said, 2 * "called raised as it should ", name)

    def test_the_files(self):
        """They want no library and no version of a symbol, and the same of the interpreter on each machine."""
        wanted = []
        for machine in ("x86_64", "aarch64"):
            with open(os.path.join(PYTHON, "dptrace_hook", "native", machine + ".abi3.so"), "rb") as f:
                tags, undefined = elf(f.read())
            self.assertFalse(tags & {1, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFC, 15, 29}, machine)
            wanted.append(undefined)
        self.assertEqual(wanted[0], wanted[1])
        self.assertGreater(len(wanted[0]), 40)
        if native is not twin:
            here = ctypes.CDLL(None)
            weak = {name for name, binding in wanted[0] if binding == 2}
            self.assertEqual(weak, {"Py_EnterRecursiveCall", "Py_LeaveRecursiveCall", "PyObject_GC_IsTracked"})
            self.assertEqual([name for name, _ in wanted[0] if name not in weak and not hasattr(here, name)], [])


def elf(data):
    """(tags of the dynamic section, {(name, binding) of each undefined symbol})"""
    sections, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    found = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * size) for i in range(count)]
    tags, undefined = set(), set()
    for _, kind, _, _, at, length, link, _, _, _ in found:
        if kind == 6:
            tags |= {struct.unpack_from("<q", data, at + i)[0] for i in range(0, length, 16)}
        if kind == 11:
            for i in range(24, length, 24):
                name, info, _, section = struct.unpack_from("<IBBH", data, at + i)
                if section == 0:
                    begin = found[link][4] + name
                    undefined.add((data[begin:data.index(b"\0", begin)].decode(), info >> 4))
    return tags, undefined


@unittest.skipUnless(hasattr(sys, "gettotalrefcount") and native is not twin, "no interpreter that counts all references")
class References(unittest.TestCase):
    CALLS = int(os.environ.get("DPTRACE_TEST_CALLS", "100000"))

    def everything(self):
        """Calls that together go through every line of the helper's that is not an interpreter's failure."""
        M = native
        ring = bytearray(128 + 512)
        sink = M.Sink(ring, 512, 128, 1, 2)
        record = M.Record(sink, 3, "BHIQhiq")
        memory = (ctypes.c_ubyte * 64)()
        at = ctypes.addressof(memory)
        peeks = M.Peeks()
        peeks.add(at, 8, at + 8, 8, memory)
        peeks.add(at, 8, at + 8, 8, memory, at + 16, 0)

        integers, places, place = M.Integers(sink, 3, "I"), M.Places(), {}
        workers = [Worker(M, i) for i in range(8)] + [Iterating(M, i) for i in range(8)]
        places.add(place, "a", None)

        class Own:
            pass

        def nothing(*args):
            return None

        def raises(*args, **kwargs):
            raise ValueError(args)

        def interrupts(*args):
            raise KeyboardInterrupt

        def tried(function, *args, **kwargs):
            try:
                function(*args, **kwargs)
            except BaseException:
                pass
        held = [{1: (2, 3)}, ({}, 5), sample, int, Own, 7] * 20
        callbacks = (None, nothing, raises, interrupts)
        arounds = [M.Around(f, b, a, fa, t) for f in (sample, raises) for b in callbacks for a in callbacks for fa in callbacks[1:]
                   for t in (None, nothing, lambda e: True, raises, interrupts)]

        def step(i):
            around = arounds[i % len(arounds)]
            tried(around, i, c=i)
            tried(around, *[i])
            Own.method = around
            tried(Own().method, i)
            tried(Own().method.__func__, i)
            tried(M.Around, sample, nothing, None, None, None)
            tried(M.Around, sample)
            tried(M.Around, sample, 1, 2, 3, 4, a=5)
            tried(getattr, around, "__code__")
            tried(getattr, around, "none")
            tried(getattr, around, "__call__")
            tried(setattr, around, "x", i)
            tried(delattr, around, "x")
            tried(repr, around)
            tried(copy.copy, around)
            tried(weakref.ref, around)
            tried(M.original_of, around)
            tried(M.original_of, i)
            tried(M.now)
            tried(M.cpu)
            tried(sink.put, 1, b"abc", 7)
            tried(sink.put, 1, bytearray(9))
            tried(sink.put, 1, "abc")
            tried(sink.put, -1, b"abc")
            tried(sink.put)
            tried(record, i, 1, 2, 3, 4, 5, 6, 7)
            tried(record, i, 1, 2, 3, 4, 5, 6, 1 << 64, b"abc")
            tried(record, i, 1, 2, 3, 4, 5, Index(6), 7, bytearray(3))
            tried(record, i, 1, 2, 3, 4, 5, None, 7)
            tried(record, i, 1, 2, 3, 4, 5, 6, 7, "abc")
            tried(record, 1)
            struct.pack_into("<Q", ring, 16, sink.head)
            memory[i % 32] = i & 255
            tried(peeks.moved)
            tried(peeks.moved, 1, 2)
            tried(peeks.moved, "x")
            tried(peeks.last, 0)
            tried(peeks.last, 9)
            tried(peeks.set, 1, at, 8, at + 8, 8, memory, at + 16, memory[16])
            tried(peeks.set, 9, at, 8, at + 8, 8, memory)
            tried(peeks.set, 0, at, 80, at + 8, 8, memory)
            tried(peeks.add, at, "x", at, 8, memory)
            tried(integers, i, 1, [1, 2, i])
            tried(integers, i, 1, (1, 2, i), [])
            tried(integers, i, 1, [1, 2, 1 << 63])
            tried(integers, i, 1, 2)
            tried(integers, i)
            tried(integers, i, -1, [1])
            tried(M.multiple, [1, i], 3)
            tried(M.multiple, [1, 1 << 64], 3)
            workers[i % len(workers)].random.seed(i)
            for _ in range(4):
                tried(workers[i % len(workers)].step)
            del workers[i % len(workers)].events[:], workers[i % len(workers)].records[:]
            place["a"] = i if i & 1 else None
            tried(places.changed)
            tried(places.set, 0, place, "a", i if i & 1 else None)
            tried(places.changed)
            tried(places.set, 1, place, "a", i)
            tried(places.set, 1, place, 3, i)
            tried(M.picked, held, (dict, int), (tuple,))
            tried(M.picked, held, (dict, int))
            tried(M.picked, held, [dict], ())
            tried(M.referents, held, (dict, int), (tuple,))
            tried(M.referents, held, (dict,), [tuple])
            tried(M.referents, tuple(held), (), ())
            if i % 16 == 0:
                tried(M.Places().add, place, "a", i)
                other = M.Sink(bytearray(200), 64, 128, 1, 2)
                tried(M.Record(other, 1, "I"), 1, 2)
                other.close()
                tried(M.Sink, memoryview(bytearray(200)), 64, 128, 1, 2)
                tried(M.Sink, bytearray(200), 64, 128, 1, 200)
                tried(M.Sink, bytes(200), 64, 128, 1, 2)
                tried(M.Record, other, 1, "z")
                new = M.Peeks()
                new.add(0, 0, 0, 0, new)
        return step

    def test_none_is_lost(self):
        step = self.everything()
        for i in range(2000):
            step(i)
        totals = []
        for part in range(4):
            for i in range(self.CALLS // 80):  # a step is about twenty calls
                step(i)
            gc.collect()
            totals.append(sys.gettotalrefcount())
        self.assertLess(max(totals) - min(totals), 100, totals)


if __name__ == "__main__":
    unittest.main()
