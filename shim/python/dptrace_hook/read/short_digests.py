"""Whether what an attribute holds is still what it was: digests of a container, an array or an object.

Bounded by number: short() looks at some items of a long list, some pieces of a large array, and of an object at its class;
whole() at all that a budget of items and bytes allows. Nothing of the user's is called: exact builtin types, NumPy's and
torch's.
"""
import marshal
import sys
import types
from itertools import islice

from . import contents, objects, sample
from .quiet import quiet

MAX_ITEMS = 64  # of a container, but for numbers
MAX_NUMBERS = 4096
MAX_ALL = 512  # items of a container and of what it holds
MAX_TEXT = 1024
_NUMBERS = (int, float, bool)


class Budget:
    """Of one look at all attributes."""

    def __init__(self):
        self.items, self.bytes = 20000, 8 << 20


def length(value):
    """Items of a container; 0: it is none."""
    cls = type(value)
    if id(cls) in contents._LISTS or id(cls) in contents._SETS or id(cls) in objects.DICTS or cls is range:
        return len(value)
    return value.size if cls is sample.ndarray else value.numel() if cls is sample.tensor else 0


def short(value):
    """(digest, whether it is of everything); (None, False): it cannot be told."""
    sample.bind()
    with quiet():
        if type(value) is sample.tensor and (value.layout is not sample.strided or value.device.type != "cpu"):
            return None, False
        look = _Look()
        look.add(value, 0)
        return look.digest(), look.whole


def whole(value, budget):
    """A digest of everything; None: it is too much, or cannot be told."""
    with quiet():
        cls, n = type(value), length(value)
        if cls is sample.tensor or cls is sample.ndarray:
            if n * 16 > budget.bytes and n * (value.itemsize if cls is sample.ndarray else value.element_size()) > budget.bytes:
                return None
            kind, digest, _, used = sample.read(value, budget.bytes)[:4]
            budget.bytes -= used
            return digest if kind & sample.ALL and not kind & sample.LEFT else None
        if n > budget.items or not n:
            return None
        budget.items -= n
        held = dict.items(value) if id(cls) in objects.DICTS else value
        written = contents._written(held, None) or _samples(held, budget)
        return None if written is None else sample.blake2b(b"".join(written), digest_size=16).digest()


def _samples(held, budget):
    """Items that hold arrays and tensors."""
    written = []
    for item in list(held):
        kind, digest, _, used = sample.read(item, budget.bytes)[:4]
        budget.bytes -= used
        if not kind & sample.ALL or kind & sample.LEFT:
            return None
        written.append(digest)
    return written


class _Look:
    def __init__(self):
        self.pieces, self.left, self.whole = [], MAX_ALL, True

    def digest(self):
        return sample.blake2b(b"".join(self.pieces), digest_size=16).digest()

    def add(self, value, depth):
        self.left -= 1
        cls = type(value)
        if id(cls) in contents._ATOMS:
            if cls is str or cls is bytes:
                self.whole = self.whole and len(value) <= MAX_TEXT
                value = value[:MAX_TEXT]
            self.pieces.append(marshal.dumps(value, 2))
        elif id(cls) in contents._LISTS or cls is range:
            self.pieces.append(b"[%d" % len(value))
            self.items(value, depth)
        elif id(cls) in contents._SETS:
            self.pieces.append(b"s%d" % len(value))
            self.whole = self.whole and len(value) <= MAX_ITEMS
            self.each(islice(value, MAX_ITEMS), depth)
        elif id(cls) in objects.DICTS:
            self.pieces.append(b"{%d" % dict.__len__(value))
            self.whole = self.whole and dict.__len__(value) <= MAX_ITEMS
            for key, held in list(islice(dict.items(value), MAX_ITEMS)):
                self.each((key, held), depth)
        elif cls is sample.tensor or cls is sample.ndarray:
            kind, digest = sample.read(value, 0)[:2]
            self.pieces += (b"a", digest)
            self.whole = self.whole and kind & sample.ALL and not kind & sample.LEFT
        elif cls is types.FunctionType:
            self.pieces.append(b"f%r" % value.__qualname__.encode("utf-8", "replace"))
        else:
            self.pieces.append(b"o%r" % objects.name(cls).encode("utf-8", "replace"))

    def items(self, value, depth):
        n = len(value)
        some = value[::max(n // MAX_NUMBERS, 1)][:MAX_NUMBERS]
        if n and set(map(id, map(type, some))) <= set(map(id, _NUMBERS)):
            self.pieces.append(marshal.dumps(list(some), 2))
            self.whole = self.whole and len(some) == n
        else:
            some = value[::max(n // MAX_ITEMS, 1)][:MAX_ITEMS]
            self.whole = self.whole and len(some) == n
            self.each(some, depth)

    def each(self, items, depth):
        for item in items:
            if self.left <= 0 or depth == 3:
                self.whole = False
                return
            self.add(item, depth + 1)
