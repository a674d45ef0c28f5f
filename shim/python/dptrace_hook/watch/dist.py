"""torch.distributed: which rank this is, which ranks reduce their gradients together, and what groups of ranks the
program makes of its own. Nothing is communicated, and no group is made."""
import os
import sys
import weakref

from ..patch import wrapping
from ..record import ring
from ..read import groups, objects

_told = set()
_sharded = None  # the mesh told of last, and id of the choice of its dimensions
_MAX_TOLD = 1000
_rank = None


def after_fork():
    global _rank, _sharded
    _rank = _sharded = None
    _told.clear()


def rank_known():
    """Programs may name the rank without the environment: init_process_group(rank=...)."""
    global _rank
    dist = groups.up()
    if dist is None or _rank is not None:
        return
    _rank = dist.get_rank()
    ring.put_json(ring.PROCESS, {"pid": ring.ring.pid, "kind": ring.ring.kind, "rank": _rank, "world_size": dist.get_world_size()})
    tell("init", "", groups.ranks_of(None))


def tell(op, name, ranks):
    """name: of the model's class, or of the mesh's dimensions."""
    rank_known()
    key = (op, tuple(ranks)) if op in ("ddp", "fsdp") else (op, tuple(ranks), name)
    if (len(ranks) > 1 or op == "join") and key not in _told and len(_told) < _MAX_TOLD:
        _told.add(key)
        ring.put_json(ring.DIST, {"op": op, "class": name, "ranks": ranks, "backend": str(groups.up().get_backend())})


def by_program(*through, preceded=None):
    """The call came from outside of torch; on its way, from files of torch that end with `through`. preceded: as of wrapping.caller."""
    frame, torch = wrapping.caller(preceded), os.path.dirname(sys.modules["torch"].__file__) + os.sep
    while frame is not None:
        file = frame.f_code.co_filename
        if "/dptrace_hook/" not in file and not file.endswith(through):
            return not file.startswith(torch)
        frame = frame.f_back
    return False


def plane(shape, flat, rank, dims):
    """The ranks of a mesh, given as shape and flattened ranks, that differ from a rank's place along `dims` alone."""
    if rank not in flat:
        return []
    me, free, stride = flat.index(rank), [], 1
    for dim in reversed(range(len(shape))):
        if dim not in dims:
            free.append((stride, shape[dim], me // stride % shape[dim]))
        stride *= shape[dim]
    return [r for at, r in enumerate(flat) if all(at // stride % n == here for stride, n, here in free)]


def _shape_of(mesh):
    """(shape, flattened ranks) of a torch DeviceMesh: mesh.mesh is a tensor of ranks in all versions."""
    ranks = mesh.mesh
    return [int(n) for n in ranks.shape], [int(r) for r in ranks.flatten().tolist()]


def tell_sharded(name, mesh, over=None):
    """Gradients are reduced along all dimensions of a mesh, or those named by a DataParallelMeshDims."""
    global _sharded
    if _sharded is not None and _sharded[0]() is mesh and _sharded[1] == id(over):
        return  # module after module of one model
    _sharded = (weakref.ref(mesh), id(over))  # weak: a mesh holds process groups, which must end when the program says
    (shape, flat), rank = _shape_of(mesh), groups.up().get_rank()
    dims = range(len(shape))
    if over is not None:
        named = over.shard_names + over.replicate_names
        dims = [dim for dim in dims if mesh.mesh_dim_names[dim] in named]
    tell("fsdp", name, sorted(plane(shape, flat, rank, dims)))
    for dim in dims:
        tell("fsdp", name, sorted(plane(shape, flat, rank, [dim])))


def _model(wrapper):
    return objects.name(type(objects.attributes(wrapper).get("_modules", {}).get("module")))


def wrap(owner, name, function):
    """Calls function(result, *args, **kwargs) when owner.name has returned."""
    def returned(_, result, args, kwargs):
        if groups.up() is not None:
            function(result, *args, **(kwargs or {}))
    wrapping.wrap(owner, name, after=returned)


def watch_ddp(module):
    wrap(module.DistributedDataParallel, "__init__",
         lambda _, self, *args, **kwargs: tell("ddp", _model(self), groups.ranks_of(objects.attributes(self).get("process_group"))))
    if not hasattr(module, "Join"):  # torch < 1.10
        wrap(module.DistributedDataParallel, "join",
             lambda _, self, divide_by_initial_world_size=True, enable=True: tell("join", _model(self), []) if enable is True else None)


def watch_join(module):
    """torch.distributed.algorithms.join: DistributedDataParallel.join() gives one, too."""
    wrap(module.Join, "__enter__", lambda _, self: tell("join", "", []) if objects.attributes(self).get("_enable") is not False else None)


def watch_fsdp(module):
    wrap(module.FullyShardedDataParallel, "__init__", _fsdp_made)


def _fsdp_made(_, self, *args, **kwargs):
    """HYBRID_SHARD has two groups: of the ranks that share the parameters, and of those that hold the same part."""
    d = objects.attributes(self)
    mesh, model = d.get("_device_mesh"), _model(self)
    if mesh is not None:
        tell_sharded(model, mesh)
        return
    shards = groups.ranks_of(d.get("process_group"))
    tell("fsdp", model, shards)
    if d.get("_inter_node_pg") is None:
        return
    replicas, rank = groups.ranks_of(d["_inter_node_pg"]), groups.up().get_rank()
    tell("fsdp", model, replicas)
    every = sorted({s + r - rank for s in shards for r in replicas})
    if every == groups.ranks_of(None):  # the usual two: together they are all ranks
        tell("fsdp", model, every)


def watch_fully_shard(module):
    """FSDP2 (torch >= 2.4): a function; without a mesh it shards over the world."""
    def made(_, model, *args, **kwargs):
        mesh, name = kwargs.get("mesh"), objects.name(type(model))
        if mesh is None:
            tell("fsdp", name, groups.ranks_of(None))
        else:
            tell_sharded(name, mesh, kwargs.get("dp_mesh_dims"))
    wrap(module, "fully_shard", made)


def watch_groups(module):
    """torch.distributed.distributed_c10d: new_group, which new_subgroups and the like call, too."""
    original = module.__dict__.get("new_group")

    def made(group, *args, **kwargs):
        if group is not getattr(module.GroupMember, "NON_GROUP_MEMBER", None) and by_program("distributed_c10d.py", "c10d_logger.py"):
            tell("group", "", groups.ranks_of(group))
    wrap(module, "new_group", made)
    public = sys.modules["torch.distributed"].__dict__
    if public.get("new_group") is original:
        public["new_group"] = module.new_group


def watch_mesh(module):
    """torch.distributed.device_mesh (torch >= 2.2). A slice of a mesh makes no groups."""
    def made(_, mesh, *args, **kwargs):
        if kwargs.get("_init_backend") is False or not by_program("device_mesh.py"):
            return
        (shape, flat), rank = _shape_of(mesh), groups.up().get_rank()
        names = mesh.mesh_dim_names or [""] * len(shape)
        tell("mesh", ",".join(names), sorted(flat))
        for dim, name in enumerate(names):
            tell("mesh_dim", name, sorted(plane(shape, flat, rank, [dim])))
    wrap(module.DeviceMesh, "__init__", made)
