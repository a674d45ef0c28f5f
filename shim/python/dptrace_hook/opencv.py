"""OpenCV's generator cannot be read. It is thread-local, starts in one constant state in every process and thread, and
only these functions move it: so its seed and the bytes drawn since are its state."""
import struct

from . import discover, guard

_state = {"seed": -1, "bytes": 0, "on": False}


class Virtual:
    kind = "cv2"

    def peek(self):
        return struct.pack("<qQ", _state["seed"], _state["bytes"])

    def place(self, peeked):
        return b"", 0

    def raw(self):
        return self.peek()


class Slot(discover.Found):
    __slots__ = ()

    def current(self):
        return _state


def slots():
    return [Slot("cv2", _state, "cv2", "global", "")] if _state["on"] else []


def watch(module):
    """cv2 was imported."""
    if _state["on"]:
        return
    _state["on"] = True
    for name in ("setRNGSeed", "randu", "randn", "randShuffle"):
        original = module.__dict__.get(name)
        if original is not None:
            setattr(module, name, _counted(name, original))


def _counted(name, original):
    from . import hooks

    def counted(*args, **kwargs):
        result = original(*args, **kwargs)
        try:
            target = args[0] if args else next(iter(kwargs.values()))
            if name == "setRNGSeed":
                _state["seed"], _state["bytes"] = int(target), 0
            else:
                _state["bytes"] += int(getattr(target, "nbytes", 8))
        except Exception as e:
            if guard.theirs(e):
                raise
        return result
    return hooks.dress(counted, original)
