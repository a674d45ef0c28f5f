"""Does the code of a stream name a shuffle?"""
import types

from . import objects, reads
from .notes import Notes

_NAMES = {"shuffle", "permutation", "permuted", "randperm"}
_ENTRIES = ("__iter__", "__next__")  # what a fetcher calls
_MAX_CODES = 500
_MAX_STREAMS = 256
_streams = Notes()  # of a class whether its code names one of these


def named(dataset):
    """"yes"; "" where it does not, or where the stream is told not to."""
    cls = type(dataset)
    known = _streams.of(cls)
    if known is None:
        if len(_streams.kept) >= _MAX_STREAMS:
            _streams.kept.clear()
        known = _streams.put(cls, not objects.library(objects.members(cls).get("__module__")) and not _NAMES.isdisjoint(_spelled(cls)))
    if not known:
        return ""
    told = [v for k, v in list(objects.attributes_of(dataset, cls).items()) if type(k) is str and "shuffle" in k]
    return "" if any(v is False or v is None or (type(v) is int and v == 0) for v in told) else "yes"


def _spelled(cls):
    """The names in the code of a class's iteration, in its methods that are named there, and in the program's functions that are."""
    names, seen, todo = set(), set(), [_function(reads.in_class(cls, name)[1]) for name in _ENTRIES]
    while todo and len(seen) < _MAX_CODES:
        f = todo.pop()
        if type(f) is not types.FunctionType or id(f.__code__) in seen or objects.library(f.__module__):
            continue
        seen.add(id(f.__code__))
        here = reads.spelled(f.__code__)
        names |= here
        for name in here:
            todo += [_function(reads.in_class(cls, name)[1]), _function(objects.plain(f.__globals__).get(name))]
    return names


def _function(value):
    return reads.function_of(value)[0]
