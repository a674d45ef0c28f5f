"""What a container holds, in two digests: of its items in their order, and in an order that permutations share.

Only exact builtin types, NumPy's and torch's: nothing of the user's is called. Items are written down by marshal, format 2,
which has neither references nor interned strings: equal values give equal bytes in every process of the same Python.
"""
import marshal
import mmap
import sys
import time
from itertools import chain, islice

from . import objects

now = time.thread_time_ns  # of this thread alone: as much on each rank, however busy its machine is

WHOLE_ITEMS = 100000
WHOLE_BYTES = 16 << 20
SAMPLED = 4096  # items, of larger ones
LOADER_NS, PROCESS_NS = 200 * 10**6, 2 * 10**9  # after which there is no time for all of a container
_STEP = 2048  # items between two looks at the clock
_DEPTH = 3  # containers in containers
_MAX_DICT = 1 << 22  # entries: there is no way to the middle of one but past all before

_ATOMS = objects.ids(int, float, complex, str, bytes, bool, type(None))
_LISTS = objects.ids(list, tuple)
_SETS = objects.ids(set, frozenset)
_NESTED = objects.ids(list, tuple, dict)
_DICTS = objects.DICTS
_KINDS = "biufcSUmM"  # of NumPy: no objects, no records


def container(value):
    """Reports whether facts() can tell of a value."""
    cls = type(value)
    if id(cls) in _LISTS or id(cls) in _SETS or id(cls) in _DICTS or cls is range:
        return True
    return _array(value) is not None


def _array(value):
    """An array, or a tensor's memory as one; None: it is none, or it is not simply there."""
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    if numpy is None:
        return None
    if type(value) is torch.Tensor:
        if value.requires_grad or value.layout is not torch.strided or value.device.type != "cpu" or not value.is_contiguous():
            return None
        if value.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
                               torch.bool):
            return None
        if getattr(value, "is_neg", bool)() or getattr(value, "is_conj", bool)():
            return None
        value = value.numpy()
    if type(value) is not numpy.ndarray or value.dtype.kind not in _KINDS or not value.flags.c_contiguous:
        return None
    return value


def size(value):
    """By which the costly ones come last."""
    array = _array(value)
    return len(value) if array is None else array.nbytes


def facts(value, deadline):
    """The columns of an attribute record that tell of a container. After the deadline, by now(), of some items only."""
    cls = type(value)
    told = {"class": objects.name(cls)}
    if cls is range:
        told.update(items=len(value), whole=True, ordered=_digest([marshal.dumps((value.start, value.stop, value.step), 2)]), unordered="")
    elif id(cls) in _LISTS or id(cls) in _SETS or id(cls) in _DICTS:
        told.update(items=len(value), **_items(value, cls, deadline))
    else:
        array = _array(value)
        told.update(items=int(array.nbytes), **_memory(array))
    return told


def _items(value, cls, deadline):
    n = len(value)
    if n <= WHOLE_ITEMS:
        written = _written(dict.items(value) if id(cls) in _DICTS else value, deadline)
        if written is not None:
            return {"whole": True, "ordered": "" if id(cls) in _SETS else _digest(written), "unordered": _digest(sorted(written))}
    some = _spread(value, cls, n)
    written = None if some is None else _written(some, None)
    return {"whole": False, "ordered": "" if written is None else _digest(written), "unordered": ""}


def _spread(value, cls, n):
    """Some of the items, the same ones in every process."""
    step = max(n // SAMPLED, 1)
    if id(cls) in _LISTS:
        return value[::step][:SAMPLED]
    if id(cls) in _DICTS and n <= _MAX_DICT:
        return list(islice(dict.items(value), 0, step * SAMPLED, step))
    return None


def _written(items, deadline):
    """Each item as bytes; None: they are not such as can be, or too much, or there is no time left."""
    written, left, it = [], WHOLE_BYTES, iter(items)
    while True:
        some = list(islice(it, _STEP))
        if not some:
            return written
        if deadline is not None and now() > deadline or not _plain(some, _DEPTH):
            return None
        part = [marshal.dumps(item, 2) for item in some]
        left -= sum(map(len, part))
        if left < 0:
            return None
        written += part


def _plain(items, depth):
    """All the way down exact atoms in exact lists, tuples and dictionaries."""
    rest = set(map(id, map(type, items))) - _ATOMS
    if not rest:
        return True
    if depth == 0 or not rest <= _NESTED:
        return False
    inner = list(chain.from_iterable(i for i in items if id(type(i)) in _LISTS))
    for d in items:
        if type(d) is dict:
            inner += d.keys()
            inner += d.values()
    return len(inner) <= WHOLE_ITEMS and _plain(inner, depth - 1)


def _memory(array):
    """Of an array: all of it, or some elements. A mapped file may be slow to read: nothing of it."""
    if _mapped(array):
        return {"whole": False, "ordered": "", "unordered": ""}
    numpy = sys.modules["numpy"]
    kind = ("%s %s" % (array.dtype.str, array.shape)).encode()
    flat = array.reshape(-1)
    if array.nbytes > WHOLE_BYTES:
        return {"whole": False, "ordered": _digest([kind, flat[::array.size // SAMPLED][:SAMPLED].tobytes()]), "unordered": ""}
    told = {"whole": True, "ordered": _digest([kind, flat.tobytes()]), "unordered": ""}
    if array.ndim == 1 and array.size <= WHOLE_ITEMS:
        if array.dtype.kind not in "SU" and array.dtype.itemsize <= 8:  # by their bits: there is no order among NaNs
            flat = flat.view("u%d" % array.dtype.itemsize)
        if flat.dtype.kind in "SUu":
            told["unordered"] = _digest([kind, numpy.sort(flat).tobytes()])
    return told


def _mapped(array):
    """Its memory is that of a file, as far as can be seen."""
    numpy, base = sys.modules["numpy"], array
    for _ in range(8):
        if base is None or issubclass(type(base), (mmap.mmap, numpy.memmap)):
            break
        base = base.obj if type(base) is memoryview else base.base if type(base) is numpy.ndarray else None
    return base is not None


def _digest(parts):
    from hashlib import blake2b
    return blake2b(b"".join(parts), digest_size=16).hexdigest()
