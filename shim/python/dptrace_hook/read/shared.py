"""What a batch takes of shared memory on its way from a worker: the storages of its tensors, as torch.multiprocessing sends them.

Asked once for each worker and pass, of the first batch. What was in shared memory before it was collated is told from what the worker
has put there itself by the descriptors that it holds: torch names the files by the process that made them.
"""
import os
import sys

from . import objects
from ..record import guard, ring

MAX_LEAVES = 256
MAX_DEPTH = 6
MAX_OPEN = 1024  # descriptors that are looked at
_FD = "/proc/self/fd"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_TENSORS = ("torch.", "torchvision.", "monai.")  # whose classes of tensors are sent as plain ones are


def tell(fetches, batch, number):
    """Writes a record about the batch of a worker's fetch."""
    worker = fetches.serving
    found = _Storages()
    found.walk(batch, 0)
    sizes, by_type, shared = {}, {}, 0
    for key, (size, dtype, is_shared) in found.storages.items():
        sizes[key] = size
        by_type[dtype] = by_type.get(dtype, 0) + size
        shared += size if is_shared else 0
    sharing = _sharing()
    own = _made(ring.ring.pid) if shared and sharing == "file_descriptor" else shared
    ring.put_json(ring.BATCH_BYTES, {
        "loader": fetches.loader, "pass": fetches.number, "worker": worker.number, "batch": worker.batch, "fetch": number,
        "bytes": sum(sizes.values()), "tensors": len(sizes), "shared": max(shared - own, 0), "whole": found.whole, "sharing": sharing,
        "dtypes": ",".join("%s=%d" % (name, by_type[name]) for name in sorted(by_type, key=lambda name: (-by_type[name], name)))})


class _Storages:
    """Those that a batch leads to over containers and instance dictionaries."""
    __slots__ = ("storages", "whole", "left", "tensor", "array")

    def __init__(self):
        self.storages = {}  # _cdata -> (bytes in whole pages, dtype, whether it is in shared memory)
        self.whole, self.left = True, MAX_LEAVES
        self.tensor = sys.modules["torch"].Tensor
        numpy = sys.modules.get("numpy")
        self.array = None if numpy is None else numpy.__dict__.get("ndarray")

    def walk(self, obj, depth):
        cls = type(obj)
        if id(cls) in objects.ATOMS:
            return
        self.left -= 1
        if self.left < 0 or depth > MAX_DEPTH:
            self.whole = False
        elif objects.derives(cls, self.tensor):
            self.add(obj, cls)
        elif cls is list or cls is tuple or objects.derives(cls, tuple):
            for item in tuple(obj) if cls is list else tuple.__getitem__(obj, slice(None)):
                self.walk(item, depth + 1)
        elif id(cls) in objects.DICTS:
            for item in list(dict.values(obj)):
                self.walk(item, depth + 1)
        elif self.array is None or not objects.derives(cls, self.array):  # arrays go through the pipe
            self.instance(obj, cls, depth)

    def instance(self, obj, cls, depth):
        attributes = objects.attributes_of(obj, cls)
        if not attributes:
            self.whole = self.whole and objects.module(cls).partition(".")[0] == "numpy"
        else:
            for item in list(attributes.values()):
                self.walk(item, depth + 1)

    def add(self, t, cls):
        if cls is not self.tensor and not (objects.module(cls) + ".").startswith(_TENSORS):
            self.whole = False
            return
        torch = sys.modules["torch"]
        if t.layout is not torch.strided or t.device.type != "cpu":
            self.whole = self.whole and t.device.type != "cpu"
            return
        storage = _storage(t)
        size = storage.nbytes() if hasattr(storage, "nbytes") else storage.size() * storage.element_size()
        if size:
            self.storages[storage._cdata] = -(-size // _PAGE) * _PAGE, str(t.dtype).rpartition(".")[2], bool(storage.is_shared())


def _storage(t):
    """Of all types of items alike; torch 2 warns of storage(), 1.11 to 1.13 wrap it."""
    base = sys.modules["torch"]._C._TensorBase
    for name in ("untyped_storage", "_storage"):
        found = base.__dict__.get(name)
        if found is not None:
            return found(t)
    return t.storage()


def _sharing():
    module = sys.modules.get("torch.multiprocessing")
    name = None if module is None else module.__dict__.get("_sharing_strategy")
    return name if type(name) is str else ""


def _made(pid):
    """Bytes of the files of torch in /dev/shm that this process has made and holds open."""
    total, prefix = 0, "/dev/shm/torch_%d_" % pid
    for name in _descriptors():
        path = _FD + "/" + name
        try:
            if os.readlink(path).startswith(prefix):
                total += -(-os.stat(path).st_size // _PAGE) * _PAGE
        except OSError as e:
            if not _gone(e, path) and guard.theirs(e):
                raise
    return total


def _descriptors():
    try:
        return os.listdir(_FD)[:MAX_OPEN]
    except OSError as e:
        if not _gone(e, _FD) and not guard.none_left(e) and guard.theirs(e):
            raise
        return ()


def _gone(e, path):
    """Reports whether a descriptor is closed by now, or /proc is not to be had, as in some sandboxes: no error of ours."""
    return (type(e) is FileNotFoundError or type(e) is PermissionError) and e.filename == path
