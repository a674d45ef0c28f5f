"""Where the objects of a container lie: a sample of their addresses, folded into blocks.

Only ids are kept, which are addresses in CPython. To look at an object writes to it, as its reference count does: so of a
container as few are looked at as tell where all of them are. Nothing of the user's is called.
"""
import mmap
import sys
import time
import types
from collections import Counter, deque
from itertools import islice

from . import objects

now = time.thread_time_ns  # of this thread alone: as far on a busy machine as on a quiet one

BLOCK = 21  # of 2 MiB: log2
PAGE = mmap.PAGESIZE.bit_length() - 1
MAX_ITEMS = 4096  # looked at in a container
MAX_IDS = 1 << 16
MAX_NS = 60 * 10**6  # for one container; islice() through a large dict or set comes on top: 10 ms per million
MIN_IDS = 500  # where fewer are found, the items are a few objects again and again
MAX_RUNS = 512
_ROW = 512  # items that follow one another: long, as a row begins and ends within a page
_MAX_DICTS = 256  # instance dictionaries looked at in one container: from Python 3.11 on looking at one makes it

_LISTS = (list, tuple)
_OTHERS = objects.ids(deque, set, frozenset)
EXACT = objects.DICTS | objects.SEQUENCES


def _object_array(cls):
    return cls is getattr(sys.modules.get("numpy"), "ndarray", None)


def length(obj, cls):
    """Of a container of objects, by the builtin's own method; -1: it is none."""
    if id(cls) in EXACT:
        return len(obj)
    for base in (list, tuple, dict):
        if issubclass(cls, base):
            return base.__len__(obj)
    if _object_array(cls) and obj.dtype.char == "O":
        return obj.size
    return -1


def members(obj, cls, n, most):
    """At most `most` of the n members of a container, spread evenly over it; of dicts so many keys with their values."""
    step = -(-n // max(most, 1)) or 1
    if issubclass(cls, list):
        return list.__getitem__(obj, slice(None, None, step))
    if issubclass(cls, tuple):
        return tuple.__getitem__(obj, slice(None, None, step))
    if issubclass(cls, dict):  # an OrderedDict's own iterator would hash the keys
        return [x for pair in list(islice(dict.items(obj), 0, None, step)) for x in pair]
    if id(cls) in _OTHERS:
        return list(islice(obj, 0, None, step))
    return [obj.item(i) for i in range(0, n, step)]


def rows(obj, cls, n):
    """Members that follow one another, in a few places; of dicts and the like the first ones."""
    starts = [n * i // 8 for i in (1, 3, 5, 7)]
    first = members(obj, cls, n, 1)[-1:]
    row = _MAX_DICTS // 4 if any(attributes(m, type(m)) for m in first) else _ROW
    if issubclass(cls, _LISTS):
        get = list.__getitem__ if issubclass(cls, list) else tuple.__getitem__
        return [m for start in starts for m in get(obj, slice(start, start + row))]
    if issubclass(cls, dict):
        return [x for pair in list(islice(dict.items(obj), 4 * row)) for x in pair]
    if id(cls) in _OTHERS:
        return list(islice(obj, 4 * row))
    return [obj.item(i) for start in starts for i in range(start, start + row)]


def attributes(obj, cls):
    """The instance dictionary of an object of a class written in Python."""
    if not objects.flags(cls) & objects.HEAP_TYPE or issubclass(cls, (type, sys.modules["torch"].Tensor)):
        return {}
    return objects.attributes_of(obj, cls)


def held(obj, cls, n):
    """How many objects a member holds, by estimate."""
    few = members(obj, cls, n, 16)
    total = 0
    for member in few:
        inside = [member] + list(attributes(member, type(member)).values())
        total += sum(max(length(x, type(x)), 0) for x in inside)
    return total // max(len(few), 1)


def fingerprint(obj, cls, n):
    """A few addresses: another container may lie where one was, or hold something else."""
    if issubclass(cls, _LISTS) or _object_array(cls):
        return [id(m) for m in members(obj, cls, n, 8)]
    return [id(m) for m in islice(dict.keys(obj) if issubclass(cls, dict) else obj, 1)]


def mark(obj, cls, n):
    """What tells a container from another one, also from one that lies where it lay: its length, and addresses and contents of
    some members. Not the same either once its members are changed."""
    found, level = [n, cls], members(obj, cls, n, 8)[:16]
    for _ in range(3):
        inner = []
        for m in level:
            kind = type(m)
            found.append(id(m))
            if kind is str or kind is bytes or kind is int or kind is float:
                found.append(hash(m))
            elif id(kind) not in objects.ATOMS:
                size = length(m, kind)
                inner += members(m, kind, size, 4)[:8] if size > 0 else list(attributes(m, kind).values())[:4]
        level = inner[:64]
    return found


class Sample:
    """runs: of blocks [(first, number)] that the objects of a container lie on, None if they are only a few again and
    again; count: objects looked at; plateau: bytes of all pages that they begin on, by estimate, 0 unknown."""
    __slots__ = ("runs", "count", "plateau")

    def __init__(self, obj, cls, n):
        spread = _Ids()
        some = members(obj, cls, n, min(n, MAX_ITEMS))
        each, deadline = MAX_IDS // max(len(some), 1) - 1, now() + MAX_NS
        for first in range(8):  # so that what is left out for want of time is missing everywhere
            if now() > deadline:
                break
            spread.add(some[first::8], each)
        self.runs, self.count, self.plateau = None, len(spread.ids), 0
        if self.count < MIN_IDS:
            return
        blocks = sorted(_dense(Counter([i >> BLOCK for i in spread.ids])))
        items = min(n, MAX_ITEMS)
        # Few items per block: those between two may hold some that are not in the sample.
        self.runs = fold(blocks, 0 if items == n else 6 * len(blocks) // items)
        near = _Ids()
        some = some if items == n else rows(obj, cls, n)
        near.add(some, MAX_IDS // MAX_ITEMS - 1)
        if not near.cut:
            items = len(some) // 2 if issubclass(cls, dict) else len(some)
            self.plateau = n * len({i >> PAGE for i in near.ids}) // items << PAGE


class _Ids:
    def __init__(self):
        self.ids, self.dicts = set(), _MAX_DICTS
        self.cut = False  # some hold more than was looked at

    def add(self, some, each, depth=3):
        """Takes some objects themselves, and `each` of what each of them holds."""
        ids, atoms = self.ids, objects.ATOMS
        for o in some:
            ids.add(id(o))
            if id(type(o)) not in atoms:
                if each > 0 and depth > 0:
                    self.inside(o, each, depth)
                else:
                    self.cut = True

    def inside(self, obj, most, depth):
        cls = type(obj)
        n = length(obj, cls)
        if n >= 0:
            found = members(obj, cls, n, n if n <= most else max(most // 4, 1))
        else:
            found = self.instance(obj, cls)
        few = found[:most]
        if n > most or len(few) < len(found):
            self.cut = True
        if few:
            self.add(few, most // len(few) - 1, depth - 1)

    def instance(self, obj, cls):
        """What hangs on an object: by its slots, and in its dictionary."""
        if not objects.flags(cls) & objects.HEAP_TYPE:
            return []
        if self.dicts <= 0:
            self.cut = True
            return []
        values = []
        for k in objects.mro(cls):
            if objects.flags(k) & objects.HEAP_TYPE and "__slots__" in objects.members(k):
                for member in list(objects.members(k).values()):
                    if type(member) is types.MemberDescriptorType:
                        try:
                            values.append(member.__get__(obj))
                        except AttributeError:  # not assigned yet
                            pass
        dictionary = attributes(obj, cls)
        if dictionary:
            self.dicts -= 1
            self.ids.add(id(dictionary))
            values += list(dictionary.values())
        return values


def _dense(counts):
    """Without the blocks that only a few objects lie on which all items share: names, small numbers, classes."""
    average, left = sum(counts.values()) / len(counts), sum(counts.values()) // 100
    for block, count in sorted(counts.items(), key=lambda c: c[1]):
        left -= count
        if count * 8 > average or left < 0:
            break
        del counts[block]
    return counts


def fold(blocks, gap):
    """Runs of sorted blocks. Up to `gap` missing ones between two belong to the run."""
    while True:
        runs, last = [], None
        for b in blocks:
            if last is not None and b - last - 1 <= gap:
                runs[-1][1] = b - runs[-1][0] + 1
            else:
                runs.append([b, 1])
            last = b
        if len(runs) <= MAX_RUNS:
            return [tuple(r) for r in runs]
        gap = 2 * gap + 1


def segments(lists):
    """The union of several lists of runs: [(first block, number of blocks, which of the lists)], the same for all its blocks."""
    edges = {}
    for i, runs in enumerate(lists):
        for first, count in runs:
            edges.setdefault(first, []).append((i, 1))
            edges.setdefault(first + count, []).append((i, -1))
    result, depth, last = [], [0] * len(lists), None
    for at in sorted(edges):
        inside = tuple(i for i, d in enumerate(depth) if d)
        if inside:
            result.append((last, at - last, inside))
        for i, change in edges[at]:
            depth[i] += change
        last = at
    return result
