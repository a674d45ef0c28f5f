"""Does the code that fetches samples name an attribute?"""
import functools
import types

from . import discover

MAX_CODES = 500
_ENTRY = ("__getitem__", "__getitems__", "__iter__", "__next__", "__call__", "forward")  # what a fetcher calls, directly or not
_ANY = {"getattr", "__dict__", "vars", "__getattribute__", "attrgetter", "eval", "exec"}  # may name it without spelling it
_HOLDERS = (staticmethod, classmethod)


class Names:
    """The names in the code of a fetch: of the methods that a fetcher calls, and of methods and functions named there."""

    def __init__(self, classes, functions, dataset):
        self.methods, self.names, self.learnt, self.seen = {}, set(), set(), set()
        self.todo = [f for f in functions if type(f) is types.FunctionType]
        for cls in classes:
            self.learn(cls)
        self.known = any(type(_function(k.__dict__.get(name))) is types.FunctionType for k in dataset.__mro__ for name in _ENTRY[:3])
        for name in _ENTRY:
            self.todo += self.methods.get(name, ())
        while self.todo and len(self.seen) < MAX_CODES:
            self.follow(self.todo.pop())
        self.cut = bool(self.todo)

    def read(self, attribute):
        """yes, no; "" where the code is not Python's, or may find it without naming it."""
        if not self.known or not attribute:
            return ""
        if attribute in self.names:
            return "yes"
        return "" if self.cut or not self.names.isdisjoint(_ANY) else "no"

    def learn(self, cls):
        for k in cls.__mro__:
            if id(k) not in self.learnt and k is not object:
                self.learnt.add(id(k))
                for name, value in list(k.__dict__.items()):
                    f = _function(value)
                    if type(f) is types.FunctionType:
                        self.methods.setdefault(name, []).append(f)

    def follow(self, f):
        if id(f.__code__) in self.seen:
            return
        self.seen.add(id(f.__code__))
        names = spelled(f.__code__)
        self.names |= names
        for cell in f.__closure__ or ():
            try:
                inner = cell.cell_contents
            except ValueError:  # empty
                continue
            if type(inner) is types.FunctionType:
                self.todo.append(inner)
        for name in names:
            self.todo += self.methods.get(name, ())
            self.global_(f.__globals__.get(name), names)

    def global_(self, value, names):
        """A global of the user's that the code names: a function, a class, or a module one deep."""
        if type(value) is types.ModuleType:
            if not discover.library(value.__name__):
                for name in names & set(value.__dict__):
                    if type(value.__dict__[name]) is not types.ModuleType:
                        self.global_(value.__dict__[name], names)
            return
        value = _function(value)
        if type(value) is types.FunctionType:
            if not discover.library(value.__module__):
                self.todo.append(value)
        elif issubclass(type(value), type) and not discover.library(value.__module__):
            for method in list(value.__dict__.values()):
                if type(_function(method)) is types.FunctionType:
                    self.todo.append(_function(method))


def _function(value):
    """What a class or module holds, down to the function that it was made of."""
    for _ in range(8):
        cls = type(value)
        if cls in _HOLDERS:
            value = value.__func__
        elif cls is property:
            value = value.fget
        elif cls is functools.partial:
            value = value.func
        elif cls is functools.cached_property:
            value = value.func
        elif cls is functools._lru_cache_wrapper:
            value = value.__wrapped__
        else:
            break
    return value


def spelled(code):
    """All names of attributes and globals in a code object and those inside of it, and its strings: getattr(self, "epoch")."""
    names, todo = set(), [code]
    while todo:
        c = todo.pop()
        names.update(c.co_names)
        names.update(k for k in c.co_consts if type(k) is str)
        todo += [k for k in c.co_consts if type(k) is types.CodeType]
    return names


_SHUFFLES = {"shuffle", "permutation", "permuted", "randperm"}
_MAX_STREAMS = 256
_streams = {}  # id of a class -> (the class, whether its code names one of these)


def shuffles(dataset):
    """Does the code of a stream name a shuffle? "yes"; "" where it does not, or where the stream is told not to."""
    cls = type(dataset)
    known = _streams.get(id(cls))
    if known is None:
        if len(_streams) >= _MAX_STREAMS:
            _streams.clear()
        names = set() if discover.library(cls.__dict__.get("__module__")) else Names([cls], (), cls).names
        known = _streams[id(cls)] = cls, not names.isdisjoint(_SHUFFLES)
    if not known[1]:
        return ""
    told = [v for k, v in list(discover.attributes_of(dataset, cls).items()) if type(k) is str and "shuffle" in k]
    return "" if any(v is False or v is None or (type(v) is int and v == 0) for v in told) else "yes"
