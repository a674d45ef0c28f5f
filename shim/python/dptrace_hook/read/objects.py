"""What may be looked at of the program's objects without running code of its own: types, instance dictionaries, frames' variables.

A leaf: nothing of this package is imported for it.
"""
import functools
import os
import sys
import types
from collections import OrderedDict, defaultdict, deque

HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython's Include/object.h: a class made by a class statement


def ids(*classes):
    """Sets of classes by their ids: to look a class up among others may ask its metaclass for a hash, or to compare."""
    return frozenset(map(id, classes))


ATOMS = ids(int, float, complex, str, bytes, bytearray, bool, type(None), range, slice, type(Ellipsis))
DICTS = ids(dict, OrderedDict, defaultdict)
SEQUENCES = ids(list, tuple, deque, set, frozenset)
CODE_FREE = (types.BuiltinFunctionType, types.CodeType, types.MappingProxyType)
BARREN = {"logging", "threading", "_thread", "multiprocessing", "asyncio", "weakref", "re", "_io", "ctypes"}  # instances lead nowhere
# Packages whose code is not searched; objects of their classes are (Subset, ConcatDataset, Compose, ...).
_LIBRARIES = {"torch", "numpy", "builtins", "torchvision", "torchaudio", "torchdata", "PIL", "cv2", "scipy", "pandas", "pyarrow",
              "dptrace_hook"}
_STDLIB = os.path.dirname(os.__file__) + os.sep


# Of classes, by what CPython itself has for it: a metaclass may have a __getattribute__, and properties of these names.
called, qualname, mro, flags, members = [type.__dict__[n].__get__ for n in ("__name__", "__qualname__", "__mro__", "__flags__", "__dict__")]
_module = type.__dict__["__module__"].__get__
_FUNC, _ARGS, _KEYWORDS = [functools.partial.__dict__[n].__get__ for n in ("func", "args", "keywords")]


def module(cls):
    """The name of the module of a class; "?" where it has none."""
    try:
        found = _module(cls)
    except AttributeError:
        return "?"
    return found if type(found) is str else "?"


def derives(cls, base):
    """Reports whether a class is another or derives from it. issubclass() asks the metaclass of `base`, and an ABC's that of `cls`."""
    return _derives(base, cls)


_derives = type.__subclasscheck__


def member(cls, name):
    """What a class or one that it derives from has under a name; None."""
    return next((members(k)[name] for k in mro(cls) if name in members(k)), None)


def partial(obj):
    """(func, args, keywords) of a functools.partial, or of a class derived from it."""
    return _FUNC(obj), _ARGS(obj), _KEYWORDS(obj)


def name(cls):
    return main(module(cls)) + "." + qualname(cls)


def main(module):
    """The name of a module as the program that is run as it calls it."""
    return "__main__" if module == "__mp_main__" else module if type(module) is str else "?"


def owner_name(owner):
    if owner is None:
        return ""
    if type(owner) is types.ModuleType:
        return main(owner.__name__)
    return name(owner if issubclass(type(owner), type) else type(owner))


def locals_of(frame):
    """A copy of a frame's locals. Up to 3.12 f_locals is a dictionary that lives on with the frame and would keep alive
    what the program deletes; from 3.13 on it is a live view, which must not be cleared."""
    snapshot = frame.f_locals
    found = dict(snapshot)
    if sys.version_info < (3, 13):
        snapshot.clear()
    return found


_DICT_GETTERS = ids(types.GetSetDescriptorType, types.MemberDescriptorType)  # the second: of SimpleNamespace


def attributes_of(obj, cls):
    """The instance dictionary of an object; an empty one where it has none, or a property of the user's in its place."""
    for k in mro(cls):
        d = members(k).get("__dict__")
        if d is not None:
            attributes = d.__get__(obj) if id(type(d)) in _DICT_GETTERS else None
            return attributes if type(attributes) is dict else {}
    return {}


def attributes(obj):
    return attributes_of(obj, type(obj))


def barred(cls):
    """Reports whether a class has something of its own in the place of __dict__."""
    d = member(cls, "__dict__")
    return d is not None and id(type(d)) not in _DICT_GETTERS


_library = {}


def library(module):
    """Reports whether a module is Python's, torch's or the like."""
    if type(module) is not str or module == "?":
        return True
    top = module.partition(".")[0]
    known = _library.get(top)
    if known is None:
        file = attributes(sys.modules.get(top)).get("__file__")  # no getattr: it may load what is lazy
        known = _library[top] = top in _LIBRARIES or top in getattr(sys, "stdlib_module_names", ()) or (
            type(file) is str and file.startswith(_STDLIB) and "-packages" not in file)
    return known


def plain(namespace):
    """The globals of a function; of a class of the program's own (exec takes such) nothing is asked."""
    return namespace if type(namespace) is dict else {}


def key(k):
    """How code spells the key of a dictionary, as far as that needs no code of the program's."""
    cls = type(k)
    if cls is str or cls is int:
        return repr(k)
    return "(%s)" % ", ".join([key(e) for e in k]) if cls is tuple and len(k) < 5 else qualname(cls)


_KEYS = ids(str, int)


def plain_key(k):
    """Reports whether to look up a key runs no code of the program's."""
    return id(type(k)) in _KEYS or type(k) is tuple and all(id(type(e)) in _KEYS for e in k)


def unlike(path, taken):
    """The path, or one that nothing else has."""
    n, unique = 1, path
    while unique in taken:
        n += 1
        unique = "%s (%d)" % (path, n)
    taken.add(unique)
    return unique
