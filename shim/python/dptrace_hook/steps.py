"""Optimizer steps: they tell training from evaluation, and one training from another."""
import sys
import weakref

from . import discover, guard, identity, ring

taken = 0  # steps of this process so far
handed = 0  # batches that the program was handed so far, and the steps until the last one
taken_when_handed = 0
look = None  # called with the optimizer after its step, where somebody waits for that
last = 0  # number of the optimizer that stepped last; 0: none
_last = None  # weak reference to it
_optimizers = identity.Numbers()


def is_grad_enabled():
    return sys.modules["torch"].is_grad_enabled()


def stepped(optimizer, args=None, kwargs=None):
    """After a step: torch's global post hook (torch >= 2.0), or called by our wrapper of step()."""
    try:
        if _compiling():
            return  # being traced: nothing of ours may become part of the user's graph
        global taken
        taken += 1
        if _last is None or _last() is not optimizer:
            _switch(optimizer)
        if look is not None:
            look(optimizer)
    except Exception as e:
        if guard.theirs(e):
            raise


def _compiling():
    compiler = getattr(sys.modules["torch"], "compiler", None)
    ask = getattr(compiler, "is_compiling", None)
    return ask is not None and ask()


def _switch(optimizer):
    global last, _last
    last, new = _optimizers.of(optimizer)
    _last = weakref.ref(optimizer)
    if new:
        ring.put_json(ring.OPTIMIZER, {"optimizer": last, "class": discover.name(type(optimizer))})


def watch(module):
    """torch.optim.optimizer was imported."""
    if module.__dict__.get("_dptrace"):
        return
    module._dptrace = True
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(stepped)
        return
    from . import hooks
    hooks.wrap(module.Optimizer, "__init__", hooks.around(_init))


def _init(original, self, *args, **kwargs):
    original(self, *args, **kwargs)
    try:
        _wrap_step(type(self))
    except Exception as e:
        if guard.theirs(e):
            raise


def _wrap_step(cls):
    """torch without the global hook: step() of the class that defines it, once. torch itself does so for its profiler."""
    for k in cls.__mro__:
        step = k.__dict__.get("step")
        if step is None:
            continue
        if not getattr(step, "_dptrace", False):
            from . import hooks

            def counted(self, *args, **kwargs):
                result = step(self, *args, **kwargs)
                stepped(self)
                return result

            hooks.dress(counted, step)
            counted.__dict__.update(step.__dict__)  # torch marks what it has wrapped with `hooked`
            counted._dptrace = True
            k.step = counted
        return
