"""Quasi-random engines: torch's SobolEngine, SciPy's Sobol and Halton. Their points are a function of the sequence and the place.

fast_forward() and reset() move the place without a draw, and cannot be told from one by the state: so they are counted.
"""
import ctypes
import struct
import sys

from . import objects, rng, sample
from .quiet import Quiet

_NOT_OF_THE_SEQUENCE = ("quasi", "_quasi", "_first_point", "num_generated", "seed", "rng", "rng_seed")
SCIPY = ("Sobol", "Halton")
jumps = [0]  # counted by watch/quasi.py


def classes():
    """The engines of the libraries that are loaded."""
    found = [getattr(sys.modules.get("torch.quasirandom"), "SobolEngine", None)]
    found += [getattr(sys.modules.get("scipy.stats._qmc"), name, None) for name in SCIPY]
    return tuple([c for c in found if c is not None])


class Engine:
    kind = "sobol"
    region = None

    def __init__(self, engine):
        self.attributes = attributes = objects.attributes_of(engine, type(engine))
        dimension = attributes.get("dimension", attributes.get("d"))
        self.dimension = dimension if type(dimension) is int else 1
        self.sequence = _digest(type(engine), attributes)

    def peek(self):
        n = self.attributes.get("num_generated")
        return struct.pack("<QQ", jumps[0], n * self.dimension if type(n) is int and n >= 0 else 0)

    def place(self, peeked):
        return b"", 0

    def raw(self):
        return self.sequence + self.peek()


def _digest(cls, attributes):
    """16 bytes by which sequences differ: the direction numbers or permutations as scrambled, and the shift."""
    sample.bind()
    digest = sample.blake2b(("%s.%s" % (objects.module(cls), objects.qualname(cls))).encode(), digest_size=16)
    for name in sorted(k for k in list(attributes) if type(k) is str and k not in _NOT_OF_THE_SEQUENCE):
        for value in attributes[name] if type(attributes[name]) is list else [attributes[name]]:
            digest.update(name.encode() + b":" + _bytes(value))
    return digest.digest()


def _bytes(value):
    torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
    if type(value) is int or type(value) is float or type(value) is bool:
        return repr(value).encode()
    if numpy is not None and type(value) is numpy.ndarray and not value.dtype.hasobject:
        return value.tobytes()
    if type(value) is torch.Tensor:
        with Quiet():
            whole = value.detach().contiguous()
            return ctypes.string_at(whole.data_ptr(), whole.numel() * whole.element_size())
    return b""


rng.register("sobol", classes, Engine)
