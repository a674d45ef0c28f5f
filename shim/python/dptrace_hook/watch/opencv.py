"""OpenCV's functions that move its generator, which cannot be read: counted."""
import sys

from ..patch import wrapping
from ..read import opencv


def watch(module):
    """cv2 was imported."""
    if opencv.state["on"]:
        return
    opencv.state["on"] = True
    wrapping.wrap(module, "setRNGSeed", after=_seeded)
    for name in ("randu", "randn", "randShuffle"):
        wrapping.wrap(module, name, after=_drawn)


def _target(args, kwargs):
    return args[0] if args else next(iter(kwargs.values()))


def _seeded(_, result, args, kwargs):
    target = _target(args, kwargs)
    opencv.state["seed"], opencv.state["bytes"] = target if type(target) is int else 0, 0


def _drawn(_, result, args, kwargs):
    opencv.state["bytes"] += _bytes(_target(args, kwargs))


def _bytes(target):
    """Of an array of NumPy's; of cv2's own, which only it can ask, so many that it counts as a draw."""
    numpy = sys.modules["numpy"]  # cv2 has imported it
    return int(numpy.ndarray.nbytes.__get__(target)) if issubclass(type(target), numpy.ndarray) else 8
