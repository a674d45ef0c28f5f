"""What objects of classes written in C hold: caches of functions, context variables, thread-locals, arrays of objects, iterators.

All is read through the builtin classes' own methods, or asked of the garbage collector for one object: no code of the
program's runs. Each gives [(how code spells the way there, what is there)], and how much it has left out.
"""
import contextvars
import functools
import gc
import sys
import types
import weakref
from _thread import _local
from itertools import islice

from . import objects

MAX = 64
_TRACKED = 1 << 14  # Py_TPFLAGS_HAVE_GC of CPython's Include/object.h
_WEAK_MAPPINGS = (weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet)
Cached = type(functools.lru_cache(maxsize=1)(id))
_Link = "_lru_list_elem"
_NOT = (type, types.ModuleType, types.FrameType, types.CodeType, types.TracebackType)
_QUIET = ("torch", "numpy", "PIL", "cv2", "ctypes", "_ctypes", "re", "_thread", "threading", "logging", "asyncio", "_asyncio", "_io",
          "multiprocessing", "weakref", "_socket", "ssl", "zlib", "array", "mmap")


def of(obj, cls):
    """(what it holds, how many of them are left out), or None: it is no such object."""
    if issubclass(cls, Cached):
        return cached(obj)
    if issubclass(cls, _local):
        return thread_local(obj, cls)
    if any(objects.derives(cls, k) for k in _WEAK_MAPPINGS):  # two of them are abstract base classes
        return weak(obj, cls)
    if cls is contextvars.ContextVar:
        return [(".get()", contextvars.ContextVar.get(obj, None))], 0
    if issubclass(cls, types.MappingProxyType):
        return [("", held) for held in gc.get_referents(obj)], 0
    if issubclass(cls, types.BuiltinFunctionType):  # of a generator: rng.normal
        owner = obj.__self__
        return [] if issubclass(type(owner), types.ModuleType) else [(".__self__", owner)], 0
    if is_array(cls):
        return array(obj)
    if issubclass(cls, types.SimpleNamespace):
        return None
    if objects.flags(cls) & objects.HEAP_TYPE and objects.module(cls) not in ("itertools", "functools", "_functools", "collections", "_collections", "operator"):
        return None
    if issubclass(cls, _NOT) or objects.module(cls).partition(".")[0] in _QUIET or not objects.flags(cls) & _TRACKED:
        return [], 0
    held = gc.get_referents(obj)
    return [("[%d]" % i, each) for i, each in enumerate(held[:MAX]) if each is not cls], max(len(held) - MAX, 0)


def function_of(obj):
    """The function that a cache is of, or None."""
    for d in gc.get_referents(obj):
        if type(d) is dict and type(d.get("__wrapped__")) is types.FunctionType:
            return d["__wrapped__"]
    return None


def cached(obj):
    """Of a function with an lru_cache: what it has returned."""
    size = Cached.cache_info(obj).currsize
    if size > MAX:
        return [], size
    results, function = [], function_of(obj)
    for held in gc.get_referents(obj):
        if type(held) is dict and "__wrapped__" not in held:
            for value in list(held.values()):
                if objects.called(type(value)) != _Link:
                    results.append(value)
                else:
                    results += gc.get_referents(value)
        elif type(held) is not dict and type(held) is not type and type(held) is not types.FunctionType:  # a bounded cache's own results, up to Python 3.11
            results.append(held)
    if type(function) is types.FunctionType:
        results.append(function)
    return [("", each) for each in results], 0


def thread_local(obj, cls):
    """The attributes of a thread-local: of this thread, or of all where to look would make its __init__ run."""
    if cls is _local:
        return [(".%s" % k, v) for k, v in list(_local.__getattribute__(obj, "__dict__").items())[:MAX] if type(k) is str], 0
    found, todo = [], gc.get_referents(obj)
    for _ in range(3):  # a dictionary by weak references, later a set of objects that hold each thread's
        following = []
        for held in todo:
            if type(held) is dict and any(type(k) is str for k in islice(held, 1)):
                found += [(".%s" % k, v) for k, v in list(held.items())[:MAX]]
            elif (type(held) is dict or type(held) is set) or objects.called(type(held)) == "_localdummy":
                following += gc.get_referents(held)[:MAX]
        todo = following
    return found, 0


def weak(obj, cls):
    """Of a dictionary or set with weak keys or values: what is still alive."""
    data = objects.attributes_of(obj, cls).get("data")
    pairs = list(islice(data.items(), MAX)) if type(data) is dict else [(k, None) for k in islice(data, MAX)] if type(data) is set else []
    alive = [weakref.ref.__call__(x) if issubclass(type(x), weakref.ref) else x for pair in pairs for x in pair]
    return [("[%d]" % (i // 2), x) for i, x in enumerate(alive) if x is not None], max(len(data or ()) - MAX, 0)


def is_array(cls):
    return cls is getattr(sys.modules.get("numpy"), "ndarray", None)


def array(obj):
    """Of an array of objects: its items."""
    if not obj.dtype.hasobject:
        return [], 0
    flat, spelled = items(obj, MAX), "[%d]" if obj.ndim == 1 else ".flat[%d]"
    return [(spelled % i, each) for i, each in enumerate(flat)], max(obj.size - MAX, 0) if flat and type(flat[0]) is not str else 0


def items(obj, most):
    return obj.reshape(-1)[:most].tolist()
