"""What ranks exchange where no DDP or FSDP is seen: their gradients, each by itself or all in one tensor, or something else.

Looked at until the first steps of the optimizers have told: a gradient that is reduced by hand lies at the same address at the
step. Parts of one replica (tensor, pipeline parallel) exchange something else.

And whether ranks meet between a batch and its step: there they may agree on whether to go on. All calls are counted for that.
"""
import sys

from ..patch import wrapping
from ..record import ring
from ..read import groups, objects
from ..read.quiet import Quiet
from . import dist, steps

_LOOKS = 8  # steps after collectives, until it is settled
_MAX_PENDING = 1 << 14
_UNDER_WAY = ("isend", "irecv", "batch_isend_irecv")  # when they return: nobody has waited for it
_OTHERS = ("send", "recv", "all_to_all", "all_to_all_single", "all_gather", "all_gather_into_tensor", "reduce_scatter",
           "reduce_scatter_tensor")
_LOGGER = "c10d_logger.py"  # whose decorators call the originals, since torch 2.0
_OPAQUE = ("monitored_barrier",)  # what no compiler looks into
_MEETINGS = ("barrier", "monitored_barrier", "broadcast", "reduce", "gather", "scatter")
_OBJECTS = ("all_gather_object", "gather_object", "scatter_object_list", "broadcast_object_list")

pending = []  # of this step: (address, elements, group)
_state = {"left": _LOOKS}
_met = {"calls": {}, "handed": 0, "since": 0, "failed": None}  # calls that have returned; how many of them since a batch was handed over


def after_fork():
    del pending[:]
    steps.look, _state["left"] = None, _LOOKS
    _met.update({"calls": {}, "handed": 0, "since": 0, "failed": None})


def watch(module):
    """torch.distributed.distributed_c10d was imported."""
    dist.watch_groups(module)
    public = sys.modules["torch.distributed"].__dict__
    for names, tell in (("all_reduce",), _reduced), (_OTHERS, _exchanged), (_OBJECTS, _objects), (_MEETINGS, None), (_UNDER_WAY, None):
        for name in names:
            original = module.__dict__.get(name)
            if names is _UNDER_WAY:
                _begun(module, name)
            else:
                _watched(module, name, tell)
            if original is not None and public.get(name) is original:
                public[name] = module.__dict__[name]


def _watched(module, name, tell):
    """Calls tell(name, args, kwargs) when the original has returned, as long as it is not settled."""
    def returned(_, result, args, kwargs):
        kwargs = kwargs or {}
        if groups.world_size() > 1 and dist.by_program(_LOGGER):
            if tell is not None and _state["left"] > 0:
                tell(name, args, kwargs)
            if result is None:  # else it is under way, and nobody has waited for it
                _meet(name, kwargs)

    def failed(_, raised, args, kwargs):
        _met["failed"] = name
    if not wrapping.wrap_decorated(module.__dict__.get(name), _LOGGER, "func", None, returned, failed):
        wrapping.wrap(module, name, None, returned, failed, traced=steps.traced() and name not in _OPAQUE)


def _begun(module, name):
    """Tells of an exchange as it begins, as long as it is not settled: isend and irecv(tensor, rank, group, ...)."""
    def begins(args, kwargs):
        if _state["left"] > 0 and groups.world_size() > 1 and not steps.compiling() and dist.by_program(_LOGGER, preceded=name):
            _exchanged(name, args, {"group": args[2] if len(args) > 2 else (kwargs or {}).get("group")})
    wrapping.precede(module, name, begins, steps.traced())


def _meet(name, kwargs):
    calls = _met["calls"]
    calls[name] = calls.get(name, 0) + 1
    if name.endswith("barrier"):
        return  # nobody can tell the others anything by it
    if _met["handed"] != steps.now.delivered:
        _met["handed"], _met["since"] = steps.now.delivered, 0
    if steps.now.delivered and steps.now.taken == steps.now.then and not _met["since"]:
        dist.tell("meet", name, groups.ranks_of(kwargs.get("group")))
    _met["since"] += 1


def ended():
    """This process ends: had a meeting failed, and had ranks met since the last batch?"""
    failed = _met["failed"]
    if failed is not None or _met["calls"]:
        since = _met["since"] if _met["handed"] == steps.now.delivered else 0
        ring.put_json(ring.DIST, {"op": "end", "class": failed or "", "calls": since, "before": _met["calls"].get(failed, 0)})


def _reduced(name, args, kwargs):
    tensor = args[0] if args else kwargs.get("tensor")
    torch = sys.modules["torch"]
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter or len(pending) >= _MAX_PENDING:
        return
    with Quiet():
        if tensor.layout is torch.strided:
            pending.append((tensor.data_ptr(), tensor.numel(), args[2] if len(args) > 2 else kwargs.get("group")))
            steps.look = stepped


def _exchanged(name, args, kwargs):
    dist.tell("exchange", name, groups.ranks_of(kwargs.get("group")))


def _objects(name, args, kwargs):
    dist.tell("exchange", "objects", groups.ranks_of(None))


def stepped(optimizer):
    """After a step before which something was reduced: were these its gradients?"""
    steps.look = None
    _state["left"] -= 1
    reduced = {(address, n): group for address, n, group in pending}
    del pending[:]
    torch, held, gradients = sys.modules["torch"], objects.attributes(optimizer).get("param_groups"), []
    for group in held if type(held) is list else ():
        parameters = group.get("params") if type(group) is dict else None
        for p in parameters if type(parameters) is list else ():
            if type(p) is torch.Tensor or type(p) is torch.nn.Parameter:
                with Quiet():
                    if type(p.grad) is torch.Tensor and p.grad.layout is torch.strided:
                        gradients.append((p.grad.data_ptr(), p.grad.numel()))
    if not gradients:
        return
    each = [g for g in gradients if g in reduced]
    whole = sum(n for _, n in gradients)
    flat = [key for key in reduced if key[1] == whole and len(gradients) > 1]
    if 2 * len(each) >= len(gradients) or flat:
        dist.tell("reduce", "", groups.ranks_of(reduced[each[0] if each else flat[0]]))
        _state["left"] = 0
    else:
        dist.tell("exchange", "all_reduce", groups.ranks_of(next(iter(reduced.values()))))
