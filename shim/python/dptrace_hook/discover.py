"""Finds the generators that a dataset, its transforms and its collate function can reach.

Breadth first over instance dictionaries, slots, exact containers, closures, defaults, partials, bound methods, the
locals of running generators and the globals that the code names; then over the top level of the packages that the
classes come from. Bounded in nodes, and never through the user's code: no getattr, no ==, no hash, no repr, no iteration
of anything but exact builtin containers, and never gc.get_referents (it copies a forked worker's heap: 163 MB measured).
"""
import functools
import os
import random
import sys
import types
from collections import OrderedDict, defaultdict, deque
from itertools import islice

from . import rng

MAX_NODES = 4000
MAX_ITEMS = 64  # of a container
MAX_MODULES = 300  # of the packages searched
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython's Include/object.h: a class made by a class statement

_ATOMS = {int, float, complex, str, bytes, bytearray, bool, type(None), range, slice, type(Ellipsis)}
_DICTS = (dict, OrderedDict, defaultdict)
_SEQUENCES = (list, tuple, deque, set, frozenset)
_ITERATORS = (map, filter, zip, enumerate, reversed)
_CODE_FREE = (types.BuiltinFunctionType, types.CodeType, types.MappingProxyType)
# Packages whose code is not searched; objects of their classes are (Subset, ConcatDataset, Compose, ...).
_LIBRARIES = {"torch", "numpy", "builtins", "torchvision", "torchaudio", "torchdata", "PIL", "cv2", "scipy", "pandas", "pyarrow",
              "dptrace_hook"}
_BARREN = {"logging", "threading", "_thread", "multiprocessing", "asyncio", "weakref", "re", "_io", "ctypes"}  # instances lead nowhere
_STDLIB = os.path.dirname(os.__file__) + os.sep


class Found:
    """A generator: where it hangs and how to look there again."""
    __slots__ = ("path", "obj", "kind", "role", "owner", "attr", "holder", "key", "source", "first", "last")

    def __init__(self, path, obj, kind, role, owner, attr="", holder=None, key=None, source=None):
        self.path, self.obj, self.kind, self.role, self.owner, self.attr = path, obj, kind, role, owner, attr
        self.holder, self.key = holder, key  # the dict or list and where in it; None: it stays
        self.source, self.first, self.last = source or ("", 0, 0)

    def current(self):
        """What hangs there now: a program may replace its generator."""
        holder = self.holder
        if holder is None:
            return self.obj
        if isinstance(holder, dict):  # not by [], which has a defaultdict make what is missing
            return dict.get(holder, self.key)
        try:
            return holder[self.key]
        except (KeyError, IndexError):
            return None


def name(cls):
    module = cls.__module__ if type(cls.__module__) is str else "?"
    return ("__main__" if module == "__mp_main__" else module) + "." + cls.__qualname__


def locals_of(frame):
    """A copy of a frame's locals. Up to 3.12 f_locals is a dictionary that lives on with the frame and would keep alive
    what the program deletes; from 3.13 on it is a live view, which must not be cleared."""
    snapshot = frame.f_locals
    found = dict(snapshot)
    if sys.version_info < (3, 13):
        snapshot.clear()
    return found


def attributes_of(obj, cls):
    """The instance dictionary of an object; an empty one where it has none, or a property of the user's in its place."""
    for k in cls.__mro__:
        d = k.__dict__.get("__dict__")
        if d is not None:
            attributes = d.__get__(obj) if type(d) is types.GetSetDescriptorType else None
            return attributes if type(attributes) is dict else {}
    return {}


_library = {}


def library(module):
    """Reports whether a module is Python's, torch's or the like."""
    if type(module) is not str:
        return True
    top = module.partition(".")[0]
    known = _library.get(top)
    if known is None:
        file = getattr(sys.modules.get(top), "__file__", None)
        known = _library[top] = top in _LIBRARIES or top in getattr(sys, "stdlib_module_names", ()) or (
            type(file) is str and file.startswith(_STDLIB) and "-packages" not in file)
    return known


class Walk:
    def __init__(self, taken=None):
        self.taken = taken  # asked about each object, its class and path: True if what it holds is not to be looked at
        self.found, self.seen, self.queue, self.left = [], set(), deque(), MAX_NODES
        self.packages, self.keep = [], []
        self.torch_data = sys.modules["torch.utils.data"]

    def roots(self, dataset, collate):
        self.add(dataset, "dataset", "dataset", None)
        self.add(collate, "collate_fn", "collate", None)
        self.run()
        self.scan_packages()
        return self.found

    def samplers(self, loader, dataset):
        """Who decides on the order, in the main process: role "order", whatever it hangs on."""
        self.seen.add(id(dataset))  # samplers hold it, as data_source
        for name in ("batch_sampler", "sampler", "generator"):
            self.add(loader.__dict__.get(name), name, "order", None)
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
        if cls in _ATOMS or id(obj) in self.seen:
            return
        self.seen.add(id(obj))
        kind = rng.kind_of(cls)
        if kind is not None:
            self.found.append(Found(path, obj, kind, self.role_of(owner, role), self.owner_name(owner), attr, holder, key, source(owner)))
            return
        self.queue.append((obj, path, role))

    def owner_name(self, owner):
        if owner is None:
            return ""
        if type(owner) is types.ModuleType:
            return "__main__" if owner.__name__ == "__mp_main__" else owner.__name__
        return name(owner if isinstance(owner, type) else type(owner))

    def role_of(self, owner, role):
        """Who draws from it. Samplers, shufflers and splits order the data; callables that are no datasets transform it."""
        if owner is None or type(owner) in (types.ModuleType, types.FrameType, types.FunctionType):
            return role
        cls = owner if type(owner) is type else type(owner)
        full = name(cls).lower()
        if issubclass(cls, self.torch_data.Sampler) or ".datapipes." in full or "shuffl" in full or "sampler" in full:
            return "order"
        if role == "dataset" and cls not in _DICTS + _SEQUENCES and not issubclass(cls, self.torch_data.Dataset):
            return "transform" if any("__call__" in k.__dict__ for k in cls.__mro__) else role
        return role

    def run(self):
        while self.queue and self.left > 0:
            self.left -= 1
            self.visit(*self.queue.popleft())

    def visit(self, obj, path, role):
        cls = type(obj)
        if self.taken is not None and self.taken(obj, cls, path):
            return
        if cls in _DICTS:
            for k, v in list(islice(cls.items(obj), MAX_ITEMS)):
                if type(k) in (str, int):
                    self.add(v, "%s[%r]" % (path, k), role, obj, k if type(k) is str else "", obj, k)
        elif cls in _SEQUENCES:
            whole = len(obj) <= MAX_ITEMS or type(next(iter(obj), None)) not in _ATOMS
            for i, v in enumerate(list(islice(obj, MAX_ITEMS if whole else 8))):
                self.add(v, "%s[%d]" % (path, i), role, obj, "", obj if cls is list else None, i)
        elif cls is types.FunctionType:
            self.function(obj, path, "transform" if role == "dataset" else role)
        elif cls is types.MethodType:
            self.add(obj.__self__, path + ".__self__", role, obj)
            self.add(obj.__func__, path + ".__func__", role, obj)
        elif issubclass(cls, functools.partial):
            self.add(obj.func, path + ".func", role, obj)
            self.members(list(obj.args), path + ".args", role, obj)
            for k, v in list(obj.keywords.items())[:MAX_ITEMS]:
                self.add(v, "%s.keywords[%r]" % (path, k), role, obj, k, obj.keywords, k)
        elif cls is types.GeneratorType:
            self.frame(obj, path, role)
        elif cls in _ITERATORS:
            self.members(list(cls.__reduce__(obj)[1]), path, role, obj)
        elif issubclass(cls, type):
            self.class_(obj, path, role)
        elif cls is types.ModuleType or issubclass(cls, _CODE_FREE) or issubclass(cls, sys.modules["torch"].Tensor):
            return
        elif type(cls.__module__) is not str or cls.__module__ == "numpy" or cls.__module__.partition(".")[0] in _BARREN:
            return
        else:
            self.instance(obj, cls, path, role)

    def members(self, values, path, role, owner):
        for i, v in enumerate(values[:MAX_ITEMS]):
            self.add(v, "%s[%d]" % (path, i), role, owner)

    def instance(self, obj, cls, path, role):
        inner = self.role_of(obj, role)
        if issubclass(cls, dict):  # subclasses of containers, through the builtin's own methods
            for k, v in list(islice(dict.items(obj), MAX_ITEMS)):
                self.add(v, "%s[%r]" % (path, k) if type(k) in (str, int) else path + "[?]", inner, obj)
        elif issubclass(cls, (list, tuple)):
            part = slice(0, MAX_ITEMS)
            self.members(list(list.__getitem__(obj, part) if issubclass(cls, list) else tuple.__getitem__(obj, part)), path, inner, obj)
        attributes = attributes_of(obj, cls)
        for k, v in list(islice(attributes.items(), MAX_ITEMS * 2)):
            if type(k) is str:
                self.add(v, "%s.%s" % (path, k), inner, obj, k, attributes, k)
        for k in cls.__mro__:
            if not k.__flags__ & _HEAP_TYPE:
                continue
            for n, member in list(k.__dict__.items())[:MAX_ITEMS * 2]:
                if type(member) is types.MemberDescriptorType:  # __slots__
                    try:
                        self.add(member.__get__(obj), "%s.%s" % (path, n), inner, obj, n, _Slot(member, obj), n)
                    except AttributeError:  # not assigned yet
                        pass
            if not library(k.__module__):
                self.class_(k, path, inner)

    def class_(self, cls, path, role):
        """Class attributes, and what the methods can reach. `path` is an instance's: that is how code spells them."""
        if library(cls.__module__) or (id(cls), "class") in self.seen:
            return
        self.seen.add((id(cls), "class"))
        self.package(cls.__module__)
        for n, v in list(cls.__dict__.items())[:MAX_ITEMS * 2]:
            if type(v) in (staticmethod, classmethod):
                v = v.__func__
            elif type(v) is property:
                v = v.fget
            if type(v) is types.FunctionType:
                self.function(v, "%s.%s" % (path, n), role)
            elif type(v) not in (types.MemberDescriptorType, types.GetSetDescriptorType) and not n.startswith("__"):
                self.add(v, "%s.%s" % (path, n), role, cls, n, cls.__dict__, n)

    def function(self, f, path, role):
        if (id(f), "code") in self.seen:
            return
        self.seen.add((id(f), "code"))
        for cell, variable in zip(f.__closure__ or (), f.__code__.co_freevars):
            try:
                self.add(cell.cell_contents, "%s<closure %s>" % (path, variable), role, f, variable)
            except ValueError:  # empty
                pass
        arguments = f.__code__.co_varnames[:f.__code__.co_argcount]
        defaults = f.__defaults__ or ()
        for variable, v in zip(arguments[len(arguments) - len(defaults):], defaults):
            self.add(v, "%s<default %s>" % (path, variable), role, f, variable)
        for variable, v in list((f.__kwdefaults__ or {}).items()):
            self.add(v, "%s<default %s>" % (path, variable), role, f, variable, f.__kwdefaults__, variable)
        for n, v in list(f.__dict__.items())[:MAX_ITEMS]:
            self.add(v, "%s.%s" % (path, n), role, f, n, f.__dict__, n)
        if not library(f.__module__):
            self.package(f.__module__)
            self.code_names(f.__code__, f.__globals__)

    def code_names(self, code, namespace):
        """The globals that the code names, one module deep: RNG, aug.RNG, flip, Config."""
        names, codes = set(), [code]
        while codes:
            c = codes.pop()
            names.update(c.co_names)
            codes += [k for k in c.co_consts if type(k) is types.CodeType]
        for n in sorted(names):
            if n in namespace:
                v = namespace[n]
                if type(v) is types.ModuleType:
                    if not library(v.__name__):
                        for m in sorted(names & set(v.__dict__)):
                            self.global_(v.__dict__, m)
                else:
                    self.global_(namespace, n)

    def global_(self, namespace, n):
        module = namespace.get("__name__")
        if type(module) is not str or (library(module) and rng.kind_of(type(namespace[n])) is None):
            return
        if type(namespace[n]) is types.ModuleType or (library(module) and not library_exempt(module)):
            return
        self.add(namespace[n], "%s.%s" % ("__main__" if module == "__mp_main__" else module, n), "module", sys.modules.get(module), n,
                 namespace, n)

    def package(self, module):
        top = module.partition(".")[0] if type(module) is str else ""
        if top and top not in self.packages and not library(module):
            self.packages.append(top)

    def scan_packages(self):
        """Generators at the top level of any module of the packages that the classes and functions came from."""
        inside = modules()
        for m in sorted(m for top in set(self.packages) for m in inside.get(top, ()))[:MAX_MODULES]:
            module = sys.modules.get(m)
            if type(module) is types.ModuleType:
                for n, v in list(module.__dict__.items()):
                    if type(v) not in _ATOMS and type(n) is str and rng.kind_of(type(v)) is not None:
                        self.global_(module.__dict__, n)

    def frame(self, generator, path, role):
        """The locals of a generator function that is suspended: a snapshot, from which only generators are kept."""
        frame = generator.gi_frame
        if frame is not None:
            items = list(locals_of(frame).items())[:MAX_ITEMS]
            for n, v in items:
                self.add(v, "%s<local %s>" % (path, n), role, frame, n)
            self.keep.append(items)  # ids in `seen` must stay taken until the walk is over
            if not library(frame.f_globals.get("__name__")):
                self.package(frame.f_globals.get("__name__"))
                self.code_names(frame.f_code, frame.f_globals)
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
    except RuntimeError:  # another thread imports
        pass
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
        cls = owner if isinstance(owner, type) else type(owner)
        codes = [f.__code__ for f in list(cls.__dict__.values()) if type(f) is types.FunctionType]
        if not codes:
            return None
    import dis
    lines = [line for c in codes for _, line in dis.findlinestarts(c) if line]
    return codes[0].co_filename, min([c.co_firstlineno for c in codes] + lines[:1]), max(lines or [0])


def _text(value):
    return value if type(value) is str else ""

