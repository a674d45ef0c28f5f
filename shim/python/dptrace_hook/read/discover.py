"""Finds the generators that a dataset, its transforms and its collate function can reach.

Breadth first over instance dictionaries, slots, exact containers, closures, defaults, partials, bound methods, the
locals of running generators and the globals that the code names, what objects of C classes hold (insides.py); then over
the top level of the packages that the classes come from. Bounded in nodes, and never through the user's code: no getattr,
no ==, no hash, no repr, no iteration of anything but exact builtin containers, and no gc.get_referents of all that it
meets (it copies a forked worker's heap: 163 MB measured). What it has not looked at, it says (Walk.cut).
"""
import enum
import functools
import os
import random
import sys
import types
from collections import OrderedDict, defaultdict, deque
from itertools import islice

from ..record import guard
from . import insides, objects, rng

MAX_NODES = 4000
MAX_ITEMS = 64  # of a container
MAX_MODULES = 300  # of the packages searched

_ITERATORS = objects.ids(map, filter, zip, enumerate, reversed)


class Found:
    """A generator: where it hangs and how to look there again."""
    __slots__ = ("path", "obj", "kind", "role", "owner", "attr", "holder", "key", "source", "first", "last")

    def __init__(self, path, obj, kind, role, owner, attr="", holder=None, key=None, source=None):
        self.path, self.obj, self.kind, self.role, self.owner, self.attr = path, obj, kind, role, owner, attr
        self.holder, self.key = holder, key  # the dict or list and where in it; None: it stays
        self.source, self.first, self.last = source or ("", 0, 0)

    def held(self, obj):
        """What is in holder where this generator hangs."""
        return obj

    def through(self, region, obj):
        """The region of its state (twin.Peeks), where it may be read."""
        return region

    def current(self):
        """What hangs there now: a program may replace its generator."""
        holder = self.holder
        if holder is None:
            return self.obj
        if issubclass(type(holder), dict):  # not by [], which has a defaultdict make what is missing
            return dict.get(holder, self.key)
        try:
            return holder[self.key]
        except (KeyError, IndexError):
            return None


def role_of(owner, role):
    """Who draws from what an object holds. Samplers, shufflers and splits order the data; callables that are no datasets
    transform it."""
    if owner is None or type(owner) is types.ModuleType or type(owner) is types.FrameType or type(owner) is types.FunctionType:
        return role
    data, cls = sys.modules["torch.utils.data"], owner if type(owner) is type else type(owner)
    full = objects.name(cls).lower()
    if issubclass(cls, data.Sampler) or ".datapipes." in full or "shuffl" in full or "sampler" in full:
        return "order"
    if role == "dataset" and id(cls) not in objects.DICTS and id(cls) not in objects.SEQUENCES and not issubclass(cls, data.Dataset):
        return "transform" if any("__call__" in objects.members(k) for k in objects.mro(cls)) else role
    return role


class Walk:
    into_insides = True

    def __init__(self, taken=None):
        self.taken = taken  # asked about each object, its class and path: True if what it holds is not to be looked at
        self.found, self.seen, self.queue, self.left = [], set(), deque(), MAX_NODES
        self.packages, self.keep = [], []
        self.paths = set()
        self.cut = {}  # why -> [where first, how many were not looked at]

    def roots(self, dataset, collate):
        self.add(dataset, "dataset", "dataset", None)
        self.add(collate, "collate_fn", "collate", None)
        self.run()
        self.scan_packages()
        return self.found

    def leave(self, why, path, n):
        if n > 0:
            self.cut.setdefault(why, [path, 0])[1] += n

    def samplers(self, loader, dataset):
        """Who decides on the order, in the main process: role "order", whatever it hangs on."""
        self.seen.add(id(dataset))  # samplers hold it, as data_source
        for name in ("batch_sampler", "sampler", "generator"):
            self.add(objects.attributes(loader).get(name), name, "order", None)
        self.run()
        for found in self.found:
            found.role = "order"
        return self.found

    def iterator(self, iterator):
        self.add(iterator, "iterator", "iterator", None)
        self.run()
        return self.found

    # owner: the object that holds obj (None for a root); holder, key: where exactly
    def add(self, obj, path, role, owner, attr="", holder=None, key=None):
        cls = type(obj)
        if id(cls) in objects.ATOMS or id(obj) in self.seen:
            return
        self.seen.add(id(obj))
        kind = rng.kind_of(cls)
        if kind is not None:
            self.found.append(Found(objects.unlike(path, self.paths), obj, kind, role_of(owner, role), objects.owner_name(owner), attr, holder, key, source(owner)))
            return
        self.queue.append((obj, path, role))

    def run(self):
        while self.queue and self.left > 0:
            self.left -= 1
            self.visit(*self.queue.popleft())
        if self.queue:
            self.leave("nodes", self.queue[0][1], len(self.queue))
            self.queue.clear()

    def visit(self, obj, path, role):
        cls = type(obj)
        if self.taken is not None and self.taken(obj, cls, path):
            return
        if id(cls) in objects.DICTS:
            self.dictionary(obj, list(islice(dict.items(obj), MAX_ITEMS)), path, role)
        elif id(cls) in objects.SEQUENCES:
            whole = len(obj) <= MAX_ITEMS or id(type(next(iter(obj), None))) not in objects.ATOMS
            for i, v in enumerate(list(islice(obj, MAX_ITEMS if whole else 8))):
                self.add(v, "%s[%d]" % (path, i), role, obj, "", obj if cls is list else None, i)
            self.leave("items", path, len(obj) - MAX_ITEMS if whole else 0)
        elif cls is types.FunctionType:
            self.function(obj, path, "transform" if role == "dataset" else role)
        elif cls is types.MethodType:
            self.add(obj.__self__, path + ".__self__", role, obj)
            self.add(obj.__func__, path + ".__func__", role, obj)
        elif issubclass(cls, functools.partial):
            function, args, keywords = objects.partial(obj)
            self.add(function, path + ".func", role, obj)
            self.members(list(tuple.__iter__(args)), path + ".args", role, obj)
            for k, v in list(dict.items(keywords))[:MAX_ITEMS]:
                if type(k) is str:
                    self.add(v, "%s.keywords[%r]" % (path, k), role, obj, k, keywords, k)
        elif cls is types.GeneratorType:
            self.frame(obj, path, role)
        elif id(cls) in _ITERATORS:
            self.members(list(cls.__reduce__(obj)[1]), path, role, obj)
        elif issubclass(cls, type):
            self.class_(obj, path, role)
        elif cls is types.ModuleType or cls is types.CodeType or issubclass(cls, sys.modules["torch"].Tensor) or objects.module(cls) == "?":
            return
        elif not self.inside(obj, cls, path, role) and objects.module(cls) != "numpy" and objects.module(cls).partition(".")[0] not in objects.BARREN:
            self.instance(obj, cls, path, role)

    def dictionary(self, obj, items, path, role):
        for k, v in items:
            self.add(v, "%s[%s]" % (path, objects.key(k)), role, obj, k if type(k) is str else "", obj if objects.plain_key(k) else None, k)
            if self.into_insides:
                self.add(k, "%s<key %s>" % (path, objects.key(k)), role, obj)
        left = dict.__len__(obj) - len(items)
        if left and any(id(type(v)) not in objects.ATOMS for _, v in items):
            self.leave("items", path, left)

    def inside(self, obj, cls, path, role):
        """Of an object of a class written in C. False: it is of another."""
        held = insides.of(obj, cls) if self.into_insides else None if not issubclass(cls, objects.CODE_FREE) else ([], 0)
        if held is None:
            return False
        cached = insides.function_of(obj) if issubclass(cls, insides.Cached) else None
        if cached is not None:
            path = "lru_cache of %s.%s()" % (objects.main(cached.__module__), cached.__qualname__)
        for spelled, each in held[0]:
            self.add(each, path + spelled, role, obj)
        self.leave("items", path, held[1])
        return True

    def members(self, values, path, role, owner):
        for i, v in enumerate(values[:MAX_ITEMS]):
            self.add(v, "%s[%d]" % (path, i), role, owner)

    def instance(self, obj, cls, path, role):
        inner = role_of(obj, role)
        self.items(obj, cls, path, inner)
        self.leave("barred", "%s (%s)" % (path, objects.name(cls)), int(objects.barred(cls)))
        attributes = objects.attributes_of(obj, cls)
        member = issubclass(cls, enum.Enum)
        for k, v in list(islice(attributes.items(), MAX_ITEMS * 2)):
            if type(k) is str:
                self.add(v, "%s.%s" % (path, "value" if member and k == "_value_" else k), inner, obj, k, attributes, k)
        self.leave("items", path, len(attributes) - MAX_ITEMS * 2)
        for n, slot in slots_of(obj, cls):
            self.add(slot.get(n), "%s.%s" % (path, n), inner, obj, n, slot, n)
        for k in objects.mro(cls):
            if objects.flags(k) & objects.HEAP_TYPE and not objects.library(objects.module(k)):
                self.class_(k, path, inner)

    def items(self, obj, cls, path, role):
        """Of subclasses of containers, through the builtin's own methods."""
        if issubclass(cls, dict):
            self.dictionary(obj, list(islice(dict.items(obj), MAX_ITEMS)), path, role)
        for base in (list, tuple, set, frozenset, deque):
            if issubclass(cls, base):
                self.members(list(islice(base.__iter__(obj), MAX_ITEMS)), path, role, obj)
                self.leave("items", path, base.__len__(obj) - MAX_ITEMS)

    def class_(self, cls, path, role):
        """Class attributes, and what the methods can reach. `path` is an instance's: that is how code spells them."""
        if objects.library(objects.module(cls)) or (id(cls), "class") in self.seen:
            return
        self.seen.add((id(cls), "class"))
        self.package(objects.module(cls))
        if issubclass(type(cls), enum.EnumMeta):
            for n, v in list(objects.members(cls).get("_member_map_", {}).items())[:MAX_ITEMS]:
                self.add(v, "%s.%s" % (path, n), role, cls, n)
        for n, v in list(objects.members(cls).items())[:MAX_ITEMS * 2]:
            if type(v) is staticmethod or type(v) is classmethod:
                v = v.__func__
            elif type(v) is property:
                v = v.fget
            if type(v) is types.FunctionType:
                self.function(v, "%s.%s" % (path, n), role)
            elif (type(v) is not types.MemberDescriptorType and type(v) is not types.GetSetDescriptorType) and not n.startswith("__"):
                self.add(v, "%s.%s" % (path, n), role, cls, n, objects.members(cls), n)

    def function(self, f, path, role):
        if (id(f), "code") in self.seen:
            return
        self.seen.add((id(f), "code"))
        for cell, variable in zip(f.__closure__ or (), f.__code__.co_freevars):
            try:
                v = cell.cell_contents
            except ValueError:  # empty
                continue
            self.add(v, "%s<closure %s>" % (path, variable), role, f, variable)
        arguments = f.__code__.co_varnames[:f.__code__.co_argcount]
        defaults = f.__defaults__ or ()
        for variable, v in zip(arguments[len(arguments) - len(defaults):], defaults):
            self.add(v, "%s<default %s>" % (path, variable), role, f, variable)
        for variable, v in list((f.__kwdefaults__ or {}).items()):
            self.add(v, "%s<default %s>" % (path, variable), role, f, variable, f.__kwdefaults__, variable)
        for n, v in list(f.__dict__.items())[:MAX_ITEMS]:
            self.add(v, "%s.%s" % (path, n), role, f, n, f.__dict__, n)
        if not objects.library(f.__module__):
            self.package(f.__module__)
            self.code_names(f.__code__, objects.plain(f.__globals__))

    def code_names(self, code, namespace):
        """The globals that the code names, one module deep: RNG, aug.RNG, flip, Config."""
        names, codes = set(), [code]
        while codes:
            c = codes.pop()
            names.update(c.co_names)
            codes += [k for k in c.co_consts if type(k) is types.CodeType]
        for n in sorted(names):
            if n in namespace:
                if type(namespace[n]) is types.ModuleType:
                    self.named_of(namespace[n], names, 3)
                else:
                    self.global_(namespace, n)

    def named_of(self, module, names, depth):
        """Of a module that code names, what it names too: aug.RNG, pkg.aug.RNG."""
        if objects.library(module.__name__) or depth == 0:
            return
        for m in sorted(names & {k for k in list(module.__dict__) if type(k) is str}):
            if type(module.__dict__[m]) is types.ModuleType:
                self.named_of(module.__dict__[m], names, depth - 1)
            else:
                self.global_(module.__dict__, m)

    def global_(self, namespace, n):
        module = namespace.get("__name__")
        if type(module) is not str or (objects.library(module) and rng.kind_of(type(namespace[n])) is None):
            return
        if type(namespace[n]) is types.ModuleType or (objects.library(module) and not library_exempt(module)):
            return
        self.add(namespace[n], "%s.%s" % (objects.main(module), n), "module", sys.modules.get(module), n,
                 namespace, n)

    def package(self, module):
        top = module.partition(".")[0] if type(module) is str else ""
        if top and top not in self.packages and not objects.library(module):
            self.packages.append(top)

    def scan_packages(self):
        """Generators at the top level of any module of the packages that the classes and functions came from."""
        inside = modules()
        known = sorted(m for top in set(self.packages) for m in inside.get(top, ()))
        self.leave("modules", known[-1] if known else "", len(known) - MAX_MODULES)
        for m in known[:MAX_MODULES]:
            module = sys.modules.get(m)
            if type(module) is types.ModuleType:
                for n, v in list(module.__dict__.items()):
                    if id(type(v)) not in objects.ATOMS and type(n) is str and rng.kind_of(type(v)) is not None:
                        self.global_(module.__dict__, n)

    def frame(self, generator, path, role):
        """The locals of a generator function that is suspended: a snapshot, from which only generators are kept."""
        frame = generator.gi_frame
        if frame is not None:
            items = list(objects.locals_of(frame).items())[:MAX_ITEMS]
            for n, v in items:
                self.add(v, "%s<local %s>" % (path, n), role, frame, n)
            self.keep.append(items)  # ids in `seen` must stay taken until the walk is over
            if not objects.library(objects.plain(frame.f_globals).get("__name__")):
                self.package(objects.plain(frame.f_globals).get("__name__"))
                self.code_names(frame.f_code, objects.plain(frame.f_globals))
        if generator.gi_yieldfrom is not None:
            self.add(generator.gi_yieldfrom, path + "<yield from>", role, None)


_modules = {"loaded": 0, "last": None, "inside": {}}


def modules():
    """The names of the loaded modules by their first part. To look at all of them takes a forked worker a copy of each
    page that they lie on (some 450, Python 3.11): it inherits what its parent has found, and looks at the new ones."""
    known, loaded = _modules, len(sys.modules)
    if known["loaded"] != loaded or (sys.version_info >= (3, 8) and next(reversed(sys.modules)) is not known["last"]):
        new = _imported_since(known["last"], loaded - known["loaded"])
        if new is None:
            known["inside"], new = {}, list(sys.modules)
        for m in new:
            known["inside"].setdefault(m.partition(".")[0], []).append(m)
        known["loaded"] = loaded
        if new:
            known["last"] = new[-1]
    return known["inside"]


def _imported_since(last, most):
    """The modules behind the last one that is known; None: more than `most`, or nobody can tell. As they come."""
    if sys.version_info < (3, 8):  # dictionaries cannot be gone through from their end
        return None
    new = []
    try:
        for m in reversed(sys.modules):
            if m is last:
                return new[::-1]
            if len(new) >= most:
                break
            new.append(m)
    except RuntimeError as e:  # another thread imports
        if guard.theirs(e):
            raise
    return None


def library_exempt(module):
    """A library's module may still hold a generator of its own (imgaug.random.GLOBAL_RNG); Python's `random` may not."""
    return module.partition(".")[0] not in ("random", "torch", "numpy")


class _Slot:
    """A slot of an instance, looked at as if it were a dictionary."""

    def __init__(self, member, obj):
        self.member, self.obj = member, obj

    def __getitem__(self, key):
        try:
            return self.member.__get__(self.obj)
        except AttributeError:
            raise KeyError(key) from None

    def get(self, key=None):
        try:
            return self.member.__get__(self.obj)
        except AttributeError:  # not assigned yet
            return None


def slots_of(obj, cls):
    """The slots of an object's classes (__slots__), by name."""
    return [(n, _Slot(member, obj)) for k in objects.mro(cls) if objects.flags(k) & objects.HEAP_TYPE
            for n, member in list(objects.members(k).items())[:MAX_ITEMS * 2] if type(member) is types.MemberDescriptorType]


def source(owner):
    """(file, first line, last line) of the code that makes an owner's attributes; lines 0 where unknown."""
    if owner is None:
        return None
    if type(owner) is types.ModuleType:
        return _text(owner.__dict__.get("__file__")), 0, 0
    if type(owner) is types.FrameType:
        codes = [owner.f_code]
    elif type(owner) is types.FunctionType:
        codes = [owner.__code__]
        return codes[0].co_filename, 0, 0  # the variable is assigned outside
    else:
        cls = owner if issubclass(type(owner), type) else type(owner)
        codes = [f.__code__ for f in list(objects.members(cls).values()) if type(f) is types.FunctionType]
        if not codes:
            return None
    import dis
    lines = [line for c in codes for _, line in dis.findlinestarts(c) if line]
    return codes[0].co_filename, min([c.co_firstlineno for c in codes] + lines[:1]), max(lines or [0])


def _text(value):
    return value if type(value) is str else ""

