"""Optimizer steps: they tell training from evaluation, and one training from another."""
import os
import sys
import weakref

from ..patch import preceding, wrapping
from ..patch.load import native
from ..record import guard, ring
from ..read import objects

MAX_TOLD = 1000  # optimizers that are written down, of those that train nothing
SAMPLED = 64  # of an optimizer's parameters, spread over all: by them they are known again; of many optimizers fewer

# What is written with each batch: twin.Training. taken: steps of this process so far; ran: backward calls so far; last: number of the
# optimizer that stepped last, of those that train, 0: none; grads_from, grads_to: the steps since the last next() used the gradients
# of the backward calls after the first so many, up to so many; restarts: number of this training's weights, another one after each
# load_state_dict; then: steps until the last next(); bits: what was switched since, as layouts.STATUS_GRAD_OFF.
now = native.Training()
made = 0  # optimizers so far
look = None  # called with the optimizer after its step, where somebody waits for that
_entry = None  # of the optimizer that stepped last
_entries = {}  # id of an optimizer -> Entry
_room = 64
_numbers = 0
_told = 0
_fresh = []  # entries whose parameters are not looked at yet
_parameters = {}  # id of a parameter -> (weak reference to it, batches delivered when it was first seen)
_compiling = None


class Entry:
    """What is known of an optimizer."""
    __slots__ = ("reference", "number", "made", "since", "trains", "zeroed", "params", "told")

    def __init__(self, optimizer, batches):
        self.reference = weakref.ref(optimizer)
        self.number = 0  # from its first step on
        self.made = batches  # that were delivered before it
        self.since = None  # batches that were delivered before its parameters were seen first; None: not looked at yet
        self.trains = False  # it holds parameters of modules
        self.zeroed = 0  # backward calls whose gradients it has thrown away
        self.params = 0
        self.told = False


def after_fork():
    now.delivered = now.ran = now.taken = now.grads_from = now.grads_to = 0
    now.put = now.record = now.sink = None  # the parent's
    now.calls = now.own_ns = now.due = 0


def is_grad_enabled():
    return sys.modules["torch"].is_grad_enabled()


def compiling():
    """A compiler traces the program: nothing of ours may become part of the user's graph."""
    return _compiling is not None and _compiling()


def traced():
    """Whether this torch has a compiler that may trace wrappers (2.0): those must be functions of Python then, each with a frame of
    its own. Not asked for as an attribute: torch is still being imported."""
    file = sys.modules["torch"].__dict__.get("__file__")
    return file is None or os.path.isdir(os.path.join(os.path.dirname(file), "_dynamo"))


def entry_of(optimizer):
    global _room, made
    entry = _entries.get(id(optimizer))
    if entry is not None and entry.reference() is optimizer:
        return entry
    if len(_entries) > _room:
        for key in [key for key, e in _entries.items() if e.reference() is None]:
            del _entries[key]
        _room = 64 + 2 * len(_entries)
    made += 1
    entry = _entries[id(optimizer)] = Entry(optimizer, now.delivered)
    _fresh.append(entry)
    if len(_fresh) > 64:
        settle()
    return entry


def settle():
    """Looks at the parameters of the optimizers that are new: some of them, to know them again."""
    global _parameters
    if len(_parameters) > 4096:
        _parameters = {key: p for key, p in _parameters.items() if p[0]() is not None}
    while _fresh:
        entry = _fresh.pop()
        optimizer = entry.reference()
        groups = None if optimizer is None else objects.attributes(optimizer).get("param_groups")
        held = []
        for group in groups if type(groups) is list else ():
            params = group.get("params") if type(group) is dict else None
            held += params if type(params) is list else []
        entry.params = len(held)
        entry.since = entry.made
        some = SAMPLED if made <= SAMPLED else 8
        for p in held[::max(len(held) // some, 1)][:some + 1]:
            if _is_parameter(p):
                entry.trains = True
                reference, since = _parameters.get(id(p), (None, 0))
                if reference is None or reference() is not p:
                    since = entry.made
                    _parameters[id(p)] = (weakref.ref(p), since)
                entry.since = min(entry.since, since)


def _is_parameter(p):
    cls = type(p)
    torch = sys.modules["torch"]
    if issubclass(cls, torch.nn.Parameter):
        return True
    return issubclass(cls, torch.Tensor) and objects.attributes_of(p, cls).get("_is_param") is True


def known(p):
    """Whether a parameter is one of those by which an optimizer's are known."""
    if _fresh:
        settle()
    entry = _parameters.get(id(p))
    return entry is not None and entry[0]() is p


def some_parameters():
    """A few that are trained."""
    found = [p for p in [reference() for reference, _ in list(_parameters.values())[:64]] if p is not None]
    return found[:4] + found[-4:]


def entries():
    """Of all optimizers."""
    return list(_entries.values())


def stepped(optimizer):
    """After a step: torch's global post hook (torch >= 2.0), or called by our wrapper of step()."""
    global _entry
    if compiling():
        return
    now.taken += 1
    entry = _entry
    if entry is None or entry.reference() is not optimizer:
        entry = _entry = entry_of(optimizer)
        if not entry.told:
            _tell(entry, optimizer)
    _use(entry)
    if look is not None:
        look(optimizer)


def _use(entry):
    """A step on parameters that are older than the last batch uses all gradients since they were last thrown away."""
    if not entry.trains or entry.since >= now.delivered:
        if not now.last:
            now.last = entry.number
        return
    now.last = entry.number
    if now.ran > entry.zeroed:
        now.grads_from = min(now.grads_from, entry.zeroed) if now.grads_to else entry.zeroed
        now.grads_to = now.ran


def _tell(entry, optimizer):
    global _numbers, _told
    settle()
    entry.told = True
    _numbers += 1
    entry.number = _numbers
    if not entry.trains:
        _told += 1
    if entry.trains or _told <= MAX_TOLD:
        ring.put_json(ring.OPTIMIZER, {"optimizer": entry.number, "class": objects.name(type(optimizer)), "params": entry.params,
                                       "trains": "yes" if entry.trains else "no", "batches": entry.made})


def watch(module):
    """torch.optim.optimizer was imported. False: it is watched already."""
    if module.__dict__.get("_dptrace"):
        return False
    module._dptrace = True
    optimizer = module.Optimizer
    # Called by __init__ for each optimizer that is made, and by __setstate__ for those that come about by copying.
    making = "_patch_step_function" if "_patch_step_function" in optimizer.__dict__ else "_hook_for_profile"
    wrapping.wrap(optimizer, making, after=_made, traced=traced())
    if not wrapping.wrap_decorated(optimizer.__dict__.get("zero_grad"), "_compile.py", "fn", before=_zeroing):  # as of torch 2.0
        wrapping.wrap(optimizer, "zero_grad", before=_zeroing, traced=traced())
    register = getattr(module, "register_optimizer_step_post_hook", None)
    if register is not None:
        register(guard.closing(lambda optimizer, *_: stepped(optimizer)))
    return True


def watch_compiler(module):
    """torch.compiler was imported, which optimizers do not wait for."""
    global _compiling
    _compiling = module.__dict__.get("is_compiling")
    if _compiling is not None:
        preceding.unless(_compiling)


def not_traced(module):
    """torch._dynamo.trace_rules was imported: what compiles the program's functions leaves ours alone, which would else be compiled
    as often as what they keep changes."""
    if "add" in module.__dict__:
        module.add("dptrace_hook")


def _made(_, result, args, kwargs):
    if not compiling():
        entry_of(args[0])
        _wrap_step(type(args[0]))


def _zeroing(args, kwargs):
    if not compiling():
        entry = _entry
        if entry is None or entry.reference() is not args[0]:
            entry = entry_of(args[0])
        entry.zeroed = now.ran


def _wrap_step(cls):
    """torch without the global hook: step() of the class that defines it, once. torch itself does so for its profiler."""
    if hasattr(sys.modules["torch.optim.optimizer"], "register_optimizer_step_post_hook"):
        return
    for k in objects.mro(cls):
        if "step" in objects.members(k):
            wrapping.wrap(k, "step", after=lambda _, result, args, kwargs: stepped(args[0]), traced=traced())
            return
