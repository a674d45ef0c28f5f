"""OpenCV's functions that move its generator, which cannot be read: counted."""
import sys

from ..patch import wrapping
from ..record import guard
from ..read import opencv


def watch(module):
    """cv2 was imported."""
    if opencv.state["on"]:
        return
    opencv.state["on"] = True
    for name in ("setRNGSeed", "randu", "randn", "randShuffle"):
        original = module.__dict__.get(name)
        if original is not None:
            setattr(module, name, _counted(name, original))


def _counted(name, original):

    def counted(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            target = args[0] if args else next(iter(kwargs.values()))
            if name == "setRNGSeed":
                opencv.state["seed"], opencv.state["bytes"] = target if type(target) is int else 0, 0
            else:
                opencv.state["bytes"] += _bytes(target)
        except Exception as e:
            if guard.theirs(e):
                raise
        return result
    return wrapping.dress(counted, original)


def _bytes(target):
    """Of an array of NumPy's; of cv2's own, which only it can ask, so many that it counts as a draw."""
    numpy = sys.modules["numpy"]  # cv2 has imported it
    return int(numpy.ndarray.nbytes.__get__(target)) if issubclass(type(target), numpy.ndarray) else 8
