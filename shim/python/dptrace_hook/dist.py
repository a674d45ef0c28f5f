"""torch.distributed: which rank this is, and which ranks reduce their gradients together."""
import sys

from . import discover, guard, hooks, ring

_told = set()
_rank = None


def after_fork():
    global _rank
    _rank = None
    _told.clear()


def _group():
    """torch.distributed if a process group is up in this process."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist


def rank_known():
    """Programs may name the rank without the environment: init_process_group(rank=...)."""
    global _rank
    dist = _group()
    if dist is None or _rank is not None:
        return
    _rank = dist.get_rank()
    ring.put_json(ring.PROCESS, {"pid": ring.ring.pid, "kind": ring.ring.kind, "rank": _rank, "world_size": dist.get_world_size()})


def ranks_of(group):
    """Global ranks of a process group; None is the default group."""
    dist = _group()
    if dist is None:
        return []
    world = list(range(dist.get_world_size()))
    if group is None:
        return world
    public = getattr(dist, "get_process_group_ranks", None)
    if public is not None:
        return [int(r) for r in public(group)]
    c10d = sys.modules["torch.distributed.distributed_c10d"]
    if group is getattr(c10d, "_default_pg", None) or group is getattr(getattr(c10d, "GroupMember", None), "WORLD", None):
        return world
    return sorted(int(r) for r in c10d._pg_group_ranks.get(group, {})) or world


def tell(op, model, ranks):
    rank_known()
    key = (op, tuple(ranks))
    if len(ranks) > 1 and key not in _told:
        _told.add(key)
        ring.put_json(ring.DIST, {"op": op, "class": discover.name(type(model)), "ranks": ranks, "backend": str(_group().get_backend())})


def _wrapped(op):
    def init(original, self, *args, **kwargs):
        original(self, *args, **kwargs)
        try:
            group = self.__dict__.get("process_group")
            tell(op, self.__dict__.get("_modules", {}).get("module"), ranks_of(group))
        except Exception as e:
            if guard.theirs(e):
                raise
    return init


def watch_ddp(module):
    hooks.wrap(module.DistributedDataParallel, "__init__", hooks.around(_wrapped("ddp")))


def watch_fsdp(module):
    hooks.wrap(module.FullyShardedDataParallel, "__init__", hooks.around(_wrapped("fsdp")))


def watch_fully_shard(module):
    """FSDP2 (torch >= 2.4): a function; without a mesh it shards over the world."""
    def fully_shard(original, model, *args, **kwargs):
        result = original(model, *args, **kwargs)
        try:
            mesh = kwargs.get("mesh")
            tell("fsdp", model, ranks_of(None) if mesh is None else [int(r) for r in mesh.mesh.flatten().tolist()])
        except Exception as e:
            if guard.theirs(e):
                raise
        return result
    hooks.wrap(module, "fully_shard", hooks.around(fully_shard))
