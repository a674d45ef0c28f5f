"""Containers of Python objects that forked workers inherit with their dataset, and the memory that the objects lie on.

A worker that reads such an object writes to it: its reference count. So it copies the page, until it has copied them all.
The parent looks for them right before it forks, and looks at the objects of each once (addresses.py).
"""
import os
import types

from ..record import guard, ring
from ..record.ring import cpu
from . import addresses, discover, objects

MIN_ITEMS = 1000  # of a container that counts
MIN_HELD = 20000  # or so many objects in what it holds, by estimate
MAX_EXTENTS = 16  # of a loader
MAX_NS = 200 * 10**6  # for all of a loader: the largest come first
MAX_REMEMBERED = 256

_count = 0
_samples = {}  # (id, items) -> (fingerprint, Sample)
_written = {}  # (loader, path, key) -> (runs, number)
_merged = {}  # keys of several containers -> (their runs, as one list)


class Walk(discover.Walk):
    """Goes into pandas' tables too, which keep their columns in classes written in C: a column of objects is an array of them."""
    into_insides = False

    def instance(self, obj, cls, path, role):
        super().instance(obj, cls, path, role)
        for k in objects.mro(cls):
            if objects.module(k) in ("pandas._libs.internals", "pandas._libs.arrays"):
                for name in ("blocks", "values", "_ndarray"):
                    getter = objects.members(k).get(name)
                    if type(getter) is types.GetSetDescriptorType:
                        held = getter.__get__(obj)
                        for each in held if type(held) is tuple else (held,):
                            self.add(each, path, role, obj)


class Extent:
    __slots__ = ("path", "cls", "items", "key", "runs", "count", "plateau")

    def __init__(self, path, cls, items, key, runs, count, plateau):
        self.path, self.cls, self.items, self.key, self.runs, self.count, self.plateau = path, cls, items, key, runs, count, plateau


class Inherited:
    """What a worker needs to look at its part of the extents: numbers alone."""

    def __init__(self, numbers, extents):
        self.pid = os.getpid()
        self.numbers = numbers
        self.segments = addresses.segments([e.runs for e in extents])


def before_fork(loader, loader_number, number_of_pass):
    """Writes the extents of a loader whose workers are about to be forked. None: there are none."""
    c0 = cpu()
    try:
        roots = (objects.attributes(loader).get("dataset"), "dataset", "dataset"), (objects.attributes(loader).get("collate_fn"), "collate_fn", "collate")
        found = large(roots, addresses.now() + MAX_NS)
        return Inherited([number(e, loader_number, number_of_pass) for e in found], found) if found else None
    except Exception as e:
        if guard.theirs(e):
            raise
        return None
    finally:
        ring.ring.hook_ns += cpu() - c0


def number(extent, loader, number_of_pass, target=""):
    """The extent's number; writes it if the loader had none like it. target: what the process runs that is to inherit it, if it is
    no worker."""
    global _count
    key = (loader, target, extent.path) + extent.key
    known = _written.get(key)
    if known is not None and known[0] is extent.runs:
        return known[1]
    if len(_written) >= MAX_REMEMBERED:
        _written.clear()
    _count += 1
    _written[key] = (extent.runs, _count)
    cls = extent.cls
    ring.put_json(ring.EXTENT, {"extent": _count, "loader": loader, "target": target, "pass": number_of_pass, "path": extent.path,
                                "class": objects.qualname(cls) if objects.module(cls) == "builtins" else objects.name(cls),
                                "items": extent.items, "sampled": extent.count, "plateau": extent.plateau,
                                "starts": [first for first, _ in extent.runs], "counts": [count for _, count in extent.runs]})
    return _count


def large(roots, deadline, marks=None):
    """The Extents of what some objects reach, [(object, path, role)]; the largest first. marks: takes what tells each of their
    containers from another one, by id."""
    found = []

    def taken(obj, cls, path):
        n = addresses.length(obj, cls)
        if n < MIN_ITEMS and (n <= discover.MAX_ITEMS or n * addresses.held(obj, cls, n) < MIN_HELD):
            return False
        found.append((n, path.partition("._mgr")[0], obj, cls))  # pandas' own inside of a table
        return id(cls) in addresses.EXACT  # an instance of a subclass has attributes too

    walk = Walk(taken)
    for obj, path, role in roots:
        walk.add(obj, path, role, None)
    walk.run()
    found.sort(key=lambda f: -f[0])
    extents = []
    for n, path, obj, cls in found[:4 * MAX_EXTENTS]:
        if addresses.now() > deadline:
            break
        s = sample(obj, cls, n)
        if s.runs is not None:
            extents.append(Extent(path, cls, n, (id(obj), n), s.runs, s.count, s.plateau))
            if marks is not None:
                marks[id(obj)] = addresses.mark(obj, cls, n)
    return together(extents)[:MAX_EXTENTS] if len(extents) > MAX_EXTENTS else extents


def sample(obj, cls, n):
    key, seen = (id(obj), n), addresses.fingerprint(obj, cls, n)
    known = _samples.get(key)
    if known is None or known[0] != seen:
        if len(_samples) >= MAX_REMEMBERED:
            _samples.clear()
        known = _samples[key] = (seen, addresses.Sample(obj, cls, n))
    return known[1]


def together(extents):
    """Containers that differ only in their places in lists become one: dataset.datasets[*].records."""
    import re
    groups = {}
    for e in extents:
        groups.setdefault(re.sub(r"\[\d+\]", "[*]", e.path), []).append(e)
    merged = [Extent(path, group[0].cls, sum(e.items for e in group), sum((e.key for e in group), ()), _joined(group),
                     sum(e.count for e in group),
                     sum(e.plateau for e in group) if all(e.plateau for e in group) else 0) for path, group in groups.items()]
    return sorted(merged, key=lambda e: -e.items)


def _joined(group):
    """The runs of several extents as one list, and the same list for the same extents again: see number."""
    key, runs = sum((e.key for e in group), ()), [r for e in group for r in e.runs]
    known = _merged.get(key)
    if known is None or known[0] != runs:
        if len(_merged) >= MAX_REMEMBERED:
            _merged.clear()
        blocks = sorted({b for first, count in runs for b in range(first, first + count)})
        known = _merged[key] = (runs, addresses.fold(blocks, 0))
    return known[1]
