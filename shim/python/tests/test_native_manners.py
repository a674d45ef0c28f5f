"""Wrappers pass for what they wrap, natively and in Python; rings and clocks are those of PROTOCOL.md."""
import collections.abc
import copy
import functools
import gc
import inspect
import pickle
import struct
import threading
import types
import typing
import unittest
import weakref

import twins
from twins import NATIVE, Holder, described, each, native, outcome, plain, sample, twin

from dptrace_hook.record import layouts


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
            twins.sample = wrapped = plain(module, original)
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                self.assertIs(pickle.loads(pickle.dumps(wrapped, protocol)), wrapped)
                self.assertIs(pickle.loads(pickle._dumps(wrapped, protocol)), wrapped)
            self.assertIs(copy.copy(wrapped), wrapped)
            self.assertIs(copy.deepcopy([wrapped])[0], wrapped)
        finally:
            twins.sample = original
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


if __name__ == "__main__":
    unittest.main()
