"""The process groups of torch.distributed, asked only once it is up. Nothing is communicated, and no group is made."""
import sys


def up():
    """torch.distributed if a process group is up in this process."""
    dist = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return dist


def world_size():
    """Ranks of the process group that is up; 0: none is."""
    dist = up()
    return 0 if dist is None else dist.get_world_size()


def ranks_of(group):
    """Global ranks of a process group; None is the default group."""
    dist = up()
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
