"""OpenCV's functions that move its generator, which cannot be read: counted."""
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
    opencv.state["seed"], opencv.state["bytes"] = int(_target(args, kwargs)), 0


def _drawn(_, result, args, kwargs):
    opencv.state["bytes"] += int(getattr(_target(args, kwargs), "nbytes", 8))
