"""What each transform of a chain takes, in fetches that are looked at (PROTOCOL.md, "Transforms").

A chain is an object that calls what it holds in turn, torchvision's Compose or torch.nn.Sequential, say. Nothing of the program's is
wrapped: sys.monitoring (Python 3.12 and later, PEP 669) calls us where the code of one of its places begins and returns, by local
events, which change no other code, and for the time of one fetch only. Not where the program has a debugger, a tracer or a profiler
of its own. Before 3.12 there is only sys.setprofile, which sees all calls, slows all code and is the program's to use: there chains
are named, and not timed.

A call of a chain counts if its places were called by the chain's own code, each once and in turn, and all of them returned; a call of
the same code by anybody else, or in another thread, is not looked at.
"""
import functools
import sys
import types
from _thread import get_ident
from itertools import islice

from ..record import guard, ring
from ..record.ring import cpu, mono
from . import objects

MAX_OBJECTS = 300  # looked at for chains
MAX_ITEMS = 64  # of a container, and of a chain
MAX_CHAINS = 8
MAX_EVENTS = 1 << 16  # of one fetch
MAX_DEPTH = 100  # frames from one call to the one that has led to it
MAX_STRANGERS = 64  # events of one fetch that are no place's of a chain; more: somebody else runs the same code, maybe in a recursion
NAME = "dptrace"  # of our tool, as sys.monitoring has it
_TOOLS = (4, 3)  # of six, those without a purpose of their own
_SUSPENDED = 0x20 | 0x80 | 0x200  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR of CPython's Include/cpython/code.h
_monitoring = getattr(sys, "monitoring", None)

_numbers = {}  # (path, class) of a place -> its number in this process
_spent = [0, mono()]  # ns of finding chains, since when

FREE_NS, SHARE = 20 * 10**6, 1000  # a process may spend so much on finding chains, then one part of its time


def after_fork():
    _numbers.clear()
    _spent[:] = 0, mono()
    stop()


def of(dataset, where):
    """The Chains of a fetcher's dataset; False: too much time was spent on finding such already."""
    c0 = cpu()
    if _spent[0] > FREE_NS and _spent[0] * SHARE > mono() - _spent[1]:
        return False
    found = Chains(dataset, where)
    ns = cpu() - c0
    _spent[0] += ns
    ring.ring.hook_ns += ns
    return found


def unable():
    """Why chains cannot be timed in this interpreter; ""."""
    if _monitoring is None or sys.version_info < (3, 12, 1):
        return "Python %d.%d" % sys.version_info[:2]
    return "free-threaded" if "t" in sys.abiflags else ""


def busy():
    """Whether the program has a tool of its own that watches code."""
    return sys.gettrace() is not None or sys.getprofile() is not None or any(
        _monitoring.get_tool(i) is not None for i in range(6))


class Place:
    __slots__ = ("number", "path", "name", "code", "why")

    def __init__(self, path, obj):
        self.path, self.name, self.number = path, named(obj), 0
        self.code, self.why = code_of(obj)


class Chain:
    __slots__ = ("number", "path", "name", "code", "places", "timed", "calls", "why", "same")

    def __init__(self, path, obj, items, call):
        self.path, self.name, self.number, self.same = path, named(obj), 0, False
        self.code, self.why = code_of(obj, call)
        self.places = [Place(at, o) for at, o in items]
        self.timed = tuple([p.code for p in self.places if p.code is not None])
        self.calls = [id(code) for code in self.timed]
        if not self.why and not self.timed:
            self.why = "not written in Python"


def named(obj):
    cls = type(obj)
    if cls is types.FunctionType or cls is types.BuiltinFunctionType:
        return obj.__qualname__
    if cls is types.MethodType:
        return named(obj.__func__)
    if cls is functools.partial:
        return "partial(%s)" % named(objects.partial(obj)[0])
    return objects.name(cls)


def code_of(obj, call=None):
    """(the code that a call of obj runs, "") or (None, why not)"""
    cls = type(obj)
    if cls is functools.partial:
        return code_of(objects.partial(obj)[0])
    if cls is types.MethodType:
        obj, cls = obj.__func__, type(obj.__func__)
    if cls is not types.FunctionType:
        module = sys.modules["torch"].nn.Module
        name = call or ("forward" if objects.derives(cls, module) else "__call__")
        if name in objects.attributes(obj):  # torch calls what an instance has of this name
            return None, "its own " + name
        obj = objects.member(cls, name)
        if type(obj) is not types.FunctionType:
            return None, "not written in Python"
    code = obj.__code__
    if code.co_flags & _SUSPENDED:
        return None, "a generator"
    if any(name != "__class__" for name in code.co_freevars):
        return None, "wrapped"  # all functions of one decorator have one code
    return code, ""


def chain(obj, cls, path):
    """The Chain that an object is; None."""
    torch_nn = sys.modules["torch"].nn
    d = objects.attributes_of(obj, cls)
    if objects.derives(cls, torch_nn.Sequential):
        modules = d.get("_modules")
        if id(type(modules)) in objects.DICTS:
            items = [("%s[%s]" % (path, k), v) for k, v in list(islice(dict.items(modules), MAX_ITEMS + 1))]
            return Chain(path, obj, items, "forward") if fits(items) else None
        return None
    held = d.get("transforms")
    if (type(held) is list or type(held) is tuple) and objects.member(cls, "__call__") is not None:
        items = [("%s.transforms[%d]" % (path, i), v) for i, v in enumerate(held[:MAX_ITEMS + 1])]
        if fits(items):
            return Chain(path, obj, items, "forward" if objects.derives(cls, torch_nn.Module) else "__call__")
    return None


def fits(items):
    """Whether these are what a chain holds: some, and all may be called."""
    return 0 < len(items) <= MAX_ITEMS and all(
        id(type(v)) not in objects.ATOMS and not issubclass(type(v), type) and objects.member(type(v), "__call__") is not None for _, v in items)


def find(dataset):
    """The chains that a dataset's attributes, and what these hold, lead to; and those in them."""
    found, seen, queue = [], set(), [("dataset", dataset)]
    for path, obj in queue:  # it grows as we go
        cls = type(obj)
        if id(cls) in objects.ATOMS or id(obj) in seen:
            continue
        if len(seen) >= MAX_OBJECTS or len(found) >= MAX_CHAINS:
            break
        seen.add(id(obj))
        if cls is types.MethodType:
            queue.append((path + ".__self__", obj.__self__))
        elif cls is types.FunctionType:
            for name, cell in zip(obj.__code__.co_freevars, obj.__closure__ or ()):
                try:
                    queue.append(("%s<closure %s>" % (path, name), cell.cell_contents))
                except ValueError:  # empty
                    continue
        elif cls is list or cls is tuple:
            queue += [("%s[%d]" % (path, i), v) for i, v in enumerate(obj)] if len(obj) <= MAX_ITEMS else []
        elif id(cls) in objects.DICTS:
            queue += [("%s[%r]" % (path, k), v) for k, v in list(islice(dict.items(obj), MAX_ITEMS)) if type(k) is str]
        else:
            one = chain(obj, cls, path)
            if one is not None:
                found.append(one)
            for name, value in list(islice(objects.attributes_of(obj, cls).items(), 2 * MAX_ITEMS)):
                if type(name) is str:
                    queue.append(("%s.%s" % (path, name), value))
    return found


class Chains:
    """The chains of one fetcher's dataset."""

    def __init__(self, dataset, where):
        self.all, self.why, self.watched = find(dataset), unable(), None
        self.alike()
        self.of, self.codes = {}, {}  # by the id of their code: chains; codes of chains and places
        for one in self.all:
            self.number(one, where)
            if not one.why and not self.why:
                self.of.setdefault(id(one.code), []).append(one)
                self.codes.update((id(code), code) for code in one.timed + (one.code,))

    def alike(self):
        """Two chains whose calls could not be told apart are not timed."""
        for one in self.all:
            for other in self.all:
                if one is not other and not one.why and not other.why and one.code is other.code and one.calls == other.calls:
                    one.same = other.same = True
        for one in self.all:
            one.why = one.why or ("two such chains" if one.same else "")

    def number(self, one, where):
        """Tells of a chain and of its places, once in a process."""
        for place in [one] + one.places:
            key = place.path, place.name, one.path, one.name
            known = key in _numbers
            place.number = _numbers.setdefault(key, len(_numbers) + 1)
            if not known:
                facts = {"transform": place.number, "chain": one.path, "place": one.places.index(place) if place is not one else -1,
                         "path": place.path, "class": place.name, "why": self.why or one.why or place.why}
                if place.code is not None:
                    facts.update(file=place.code.co_filename, line=place.code.co_firstlineno)
                ring.put_json(ring.TRANSFORM, dict(zip(("loader", "pass", "worker"), where), **facts))

    def begin(self):
        """A fetch is about to begin."""
        if self.codes and not busy():
            watched = Watched(self.of)
            if start(watched, list(self.codes.values())):
                self.watched = watched

    def end(self):
        """{number of a chain or place: [calls, ns]}, and ns that looking took of the fetch. Of chains of which a call has gone another
        way nothing is said: those that did not would be too few."""
        stop()
        watched, self.watched = self.watched, None
        if watched is None:
            return {}, 0
        if watched.strangers > MAX_STRANGERS or watched.events > MAX_EVENTS:
            return {}, watched.own
        other = {x.number for code in watched.other for one in self.of.get(code, ()) for x in [one] + one.places}
        return {number: each for number, each in watched.spent.items() if number not in other}, watched.own


class Call:
    """One of a chain or of a place, as long as it runs."""
    __slots__ = ("frame", "code", "parent", "chain", "inside", "began", "own")

    def __init__(self, frame, code, parent, chain):
        self.frame, self.code, self.parent, self.chain = id(frame), id(code), parent, chain
        self.inside = []  # of a chain: (id of the code, ns) of what it has called
        self.began = self.own = 0


class Watched:
    """One fetch. Its callbacks run in the thread that fetches; what is not its business is let go."""
    __slots__ = ("of", "thread", "open", "spent", "own", "events", "strangers", "module", "other")

    def __init__(self, of):
        self.of, self.thread, self.module = of, get_ident(), module_file()
        self.open = []  # Calls, the innermost last
        self.spent, self.own, self.events, self.strangers = {}, 0, 0, 0
        self.other = set()  # ids of the code of chains of which a call was none of those that are known

    def started(self, code, offset):
        t = mono()
        try:
            if get_ident() != self.thread:
                return None
            call = self.enter(sys._getframe(1), code)
            if call is None:
                self.own += mono() - t
                return _monitoring.DISABLE if self.strangers > MAX_STRANGERS or self.events > MAX_EVENTS else None
            call.began = now = mono()
            self.own += now - t
            call.own = self.own
        except Exception as e:
            self.of = {}
            if guard.theirs(e):
                raise
        return None

    def enter(self, frame, code):
        """The Call that begins; None: it is no business of ours."""
        self.events += 1
        parent, direct = self.nearest(frame)
        mine = id(code) in self.of
        if self.events > MAX_EVENTS or not (mine or direct):
            self.strangers += 1
            return None
        call = Call(frame, code, parent if direct else None, mine)
        self.open.append(call)
        return call

    def nearest(self, frame):
        """The innermost Call that is still running and has led to this frame, or None, and whether it is of a chain whose own code has
        called it. What an exception has ended is forgotten."""
        if not self.open:
            return None, False
        running, direct, below = {call.frame: i for i, call in enumerate(self.open)}, True, frame.f_back
        for _ in range(MAX_DEPTH):
            if below is None:
                break
            i = running.get(id(below))
            if i is not None and id(below.f_code) == self.open[i].code:
                del self.open[i + 1:]
                return self.open[i], direct and self.open[i].chain
            direct = direct and below.f_code.co_filename == self.module
            below = below.f_back
        del self.open[:]
        return None, False

    def returned(self, code, offset, result):
        t = mono()
        try:
            if get_ident() != self.thread:
                return None
            self.events += 1
            if self.events > MAX_EVENTS:
                return _monitoring.DISABLE
            me = id(sys._getframe(1))
            for i in range(len(self.open) - 1, -1, -1):
                call = self.open[i]
                if call.frame == me and call.code == id(code):
                    del self.open[i:]
                    self.leave(call, t - call.began - (self.own - call.own))
                    break
            self.own += mono() - t
        except Exception as e:
            self.of = {}
            if guard.theirs(e):
                raise
        return None

    def leave(self, call, ns):
        if call.parent is not None:
            call.parent.inside.append((call.code, ns))
        if call.chain:
            codes = [code for code, _ in call.inside]
            one = next((one for one in self.of.get(call.code, ()) if one.calls == codes and not one.why), None)
            if one is None:
                self.other.add(call.code)
                return
            self.add(one, ns)
            for place, (_, each) in zip([p for p in one.places if p.code is not None], call.inside):
                self.add(place, each)

    def add(self, place, ns):
        spent = self.spent.setdefault(place.number, [0, 0])
        spent[0] += 1
        spent[1] += max(ns, 0)


def module_file():
    """Where torch calls forward()."""
    call = objects.member(sys.modules["torch"].nn.Module, "__call__")
    return call.__code__.co_filename if type(call) is types.FunctionType else ""


_on = []  # (number of our tool, codes) while a fetch is watched


def start(watched, codes):
    """Has sys.monitoring call back. Reports whether it does."""
    stop()
    tool = next((i for i in _TOOLS if _monitoring.get_tool(i) is None), None)
    if tool is None:
        return False
    events = _monitoring.events
    _monitoring.use_tool_id(tool, NAME)
    _on.append((tool, codes))
    _monitoring.register_callback(tool, events.PY_START, watched.started)
    _monitoring.register_callback(tool, events.PY_RETURN, watched.returned)
    for code in codes:
        _monitoring.set_local_events(tool, code, events.PY_START | events.PY_RETURN)
    return True


def stop():
    """Nothing is watched any more."""
    while _on:
        tool, codes = _on.pop()
        if _monitoring.get_tool(tool) is not NAME:
            continue
        for code in codes:
            _monitoring.set_local_events(tool, code, 0)
        _monitoring.register_callback(tool, _monitoring.events.PY_START, None)
        _monitoring.register_callback(tool, _monitoring.events.PY_RETURN, None)
        _monitoring.free_tool_id(tool)
