"""Reads the state of generators: never draws, never seeds, never imports the library they come from.

A reader is made per generator object. `peek()` is cheap and changes exactly when the generator was drawn from or seeded;
`place(peeked)` gives (id, pos) of PROTOCOL.md and `raw()` the whole state. Layouts that are read through memory were
measured on CPython 3.8-3.14, NumPy 1.18-2.4 and torch 1.8-2.15, and each object's is compared with its official
getter before it is trusted.
"""
import ctypes
import random
import struct
import sys

from . import objects
from .quiet import Quiet

_MT = struct.Struct("<624Ii")
_KEY_BYTES = 4 * 624
_HEAD_BYTES = object.__basicsize__


def numpy_random():
    """numpy.random.mtrand if the program has loaded it. NumPy >= 2.4 loads numpy.random at first use, and loading it
    in the parent of forked workers would give them all one state: the bug that we look for."""
    return sys.modules.get("numpy.random.mtrand")


class Mersenne:
    """MT19937 behind an address: `key` is where its 624 words are, `pos` where its int32 position is."""
    kind = "mt19937"

    def __init__(self, key, pos, keep):
        self.keep = keep  # the memory is the generator's
        self.region, self.form = (key + 4, 16, pos, 4, keep), 1  # of native.Peeks: its add() and tell()
        self.key = memoryview((ctypes.c_char * _KEY_BYTES).from_address(key)).cast("B")
        self.words = self.key[4:20]
        self.pos = memoryview((ctypes.c_char * 4).from_address(pos)).cast("B")

    def peek(self):
        return bytes(self.words) + bytes(self.pos)

    def place(self, peeked):
        return peeked[:16], int.from_bytes(peeked[16:], "little", signed=True)

    def raw(self):
        return bytes(self.key) + bytes(self.pos)


class PythonSlow:
    """random.Random where its memory is not laid out as in CPython."""
    kind = "mt19937"
    region = None

    def __init__(self, r):
        self.r = r

    def peek(self):
        state = _RANDOM.getstate(self.r)
        return struct.pack("<4Ii", *(state[1:5] + state[-1:]))

    place = Mersenne.place

    def raw(self):
        return _MT.pack(*_RANDOM.getstate(self.r))


class TorchSlow:
    """torch.Generator of the CPU through get_state(), which copies 5 KB. The state is CPUGeneratorImplStateLegacy of
    aten/src/ATen/CPUGeneratorImpl.cpp: u64 seed, i32 left, i32 seeded, u64 next, 624 x u64 key, then cached normals."""
    kind = "mt19937"
    region = None
    _KEY = 24
    _SIZE = _KEY + 8 * 624

    def __init__(self, g):
        self.g = g
        self.get_state = _torch_generator().get_state  # not the subclass's

    def raw(self):
        with Quiet():  # a TorchFunctionMode of the program's would see the call
            state = self.get_state(self.g)
            whole = ctypes.string_at(state.data_ptr(), self._SIZE)
        left, _, following = struct.unpack_from("<iiQ", whole, 8)
        return _MT.pack(*(struct.unpack_from("<624Q", whole, self._KEY) + (_used(left, following),)))

    def peek(self):
        raw = self.raw()
        return raw[4:20] + raw[_KEY_BYTES:]

    place = Mersenne.place


class Torch:
    """The same in place. CPUGeneratorImpl holds an at::mt19937, whose data (mt19937_data_pod of
    aten/src/ATen/core/MT19937RNGEngine.h) are u64 seed, i32 left, bool seeded, u32 next, 624 x u32 key. Where they begin
    in it differs between versions; it is found by looking for the key, and taken only if all of it agrees with
    get_state(). Raises ValueError where it does not."""
    kind = "mt19937"
    _HEAD = 512  # bytes in which the key must begin; the object is five times as long

    def __init__(self, g):
        self.g, self.slow = g, TorchSlow(g)
        self.address = _torch_generator()._cdata.__get__  # of the C++ object: set_state may put another in its place
        self.find()

    def find(self):
        self.at = self.address(self.g)
        official = self.slow.raw()
        offset = ctypes.string_at(self.at, self._HEAD).find(official[:32])
        if offset < 12 or ctypes.string_at(self.at + offset, _KEY_BYTES) != official[:_KEY_BYTES]:
            raise ValueError("torch.Generator is laid out in another way")
        whole = memoryview((ctypes.c_char * (12 + _KEY_BYTES)).from_address(self.at + offset - 12)).cast("B")
        self.counters, self.words, self.key = whole[:12], whole[16:32], whole[12:]
        place = id(self.g) + _HEAD_BYTES  # THPGenerator of torch/csrc/Generator.h: the at::Generator is what follows the object's head
        held = ctypes.c_uint64.from_address(place).value == self.at
        self.region = (self.at + offset + 4, 16, self.at + offset - 12, 12, self.g, place, self.at) if held else None
        self.form = 2
        if self.place(self.peek())[1] != _MT.unpack(official)[624]:
            raise ValueError("torch.Generator counts in another way")

    def peek(self):
        if self.address(self.g) != self.at:
            self.find()
        return bytes(self.words) + bytes(self.counters)

    def place(self, peeked):
        left, _, following = struct.unpack("<iII", peeked[16:])
        return peeked[:16], _used(left, following)

    def raw(self):
        return bytes(self.key) + struct.pack("<i", self.place(self.peek())[1])


def _used(left, following):
    """Words of the block that are used. left is 1 when it is used up, also right after seeding, when next is still 0."""
    return 624 if left == 1 else int(following)


class Words:
    """NumPy's bit generators that are no Mersenne twister: few words, read through their own getter."""
    region = None

    def __init__(self, bits, kind, pack):
        self.bits, self.kind, self.pack = bits, kind, pack

    def peek(self):
        return self.pack(self.bits.state)

    def place(self, peeked):
        return b"", 0

    def raw(self):
        return self.peek()


def _pcg(s):
    t = s["state"]
    return t["state"].to_bytes(16, "little") + t["inc"].to_bytes(16, "little") + struct.pack("<II", s["has_uint32"], s["uinteger"])


def _philox(s):
    t = s["state"]
    return struct.pack("<10QIIII", *([int(w) for w in t["counter"]] + [int(w) for w in t["key"]] + [int(w) for w in s["buffer"]]
                                     + [s["buffer_pos"], s["has_uint32"], s["uinteger"], 0]))


def _sfc(s):
    return struct.pack("<4QII", *([int(w) for w in s["state"]["state"]] + [s["has_uint32"], s["uinteger"]]))


class Pcg:
    """PCG64 and PCG64DXSM in place: pcg64_state of numpy/random/src/pcg64/pcg64.h is a pointer to u128 state and u128 inc,
    int has_uint32, u32 uinteger. Raises ValueError where that is not what the official getter says (emulated 128 bits)."""

    def __init__(self, bits, kind):
        self.bits, self.kind = bits, kind  # the memory is the generator's
        at = bits.ctypes.state_address
        self.words = memoryview((ctypes.c_char * 32).from_address(ctypes.c_void_p.from_address(at).value)).cast("B")
        self.half = memoryview((ctypes.c_char * 8).from_address(at + ctypes.sizeof(ctypes.c_void_p))).cast("B")
        self.region = (ctypes.c_void_p.from_address(at).value, 32, at + ctypes.sizeof(ctypes.c_void_p), 8, bits)
        self.form = 3
        if self.peek() != _pcg(bits.state):
            raise ValueError("PCG64 is laid out in another way")

    def peek(self):
        return bytes(self.words) + bytes(self.half)

    place, raw = Words.place, Words.raw


# Generators of other libraries, by kind: (their classes, as far as they are loaded; the reader of one; those of the whole process).
OTHERS = {}


def register(kind, classes, reader, globals_=tuple):
    """Called by the module that reads them, when it is imported."""
    OTHERS[kind] = classes, reader, globals_


_PACKERS = {"PCG64": ("pcg64", _pcg), "PCG64DXSM": ("pcg64dxsm", _pcg), "Philox": ("philox", _philox), "SFC64": ("sfc64", _sfc)}
_RANDOM = random.Random.__mro__[1]  # _random.Random, whose methods are C


def _torch_generator():
    return sys.modules["torch"]._C.Generator


def kind_of(cls):
    """Which reader an object of the class needs: numpy, random, torch, bits, or None if it is no generator.
    By class only: asking the object (isinstance reads __class__) could run the user's code."""
    if issubclass(cls, _RANDOM):
        return None if issubclass(cls, random.SystemRandom) else "random"
    if issubclass(cls, _torch_generator()):
        return "torch"
    numpy = numpy_random()
    if numpy is not None:
        if issubclass(cls, (numpy.RandomState, sys.modules["numpy.random"].Generator)):
            return "numpy"
        if issubclass(cls, sys.modules["numpy.random"].BitGenerator):
            return "bits"
    for kind, (known, _, _) in OTHERS.items():
        if any(objects.derives(cls, k) for k in known()):  # not issubclass: SciPy's are abstract base classes
            return kind
    return None


def classes():
    """All classes of generators, and what is derived of them, by id: (kind, class)."""
    numpy = numpy_random()
    todo, found = [_RANDOM, _torch_generator()], {}
    for known, _, _ in OTHERS.values():
        todo += known()
    if numpy is not None:
        todo += [numpy.RandomState, sys.modules["numpy.random"].Generator, sys.modules["numpy.random"].BitGenerator]
    while todo:
        cls = todo.pop()
        kind = kind_of(cls)
        if kind is not None and id(cls) not in found:
            found[id(cls)] = kind, cls
            todo += type.__subclasses__(cls)
    return found


def singletons():
    """The generators of the process: of each library its own."""
    numpy = numpy_random()
    return [random._inst, sys.modules["torch"].default_generator] + ([] if numpy is None else [numpy._rand])


def key(obj, kind=None):
    """Equal for objects that draw from one and the same state."""
    return id(bits_of(obj)) if (kind or kind_of(type(obj))) == "numpy" else id(obj)


def reader(obj, kind=None):
    """A reader of a generator, or None if its state cannot be read (another device, a class of the user's own making)."""
    kind = kind or kind_of(type(obj))
    if kind in OTHERS:
        return OTHERS[kind][1](obj)
    if kind == "random":
        return _python(obj)
    if kind == "torch":
        return _torch(obj) if _torch_generator().device.__get__(obj).type == "cpu" else None
    return _numpy(bits_of(obj) if kind == "numpy" else obj)


def _torch(g):
    try:
        return Torch(g)
    except (ValueError, AttributeError):  # another layout, or no _cdata
        return TorchSlow(g)


def bits_of(obj):
    """The bit generator of a NumPy Generator or RandomState."""
    numpy = numpy_random()
    if issubclass(type(obj), numpy.RandomState):
        return numpy.RandomState._bit_generator.__get__(obj)
    return sys.modules["numpy.random"].Generator.bit_generator.__get__(obj)


def place_of_bits(owner, bits):
    """The address in a RandomState where its bit generator hangs; None: not to be told."""
    if type(owner) is not numpy_random().RandomState:
        return None
    words = (ctypes.c_uint64 * (type(owner).__basicsize__ // 8)).from_address(id(owner))
    found = [i for i, word in enumerate(words) if word == id(bits)]
    return id(owner) + 8 * found[0] if len(found) == 1 else None


def _numpy(bits):
    if not objects.module(type(bits)).startswith("numpy.random"):
        return None
    name = objects.called(type(bits))
    if name == "MT19937":
        at = bits.ctypes.state_address
        return Mersenne(at, at + _KEY_BYTES, bits)  # mt19937_state of numpy/random/src/mt19937/mt19937.h
    if name in ("PCG64", "PCG64DXSM"):
        try:
            return Pcg(bits, name.lower())
        except ValueError:
            pass
    if name in _PACKERS:
        return Words(bits, *_PACKERS[name])
    return None


def _python(r):
    """RandomObject of CPython's Modules/_randommodule.c: object head, int index, uint32 state[624]."""
    if sys.implementation.name == "cpython":
        official = _MT.pack(*_RANDOM.getstate(r))
        for head in (16, 32):  # the second: free-threaded
            found = ctypes.string_at(id(r) + head, 4 + _KEY_BYTES) if _RANDOM.__basicsize__ >= head + 4 + _KEY_BYTES else b""
            if found and found[4:] + found[:4] == official:
                return Mersenne(id(r) + head + 4, id(r) + head, r)
    return PythonSlow(r)
