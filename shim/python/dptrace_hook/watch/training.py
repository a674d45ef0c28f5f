"""What the training loop does with what it was delivered: backward calls, gradients thrown away, grad mode, eval(), restarts.

Watched are calls that happen a few times per step, none that happens per module, tensor or parameter; where it can be, it is a
function that torch calls on the way and that has returned before anything fails: no frame of ours is in the program's tracebacks.
"""
import sys
import weakref

from ..patch import wrapping
from ..record import guard, layouts
from ..read import objects
from ..read.quiet import Quiet, unseen
from . import steps

MAX_ROOTS = 8  # modules on which eval() was called that are looked at before each delivery
MAX_MODULES = 20_000  # looked at for a parameter of an optimizer
MAX_ARMED = 256  # batches of one row whose batch norms are looked at

now = steps.now
_real = False  # backward() was called: until then autograd.grad() counts
_roots = []  # weak references to modules on which eval() was called last
_trained = {}  # id of a module -> (weak reference to it, whether it holds a parameter of an optimizer, optimizers known then)
_serial = 0  # of restarts
_swap = None  # (steps, restarts, fingerprint) before the first of several load_state_dict without a step between
_loaded = False  # since the last look at _swap
_armed_by = None  # while now.armed, next() calls that a look at batch norms lasts yet: notes of the loader whose batch of one row it is
_looks = 0


def after_fork():
    global _real, _serial, _swap, _loaded, _looks
    now.restarts = now.then = now.bits = now.look = _serial = _looks = 0
    _real = _loaded = False
    _swap = None
    del _roots[:]
    _trained.clear()
    disarm()


def flags():
    """Of the time since the last next(), as it is called again: bits that are added to its status."""
    bits = now.bits
    if _roots and not bits & layouts.STATUS_EVALUATING and in_eval():
        bits |= layouts.STATUS_EVALUATING
    if _loaded:
        settle()
    now.look = int(bool(_roots))
    if now.watched and (now.ran or not now.taken):  # else gradients come from elsewhere
        bits |= layouts.STATUS_WATCHED
    return bits


def end():
    """next() returns: what follows is what is done with what it gave."""
    now.bits = now.grads_from = now.grads_to = 0


def begin(rows, notes):
    """A batch was handed over by the loader of these notes."""
    now.delivered += 1
    now.then = now.taken
    begun(rows, notes)


def begun(rows, notes):
    global _armed_by
    if now.armed:
        now.armed -= 1
        if not now.armed or notes is not _armed_by:  # the next batch of the same loader: the loop may look one ahead
            disarm()
    if rows == 1 and not notes["single"] and steps.is_grad_enabled():
        arm()
        _armed_by = notes


def in_eval():
    """Whether a module that is trained is in evaluation mode."""
    for reference in _roots:
        root = reference()
        if root is not None and objects.attributes(root).get("training") is False and holds(root):
            return True
    return False


def holds(root):
    """Whether a module holds a parameter of an optimizer. Looked at once, and again if there are other optimizers."""
    entry = _trained.get(id(root))
    if entry is not None and entry[0]() is root and (entry[1] or entry[2] == steps.made):
        return entry[1]
    if len(_trained) > 64:
        _trained.clear()
    found, todo, seen = False, [root], 0
    while todo and seen < MAX_MODULES and not found:
        d = objects.attributes(todo.pop())
        seen += 1
        parameters, children = d.get("_parameters"), d.get("_modules")
        if issubclass(type(parameters), dict):
            found = any(steps.known(p) for p in list(dict.values(parameters)) if p is not None)
        if issubclass(type(children), dict):
            todo += [m for m in list(dict.values(children)) if m is not None]
    _trained[id(root)] = (weakref.ref(root), found, steps.made)
    return found


def watch(module):
    """torch.optim.optimizer was imported."""
    if not steps.watch(module):
        return
    torch = sys.modules["torch"]
    optimizer, modes, autograd, module = module.Optimizer, torch.autograd.grad_mode, torch.autograd, torch.nn.modules.module
    traced = steps.traced()
    wrapping.precede(autograd, "_tensor_or_tensors_to_tuple", _counting, traced)
    _note_mode(modes.set_grad_enabled)
    if "inference_mode" in modes.__dict__:
        wrapping.precede(modes.inference_mode, "__enter__", _entering, traced)
    for name, before in ("eval", _evaluating), ("zero_grad", _zeroing), ("_load_from_state_dict", _loading):
        wrapping.precede(module.Module, name, before, traced)
    wrapping.wrap(optimizer, "__setstate__", after=_loaded_into_optimizer, traced=traced)
    now.watched = int("_tensor_or_tensors_to_tuple" in autograd.backward.__code__.co_names)


def _counting(args, kwargs):
    """torch.autograd.backward and grad call _tensor_or_tensors_to_tuple with what they were given, before anything is computed."""
    global _real
    caller = wrapping.caller("_tensor_or_tensors_to_tuple").f_code.co_name
    if (caller == "backward" or not _real and caller == "grad") and not steps.compiling():
        now.ran += 1
        _real = _real or caller == "backward"


def _note_mode(cls):
    """set_grad_enabled(mode), which no_grad calls too: noted where the object is made, so that what its __init__ raises comes
    from there."""
    init = cls.__dict__.get("__init__")
    if init is None or "__new__" in cls.__dict__:
        return

    def __new__(cls, *args, **kwargs):
        if (args[0] if args else kwargs.get("mode", True)) is False:
            now.bits |= layouts.STATUS_GRAD_OFF
        return object.__new__(cls)
    cls.__new__ = wrapping.dress(__new__, init)


def _entering(args, kwargs):
    if objects.attributes(args[0]).get("mode", True):
        now.bits |= layouts.STATUS_GRAD_OFF


def _evaluating(args, kwargs):
    if not steps.compiling():
        _note_root(args[0])


def _note_root(module):
    if not any(r() is module for r in _roots):
        _roots[:] = [r for r in _roots if r() is not None][-MAX_ROOTS + 1:] + [weakref.ref(module)]
        now.look = 1
    if not now.bits & layouts.STATUS_EVALUATING and holds(module):
        now.bits |= layouts.STATUS_EVALUATING


def _zeroing(args, kwargs):
    """Module.zero_grad: no step uses the gradients of before."""
    if not steps.compiling():
        zeroed()


def zeroed():
    for entry in steps.entries():
        entry.zeroed = now.ran


def _loading(args, kwargs):
    """Module._load_from_state_dict(state_dict, prefix, ...): load_state_dict calls it for itself, without a prefix, and for
    each module inside of it."""
    prefix = args[2] if len(args) > 2 else (kwargs or {}).get("prefix", "")
    if type(prefix) is str and not prefix and holds(args[0]) and not steps.compiling():
        restarted(fingerprint() if _swap is None or _swap[0] != now.taken else _swap[2])


def _loaded_into_optimizer(_, result, args, kwargs):
    """Optimizer.__setstate__, which load_state_dict calls in the end, and copying too."""
    frame = wrapping.caller()
    for _ in range(4):
        if frame is None:
            break
        if frame.f_code.co_name == "load_state_dict":
            restarted()
            break
        frame = frame.f_back


def fingerprint():
    """Some numbers of parameters that are trained; None: not to be told without waiting for a device."""
    torch = sys.modules["torch"]
    numbers = []
    with Quiet():
        for p in steps.some_parameters():
            if type(p) is not torch.Tensor and type(p) is not torch.nn.Parameter or p.device.type != "cpu" or p.layout is not torch.strided:
                return None
            flat = p.detach().reshape(-1)
            numbers.append(tuple(flat[::max(flat.numel() // 16, 1)][:16].tolist()))
    return numbers or None


def restarted(before=None):
    """Other weights were loaded, or another state of an optimizer."""
    global _serial, _swap, _loaded
    if _swap is None or _swap[0] != now.taken or before is None:
        _swap = (now.taken, now.restarts, before)
    _serial += 1
    now.restarts = _serial
    _loaded = True
    now.look = 1


def settle():
    """Weights that were put in for an evaluation and are taken out again, with no step between, are no restart: all is as it
    was before the first of the two."""
    global _loaded
    _loaded = False
    if _swap[0] == now.taken and _swap[2] is not None and fingerprint() == _swap[2]:
        now.restarts = _swap[1]


def arm():
    """Looks at the batch norms that get a batch of one row."""
    global _looks
    functional = sys.modules.get("torch.nn.functional")
    original = None if functional is None else functional.__dict__.get("_verify_batch_size")
    if now.armed or original is None or _looks >= MAX_ARMED:
        return
    _looks += 1
    now.armed = 2
    functional._verify_batch_size = _looking(original)


def disarm():
    global _armed_by
    now.armed, _armed_by = 0, None
    functional = sys.modules.get("torch.nn.functional")
    if functional is not None:
        ours = functional.__dict__.get("_verify_batch_size")
        if type(ours) is type and "_dptrace" in ours.__dict__:
            functional._verify_batch_size = ours._dptrace


def _looking(original):
    """Stands for torch.nn.functional._verify_batch_size(size), which batch_norm calls in training mode. It raises, so it is
    called as the __init__ of a class: by the interpreter, not by a frame of ours."""
    looking = guard.closing(look)

    def __new__(cls, size):
        looking(size)
        return object.__new__(cls)
    return type("_verify_batch_size", (), {"__new__": __new__, "__init__": staticmethod(original), "_dptrace": original,
                                           "__slots__": ()})


def look(size):
    if wrapping.caller().f_code.co_name == "batch_norm" and type(size[0]) is int and size[0] == 1 and not steps.compiling():
        now.bits |= layouts.STATUS_ALONE
        disarm()


def rows(data, depth=3):
    """The first dimension of the first array in a batch; -1: there is none, or it is not to be told."""
    cls = type(data)
    torch = sys.modules["torch"]
    if cls is torch.Tensor and unseen():
        return data.shape[0] if data.dim() else -1
    if issubclass(cls, torch.Tensor):
        with Quiet():
            shape = torch.Tensor.shape.__get__(data) if _plain(cls, torch) else ()
            return int(shape[0]) if len(shape) else -1
    if cls is tuple or cls is list:
        inside = data
    elif issubclass(cls, dict):
        inside = dict.values(data)
    elif issubclass(cls, (tuple, list)):
        if objects.called(cls) == "PackedSequence":  # its first is of all steps of all sequences
            return -1
        inside = tuple.__iter__(data) if issubclass(cls, tuple) else list.__iter__(data)
    else:
        numpy = sys.modules.get("numpy")
        if numpy is not None and cls is numpy.ndarray:
            return data.shape[0] if data.ndim else -1
        inside = _attributes(data, cls)
    if depth:
        left = 16
        for value in inside:
            found = -1 if value is None or id(type(value)) in _ATOMS else rows(value, depth - 1)
            left -= 1
            if found >= 0 or not left:
                return found
    return -1


def _plain(cls, torch):
    """Whether the shape of a tensor is there to be read, and not asked of a class of the program's."""
    return cls is torch.Tensor or objects.library(objects.module(cls)) or \
        objects.member(cls, "__torch_dispatch__") is objects.member(torch.Tensor, "__torch_dispatch__")


_ATOMS = objects.ids(int, float, str, bytes, bool)


def _attributes(data, cls):
    """What an object of the user's own has, by its instance dictionary."""
    return list(objects.attributes_of(data, cls).values())
