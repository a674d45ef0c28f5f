"""Random programs for the helper and its twin: calls of wrappers, a worker, an iterator. What can be seen of one is its result."""
import ctypes
import random
import struct
import sys
import types

from twins import BOTH, described, native, twin
from native_values import integers


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
        r, s = self.random, self.serving
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
