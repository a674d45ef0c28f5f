"""Whether what an attribute holds is still what it was: a short digest of a container, an array or an object.

Bounded by number: of a long list some items, of a large array some pieces, of an object its class. Nothing of the user's
is called: exact builtin types, NumPy's and torch's.
"""
import marshal
import sys
import types
from itertools import islice

from . import contents, discover, sample

MAX_ITEMS = 64  # of a container, but for numbers
MAX_NUMBERS = 4096
MAX_ALL = 512  # items of a container and of what it holds
_NUMBERS = (int, float, bool)


def length(value):
    """Items of a container; 0: it is none."""
    cls = type(value)
    if cls in contents._LISTS or cls in contents._SETS or cls in discover._DICTS or cls is range:
        return len(value)
    return value.size if cls is sample.ndarray else value.numel() if cls is sample.tensor else 0


def digest(value):
    """None: not to be told, or workers see it change: shared memory."""
    sample.bind()
    with sys.modules["torch"]._C.DisableTorchFunction():
        pieces = []
        if type(value) is sample.tensor:
            if value.layout is not sample.strided or value.device.type != "cpu" or value.is_shared():
                return None
            pieces.append(_version(value))
        elif type(value) is sample.ndarray and contents._mapped(value):
            return None
        _add(value, pieces, [MAX_ALL], 0)
        return sample.blake2b(b"".join(pieces), digest_size=16).digest()


def _version(tensor):
    """Counts what was written into it."""
    try:
        return b"v%d" % tensor._version
    except RuntimeError:  # made in inference mode
        return b""


def _add(value, pieces, left, depth):
    left[0] -= 1
    cls = type(value)
    if cls in contents._ATOMS:
        part = value[:1024] if cls is str or cls is bytes else value
        pieces.append(marshal.dumps(part, 2))
    elif cls in contents._LISTS or cls is range:
        pieces.append(b"[%d" % len(value))
        _items(value, pieces, left, depth)
    elif cls in contents._SETS:
        pieces.append(b"s%d" % len(value))
        _each(islice(value, MAX_ITEMS), pieces, left, depth)
    elif cls in discover._DICTS:
        pieces.append(b"{%d" % dict.__len__(value))
        for key, held in list(islice(dict.items(value), MAX_ITEMS)):
            _each((key, held), pieces, left, depth)
    elif cls is sample.tensor or cls is sample.ndarray:
        pieces.append(b"a")
        pieces.append(sample.read(value, 0)[1])
    elif cls is types.FunctionType:
        pieces.append(b"f%r" % value.__qualname__.encode("utf-8", "replace"))
    else:
        pieces.append(b"o%r" % discover.name(cls).encode("utf-8", "replace"))


def _items(value, pieces, left, depth):
    n = len(value)
    some = value[::max(n // MAX_NUMBERS, 1)][:MAX_NUMBERS]
    if n and set(map(id, map(type, some))) <= set(map(id, _NUMBERS)):
        pieces.append(marshal.dumps(list(some), 2))
    else:
        _each(value[::max(n // MAX_ITEMS, 1)][:MAX_ITEMS], pieces, left, depth)


def _each(items, pieces, left, depth):
    for item in items:
        if left[0] <= 0 or depth == 3:
            return
        _add(item, pieces, left, depth + 1)
