"""How long containers are, how much memory what was put into them takes by estimate, and whether tensors among it hold a graph.

All by the builtin classes' own methods and instance dictionaries. Only a few of the items are looked at, the newest where a
container can tell which these are: to look at an object writes to it, and may copy its page.
"""
import gc
import io
import sys
from collections import deque
from itertools import islice

from . import addresses, insides, objects

MAX_LOOKED = 32  # of the items that are new
MAX_INSIDE = 8  # of what an item holds, and so on
DEPTH = 5
MAX_THROUGH = 20000  # items of what an item holds, to go through all of which is cheap
_TEXTS = objects.ids(str, bytes, bytearray)
_SMALL = objects.ids(bool, type(None), type(Ellipsis))
_BUFFERS = objects.ids(io.BytesIO)
_PIXEL = {"1": 1, "L": 1, "P": 1, "LA": 4, "PA": 4, "I;16": 2}  # bytes; of the other modes 4 (Pillow's Storage.c)
_HEADER = 56  # of an instance with a dictionary
_basicsize = type.__dict__["__basicsize__"].__get__
_maxlen = deque.maxlen.__get__


def text(cls):
    return id(cls) in _TEXTS


def length(obj, cls):
    """Of a container of objects, a cache of a function's, an array, a tensor, a text; -1: it is none of these."""
    n = addresses.length(obj, cls)
    if n >= 0:
        return n
    for base in (set, frozenset, deque):
        if issubclass(cls, base):
            return base.__len__(obj)
    if issubclass(cls, insides.Cached):
        return insides.Cached.cache_info(obj).currsize
    if id(cls) in _TEXTS:
        return len(obj)
    if insides.is_array(cls):
        return obj.size
    if cls is sys.modules["torch"].Tensor:
        return obj.numel()
    if id(cls) in _BUFFERS:
        return cls.__sizeof__(obj)
    return -1


def cap(obj, cls):
    """How long it can become; -1: as long as there is memory."""
    if issubclass(cls, deque):
        most = _maxlen(obj)
        return -1 if most is None else most
    if issubclass(cls, insides.Cached):
        most = insides.Cached.cache_info(obj).maxsize
        return -1 if most is None else most
    return -1


class Weight:
    """Of some objects: bytes of this process alone, bytes in shared memory, whether a tensor holds the graph that it comes from."""
    __slots__ = ("bytes", "shared", "graph", "seen")

    def __init__(self):
        self.bytes, self.shared, self.graph, self.seen = 0.0, 0.0, False, set()

    def add(self, obj, scale=1.0, depth=DEPTH):
        cls = type(obj)
        if id(cls) in _SMALL or id(obj) in self.seen or issubclass(cls, type):
            return
        self.seen.add(id(obj))
        if id(cls) in objects.ATOMS:
            self.bytes += scale * sys.getsizeof(obj)
        elif cls is sys.modules["torch"].Tensor:
            self.tensor(obj, scale)
        elif insides.is_array(cls):
            self.array(obj, scale, depth)
        elif id(cls) in addresses.EXACT:
            self.bytes += scale * sys.getsizeof(obj)
            self.some(addresses.members(obj, cls, len(obj), MAX_INSIDE) if len(obj) <= MAX_THROUGH else [], len(obj), cls, scale, depth)
        elif objects.flags(cls) & objects.HEAP_TYPE:
            self.instance(obj, cls, scale, depth)
        else:
            self.bytes += scale * _basicsize(cls)

    def some(self, few, n, cls, scale, depth):
        each = 2 if issubclass(cls, dict) else 1
        for member in few if depth > 0 else ():
            self.add(member, scale * n * each / len(few), depth - 1)

    def array(self, obj, scale, depth):
        self.bytes += scale * 112
        base = obj.base
        if base is None:
            self.bytes += scale * obj.nbytes
            if obj.dtype.hasobject:
                self.some(insides.items(obj, MAX_INSIDE), obj.size, list, scale, depth)
        elif insides.is_array(type(base)) or type(base) is sys.modules["torch"].Tensor:  # of something else's memory nobody knows how much
            self.add(base, scale, depth - 1)

    def tensor(self, obj, scale):
        """Of the storage, which a view holds whole."""
        torch = sys.modules["torch"]
        self.bytes += scale * 200
        self.graph = self.graph or obj.grad_fn is not None
        if obj.layout is not torch.strided or obj.device.type != "cpu":
            return
        storage = obj.untyped_storage() if hasattr(torch.Tensor, "untyped_storage") else obj.storage()
        size = storage.nbytes() if hasattr(storage, "nbytes") else storage.size() * obj.element_size()
        if obj.is_shared():
            self.shared += scale * size
        else:
            self.bytes += scale * size

    def instance(self, obj, cls, scale, depth):
        held = objects.attributes_of(obj, cls)
        self.bytes += scale * _HEADER
        size, mode = held.get("_size"), held.get("_mode", held.get("mode"))
        if objects.module(cls).partition(".")[0] == "PIL" and type(size) is tuple and type(mode) is str and len(size) == 2:
            if type(size[0]) is int and type(size[1]) is int and held.get("im", held.get("_im")) is not None:
                self.bytes += scale * size[0] * size[1] * _PIXEL.get(mode, 4)
            return
        for value in list(held.values())[:4 * MAX_INSIDE] if depth > 0 else ():
            self.add(value, scale, depth - 1)


def newest(obj, cls, n):
    """Some of the items that came last, as far as the container can tell; keys and values of a dictionary."""
    if issubclass(cls, dict):
        pairs = islice(reversed(dict.items(obj)), MAX_LOOKED)
        return [x for pair in list(pairs) for x in pair]
    for base in (list, tuple):
        if issubclass(cls, base):
            return list(base.__getitem__(obj, slice(max(n - MAX_LOOKED, 0), n)))
    if issubclass(cls, deque):
        return list(islice(deque.__reversed__(obj), MAX_LOOKED))
    for base in (set, frozenset):
        if issubclass(cls, base):
            return list(islice(base.__iter__(obj), MAX_LOOKED))
    return results(obj) if issubclass(cls, insides.Cached) else []


def results(cached):
    """Some of what a function's cache holds, with the keys."""
    found = []
    for held in gc.get_referents(cached):
        if type(held) is dict and not any(k == "__wrapped__" for k in islice(held, 2) if type(k) is str):
            for key, value in list(islice(held.items(), MAX_LOOKED)):
                found.append(key)
                found += [value] if objects.called(type(value)) != "_lru_list_elem" else gc.get_referents(value)
    return found


_SLOT = (dict, 100), (set, 32), (frozenset, 32), (insides.Cached, 160)  # bytes of the container itself for an item, about


def grown(obj, cls, n, more):
    """The Weight of the last `more` of the n items."""
    weight = Weight()
    if id(cls) in _TEXTS or id(cls) in _BUFFERS:
        weight.bytes = float(more)
    elif insides.is_array(cls) and not obj.dtype.hasobject:
        weight.bytes = float(more * obj.dtype.itemsize)
    elif cls is sys.modules["torch"].Tensor:
        weight.tensor(obj, float(more) / max(n, 1))
    else:
        for item in newest(obj, cls, n):
            weight.add(item, float(more) / min(n, MAX_LOOKED))
        weight.bytes += more * next((size for base, size in _SLOT if issubclass(cls, base)), 8)
    return weight
