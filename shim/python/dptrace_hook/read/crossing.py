"""What a copy from the memory of the host to a device was, told by the tensors after it has begun (PROTOCOL.md, "Copies").

Nothing here computes, waits, or asks the device: the driver is asked whether memory is pinned, once for a copy.
"""
import sys

from . import objects
from .quiet import Quiet, modes_in_force, quiet

LEAST = 64 << 10  # bytes: of copies that are not larger the caller need not wait
# No device whose driver copies from pinned memory any other way than from any.
_OTHERS = {"cpu", "meta", "xla", "lazy", "mps", "vulkan", "ipu", "fpga", "maia", "mtia", "mkldnn", "opengl", "opencl", "ideep", "ort"}
_plain = {}  # id of a class of tensors -> (it, whether its tensors are what they seem)


class Crossing:
    __slots__ = ("bytes", "source", "pinned", "cast", "strided", "cuda", "capturing", "waits")


def crossed(source, target, non_blocking):
    """A Crossing; None: it was no copy of more than LEAST bytes from the memory of the host to a device, or none that can be told."""
    torch = _torch or bind()
    a, b = type(source), type(target)
    if a is torch.tensor and b is torch.tensor and not torch.modes():
        if place(target) in _OTHERS:  # as a rule
            return None
        return _look(torch, source, target, non_blocking)
    if _is_plain(a, torch) and _is_plain(b, torch):
        with Quiet():
            return _look(torch, source, target, non_blocking)
    return None


class Torch:
    """What is asked of torch here; None: this version does not have it."""
    __slots__ = ("tensor", "strided", "modes", "tracing", "compiling", "wrapped", "capturing", "is_pinned", "initialized", "accelerators")

    def __init__(self, torch):
        c, of = objects.attributes(torch._C), objects.attributes
        self.tensor, self.strided, self.modes = torch.Tensor, torch.strided, modes_in_force()
        self.tracing, self.compiling = c.get("_get_tracing_state"), of(of(torch).get("compiler")).get("is_compiling")
        wraps, self.capturing = of(c.get("_functorch")).get("is_functorch_wrapped_tensor"), c.get("_cuda_isCurrentStreamCapturing")
        self.wrapped = [f for f in (wraps, of(torch).get("_is_functional_tensor")) if f is not None], c.get("_has_storage")
        self.is_pinned, self.initialized = torch._C._TensorBase.__dict__.get("is_pinned"), torch.cuda.is_initialized
        self.accelerators = "torch.accelerator" in sys.modules  # up to torch 2.5 CUDA is asked, whatever the device is


_torch = None


def bind():
    global _torch
    _torch = Torch(sys.modules["torch"])
    return _torch


def _is_plain(cls, torch):
    """No class with operations of its own: what such a tensor is made of lies elsewhere, and is copied by them."""
    known = _plain.get(id(cls))
    if known is None:
        known = cls, cls is torch.tensor or objects.derives(cls, torch.tensor) and \
            objects.member(cls, "__torch_dispatch__") is objects.member(torch.tensor, "__torch_dispatch__")
        if len(_plain) < 256:
            _plain[id(cls)] = known
    return known[1]


def _look(torch, source, target, non_blocking):
    if place(source) != "cpu":
        return None
    to = place(target)
    if to in _OTHERS or source.layout is not torch.strided or target.layout is not torch.strided or busy(torch) or _wrapped(torch, source):
        return None
    found = Crossing()
    found.cast = source.dtype is not target.dtype
    found.bytes = target.numel() * (source if non_blocking else target).element_size()
    if found.bytes <= LEAST:
        return None
    found.strided = not _alike(source, target)
    found.cuda = to == "cuda"
    found.capturing = found.cuda and capturing(torch)
    found.source = source.data_ptr()
    found.pinned = None if found.capturing else is_pinned(torch, source, found.cuda)
    found.waits = not non_blocking
    return found


def place(tensor):
    return tensor.device.type


def busy(torch):
    """Reports whether what is called is being compiled, traced or exported now: then nothing is asked of tensors."""
    return torch.tracing is not None and torch.tracing() is not None or torch.compiling is not None and torch.compiling()


def _wrapped(torch, tensor):
    """Reports whether a tensor stands for others, as those of torch.func do, and has no memory of its own."""
    wraps, has_storage = torch.wrapped
    return has_storage is not None and not has_storage(tensor) or any([f(tensor) for f in wraps])


def capturing(torch):
    return torch.capturing is not None and torch.capturing()


def is_pinned(torch, tensor, cuda):
    """None: nobody can say. The driver is there, as it has just copied."""
    if cuda and not torch.initialized() or not cuda and not torch.accelerators or torch.is_pinned is None:
        return None
    with quiet():  # it is an operation
        return torch.is_pinned(tensor)


def _alike(a, b):
    """Reports whether the elements of two tensors lie one after the other, in the same order: then they are copied as they are."""
    shape = tuple(a.shape)
    if shape != tuple(b.shape):
        return False
    dims = [(s, t, n) for s, t, n in zip(a.stride(), b.stride(), shape) if n != 1]
    expected = 1
    for s, t, n in sorted(dims):
        if s != expected or t != expected:
            return False
        expected *= n
    return True
