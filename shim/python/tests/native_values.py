"""Random values for the helper and its twin, and the odd objects of users."""
import collections.abc
import functools
import gc
import itertools
import random
import struct
import sys
import types
import weakref

from twins import sample


class Slotted:
    __slots__ = ("held", "__weakref__")

    def __init__(self, held):
        self.held = held


class Meta(type):
    def __eq__(cls, other):
        raise RuntimeError("compared")

    def __hash__(cls):
        raise RuntimeError("hashed")


class Odd(metaclass=Meta):
    def __init__(self, held):
        self.held = held


TYPES = [dict, tuple, random.Random, Odd, Slotted, int, str, list, type, types.CodeType, type(None), types.FunctionType, Meta]


def heap_of(r):
    """Objects of many kinds, that hold others of them, and themselves."""
    some = [1, "a", None, int, Odd, gc, sample, {}, (), [], random.Random(1), len, len.__call__, dict.__dict__, sys._getframe(), ...]
    for _ in range(r.randint(0, 60)):
        held = [r.choice(some) for _ in range(r.randint(0, 4))]
        one = r.choice(some)

        def function(a=one, *, b=held):
            yield one, a, b
        running = function()
        if r.random() < 0.5:
            next(running)
        some.append(r.choice([
            lambda: held, lambda: tuple(held), lambda: dict(enumerate(held)), lambda: Slotted(one), lambda: Odd(one), lambda: function,
            lambda: running, lambda: functools.partial(sample, *held), lambda: random.Random(2).random, lambda: Odd(one).__init__,
            lambda: type("New", (Odd,), {"held": one}), lambda: iter(held), lambda: function.__code__,
            lambda: (lambda: one).__closure__[0], lambda: weakref.ref(function, id),
            lambda: set(map(id, held)), lambda: property(one), lambda: types.MappingProxyType({1: one}), lambda: (1, 2, "b"), lambda: {1: 2},
            lambda: functools.lru_cache(function), lambda: itertools.chain(held), lambda: collections.deque(held), lambda: zip(held)])())
    gc.collect(0) if r.random() < 0.1 else None  # which no longer tracks tuples of what needs no tracking
    some.append(some)
    return some


class Index:
    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number

    def __repr__(self):
        return "Index"


def integers(r):
    each = [r.randrange(-1 << 63, 1 << 63) for _ in range(r.choice([0, 1, 5, 40]))]
    if each and r.random() < 0.1:
        each[r.randrange(len(each))] = r.choice([1 << 63, -(1 << 63) - 1, True, None, 1.0, Index(2), "1"])
    return r.choice([list, list, list, tuple, tuple, set])(each) if r.random() < 0.97 else [7] * r.choice([4096, 4097])


def value(code, r):
    bits = 8 * struct.calcsize("<" + code)
    low, high = (0, 1 << bits) if code.isupper() else (-1 << bits - 1, 1 << bits - 1)
    return r.choice([low, high - 1, r.randrange(low, high)])
