"""Samples that go on where the one before began: windows of one series, one step further each.

Of samples whose indices follow one another: whether an array of one, but for its first rows, is what the next begins
with, bit for bit. Views and copies alike.
"""
import ctypes

from . import sample

LARGEST = 64 << 10  # bytes of an array
LONGEST = 1024  # rows
DIFFERENT = 8  # rows at least in what two windows share: in one-hot vectors, or among zeros, there is no series
MAX_ARRAYS = 4  # of a sample


class Windows:
    """Of one pass of one worker. The step from window to window is looked for once."""
    __slots__ = ("place", "step")

    def __init__(self):
        self.place = self.step = None  # step 0: these are no windows

    def follows(self, before, after):
        if self.step == 0:
            return False
        if self.step is None:
            self.step = 0
            for self.place in range(MAX_ARRAYS):
                found = self.pair(before, after)
                if found is not None:
                    self.step = _step(*found)
                if self.step:
                    return True
            return False
        found = self.pair(before, after)
        return found is not None and _shares(found[0], found[1], found[2], self.step)

    def pair(self, before, after):
        a, b = _array(before, self.place), _array(after, self.place)
        if a is None or b is None or a[1:] != b[1:]:
            return None
        return a[0], b[0], len(a[0]) // a[1][0]


def _array(held, place):
    """(bytes, shape, type) of one of a sample's arrays."""
    cls = type(held)
    if cls is tuple or cls is list:
        value = held[place] if place < len(held) else None
    elif cls is dict:
        value = list(held.values())[place] if place < len(held) <= sample.PACKED else None
    else:
        value = held if place == 0 else None
    cls = type(value)
    if cls is sample.tensor:
        if value.layout is not sample.strided or value.device != sample.cpu or value.dtype not in sample._plain:
            return None
        if not value.is_contiguous() or (sample._nested and value.is_nested):
            return None
        shape, size = tuple(value.shape), value.numel() * sample._plain[value.dtype][1]
        if not _fits(shape, size) or value.data_ptr() < 1 << 20:
            return None
        return ctypes.string_at(value.data_ptr(), size), shape, value.dtype
    if cls is sample.ndarray and value.dtype.kind in "biuf" and _fits(value.shape, value.nbytes):
        return value.tobytes(), value.shape, value.dtype
    return None


def _fits(shape, size):
    return len(shape) > 0 and DIFFERENT < shape[0] <= LONGEST and 0 < size <= LARGEST


def _step(a, b, row):
    """Rows from one window to the next, at most half of one; 0: they are none."""
    head = b[:row]
    for at in range(row, len(a) // 2 + 1, row):
        if a[at:at + row] == head and _shares(a, b, row, at // row):
            return at // row
    return 0


def _shares(a, b, row, step):
    shared = a[step * row:]
    return shared == b[:len(shared)] and len({shared[i:i + row] for i in range(0, len(shared), row)}) >= DIFFERENT
