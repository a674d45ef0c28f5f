"""OpenCV's functions that move its generator, which cannot be read: counted."""
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
                opencv.state["seed"], opencv.state["bytes"] = int(target), 0
            else:
                opencv.state["bytes"] += int(getattr(target, "nbytes", 8))
        except Exception as e:
            if guard.theirs(e):
                raise
        return result
    return wrapping.dress(counted, original)
