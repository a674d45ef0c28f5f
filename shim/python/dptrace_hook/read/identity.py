"""Which objects a loader's samples and their order come from: numbers for datasets and samplers, and ids of samples.

torch's Subset and ConcatDataset are no datasets here: an index of theirs is one of a dataset inside. A class of the
user's own is where it ends, whatever it holds. Nothing of the user's is called: exact builtin types, NumPy's and torch's.
"""
import os
import sys
import weakref
from bisect import bisect_right

from ..patch import wrapping
from ..record import ring
from . import objects
from .quiet import Quiet

INDEX_BITS = 40  # of an id: number of the dataset << 40 | index there
_TOP = 1 << INDEX_BITS
_MAX_DEPTH = 16
_MAX_HOLDINGS = 32  # attributes of a dataset, or items of a dictionary there, that are looked at
_MAX_PARTS = 1024  # datasets inside of one loader's
_MAX_SAMPLERS = 6  # one inside of the other
_MAX_EPOCHS = 1000  # calls of set_epoch told of in a process
_MARKS = 64  # indices by which a Subset's are known again
_INT = objects.ids(int)
_OVERRIDES = ("__getitem__", "__getitems__", "__getattribute__")
# What Lightning and catalyst turn a sampler into, to have a DistributedSampler draw from it.
_SAMPLER_AS_DATASET = ("_DatasetSamplerWrapper", "DatasetFromSampler")


class Numbers:
    """Numbers of objects, from 1. None is ever given to another object: an id is reused only after its object has died."""

    def __init__(self):
        self.known = {}  # id -> (weak reference to the object, or to a loader of it, which it is, number)
        self.count, self.room = 0, 64

    def of(self, obj, loader=None):
        """(number, whether it is new). What cannot be weakly referenced, as a list, is known as long as it is a dataset
        of `loader`; 0: there is none."""
        reference, is_loader, number = self.known.get(id(obj), (None, False, 0))
        there = None if reference is None else reference()
        if there is not None and (any(leaf is obj for _, leaf in paths(there)) if is_loader else there is obj):
            return number, False
        try:
            reference, is_loader = weakref.ref(obj), False
        except TypeError:
            if loader is None:
                return 0, False
            reference, is_loader = weakref.ref(loader), True
        if len(self.known) > self.room:
            self.known = {key: entry for key, entry in self.known.items() if entry[0]() is not None}
            self.room = 64 + 2 * len(self.known)
        self.count += 1
        self.known[id(obj)] = (reference, is_loader, self.count)
        return self.count, True


datasets, samplers, given = Numbers(), Numbers(), Numbers()  # given: datasets as they are given to loaders
_epochs_set = 0


def after_fork():
    """In the child: the records that explain the numbers are the parent's."""
    global datasets, samplers, given, _epochs_set
    datasets, samplers, given, _epochs_set = Numbers(), Numbers(), Numbers(), 0


attributes = objects.attributes


def composite(dataset):
    """torch's Subset or ConcatDataset, if that is what a dataset is and its samples come as they do; else None."""
    module = sys.modules["torch.utils.data.dataset"]
    for k in objects.mro(type(dataset)):
        if k is module.Subset or k is module.ConcatDataset:
            return k
        if any(method in objects.members(k) for method in _OVERRIDES):
            return None
    return None


def parts_of(dataset, base):
    """The datasets that one is put together of; none where that cannot be told."""
    d = attributes(dataset)
    if base.__name__ == "Subset":
        return [d["dataset"]] if "dataset" in d else []
    parts = d.get("datasets")
    return parts if type(parts) is list and len(parts) <= _MAX_PARTS else []


def paths(loader):
    """The datasets that a loader's samples come from in the end, each with the way to it as the program spells it."""
    found, todo = [], [] if loader is None else [("dataset", attributes(loader).get("dataset"), 0)]
    while todo and len(found) <= _MAX_PARTS:
        path, dataset, depth = todo.pop()
        base = composite(dataset)
        if base is None:
            found.append((path, dataset))
        elif depth < _MAX_DEPTH:
            parts = parts_of(dataset, base)
            names = [".dataset"] if base.__name__ == "Subset" else [".datasets[%d]" % i for i in range(len(parts))]
            todo += [(path + name, part, depth + 1) for name, part in zip(names, parts)][::-1]
    return found


class Leaf:
    """A dataset that has a number."""

    def __init__(self, number):
        self.number, self.base = number, number << INDEX_BITS

    def ids(self, indices):
        """Of each index the id of its sample; -1 where there is none."""
        base = self.base
        if set(map(id, map(type, indices))) == _INT and min(indices) >= 0 and max(indices) < _TOP:
            return [base | i for i in indices]
        return [-1 if i is None or not 0 <= i < _TOP else base | i for i in map(_whole, indices)]

    def same(self):
        """The copy that persistent workers have would still say so."""
        return True


class Part:
    """torch's Subset."""

    def __init__(self, get, n, whole):
        self.get, self.n, self.whole = get, n, whole
        self.marks = self.mark()

    def mark(self):
        return [_whole(self.one(i)) for i in range(0, self.n, max(self.n // _MARKS, 1))]

    def same(self):
        return self.marks == self.mark() and self.whole.same()

    def ids(self, indices):
        try:
            return self.whole.ids(list(map(self.get, indices)))
        except (IndexError, TypeError):  # one that is not there
            return self.whole.ids(list(map(self.one, indices)))

    def one(self, index):
        try:
            return None if index is None else self.get(index)
        except (IndexError, TypeError):
            return None


class Chain:
    """torch's ConcatDataset."""

    def __init__(self, ends, parts):
        self.ends, self.parts = ends, parts

    def same(self):
        return all(part.same() for part in self.parts)

    def ids(self, indices):
        ends, asked = self.ends, {}
        for at, i in enumerate(map(_whole, indices)):
            if i is None:
                continue
            if i < 0:
                i += ends[-1]
            part = bisect_right(ends, i)
            if 0 <= i and part < len(ends):
                places, there = asked.setdefault(part, ([], []))
                places.append(at)
                there.append(i - ends[part - 1] if part else i)
        found = [-1] * len(indices)
        for part, (places, there) in asked.items():
            for at, number in zip(places, self.parts[part].ids(there)):
                found[at] = number
        return found


def _whole(index):
    """An index as an int; None where it is none."""
    cls = type(index)
    if cls is int or index is None:
        return index
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    if numpy is not None and issubclass(cls, numpy.integer) and not objects.flags(cls) & objects.HEAP_TYPE:
        return int(index)
    if cls is torch.Tensor:
        with Quiet():
            return int(index) if index.dtype is torch.int64 and index.dim() == 0 and index.device.type == "cpu" else None
    return None


def _getter(indices):
    """(how to look up one of a Subset's indices, how many there are); None for what is not known to do no more than that."""
    cls = type(indices)
    if cls is list or cls is tuple or cls is range:
        return indices.__getitem__, len(indices)
    numpy = sys.modules.get("numpy")
    torch = sys.modules["torch"]
    if cls is torch.Tensor and numpy is not None and indices.device.type == "cpu" and indices.dtype is torch.int64:
        indices = indices.detach().numpy()
        cls = type(indices)
    if numpy is not None and cls is numpy.ndarray and indices.ndim == 1 and indices.dtype.kind in "iu":
        return indices.item, indices.size
    return None


def origin(loader, iterator):
    """Where a loader's samples come from: a Leaf, a Part or a Chain; None where that cannot be told. Writes a record of
    each dataset that is new. Persistent workers keep the copy that they were started with: only as long as the original is
    as it was can it speak for them."""
    d = iterator.__dict__
    if "_dptrace_origin" in d:
        if d["_dptrace_origin"] is not None and not d["_dptrace_origin"].same():
            d["_dptrace_origin"] = None
    else:
        d["_dptrace_origin"] = _origin(attributes(loader).get("dataset"), loader, 0)
    return d["_dptrace_origin"]


def _origin(dataset, loader, depth):
    base = composite(dataset)
    if base is None:
        number, new = datasets.of(dataset, loader)
        if new:
            sizes, counts = holdings(dataset)
            ring.put_json(ring.DATASET, {"dataset": number, "class": objects.name(type(dataset)), "length": length(dataset),
                                         "sizes": sizes, "counts": counts})
        return Leaf(number)
    parts = [_origin(part, loader, depth + 1) for part in parts_of(dataset, base)] if depth < _MAX_DEPTH else []
    if not parts or None in parts:
        return None
    d = attributes(dataset)
    if base.__name__ == "Subset":
        found = _getter(d.get("indices"))
        return None if found is None else Part(found[0], found[1], parts[0])
    ends = d.get("cumulative_sizes")
    return Chain(tuple(ends), parts) if type(ends) is list and len(ends) == len(parts) and set(map(id, map(type, ends))) == _INT else None


def length(dataset):
    """len() of torch's own dataset classes over builtin lists, and of these; -1 for the user's."""
    from torch.utils.data import dataset as module
    if type(dataset) is list or type(dataset) is tuple or type(dataset) is dict or type(dataset) is range:
        return len(dataset)
    d = attributes(dataset)
    if type(dataset) is module.Subset and (type(d.get("indices")) is list or type(d.get("indices")) is tuple or type(d.get("indices")) is range):
        return len(d["indices"])
    if type(dataset) is module.ConcatDataset and type(d.get("cumulative_sizes")) is list and d["cumulative_sizes"]:
        return d["cumulative_sizes"][-1]
    if type(dataset) is module.TensorDataset and d.get("tensors"):
        return int(d["tensors"][0].shape[0]) if type(d["tensors"][0]) is sys.modules["torch"].Tensor else -1
    return -1


def holdings(dataset):
    """How many items the containers and arrays have that hang on a dataset, and the numbers in its dictionaries."""
    torch, numpy, sizes, counts = sys.modules["torch"], sys.modules.get("numpy"), set(), []
    with Quiet():
        for name, value in list(attributes(dataset).items())[:_MAX_HOLDINGS]:
            cls = type(value)
            if cls is list or cls is tuple:
                sizes.add(len(value))
            elif cls is dict:
                sizes.add(len(value))
                if type(name) is str and len(value) <= _MAX_HOLDINGS:
                    counts += ["%s.%s=%d" % (name[:32], key[:32], n) for key, n in list(value.items())
                               if type(key) is str and type(n) is int and 0 < n < 2**48]
            elif cls is torch.Tensor or (numpy is not None and cls is numpy.ndarray):
                if len(value.shape) > 0:
                    sizes.add(int(value.shape[0]))
    return sorted(sizes)[:_MAX_HOLDINGS], ",".join(counts[:_MAX_HOLDINGS])


def sampler_of(loader):
    """Who decides on the order: the sampler inside of the innermost batch sampler, else the loader's."""
    d = attributes(loader)
    found = d.get("sampler")
    batches = d.get("batch_sampler")
    for _ in range(_MAX_SAMPLERS):
        if batches is None:
            break
        inner = attributes(batches)
        sampler = inner.get("sampler")
        if inner.get("batch_sampler") is not None:
            batches = inner["batch_sampler"]
        elif sampler is not None:
            found = sampler
            batches = sampler if issubclass(type(sampler), sys.modules["torch.utils.data"].BatchSampler) else None
        else:
            break
    return found


def chain(loader):
    """All that decide on it, from the batch sampler inwards."""
    d = attributes(loader)
    obj, found = d.get("batch_sampler"), []
    if obj is None:
        obj = d.get("sampler")
    while obj is not None and len(found) < _MAX_SAMPLERS:
        found.append(obj)
        inner = attributes(obj)
        dataset = inner.get("dataset")
        if objects.called(type(dataset)) in _SAMPLER_AS_DATASET:
            inner = attributes(dataset)
        obj = next((inner[name] for name in ("batch_sampler", "sampler", "_sampler") if inner.get(name) is not None), None)
    return found


def with_base(cls):
    """A class; one that is not torch's or torchdata's with the nearest such that it derives from."""
    own = objects.name(cls)
    for k in objects.mro(cls):
        if objects.module(k).partition(".")[0] in ("torch", "torchdata"):
            return own if k is cls else "%s(%s)" % (own, objects.name(k))
    return own


def _yes(value):
    return {True: "yes", False: "no"}[value] if type(value) is bool else ""


def integer(value, none=-1):
    """A value of the user's as an int; none where it is no int."""
    return int(value) if (type(value) is int or type(value) is bool) else none


def sampling(loader):
    """The columns of a loader record that tell of its sampler."""
    sampler = sampler_of(loader)
    s = attributes(sampler)
    return {"sampler": objects.name(type(sampler)), "sampler_id": samplers.of(sampler)[0],
            "samplers": " > ".join(with_base(type(o)) for o in chain(loader)),
            "sampler_epoch": integer(s.get("epoch")), "sampler_rank": integer(s.get("rank")),
            "sampler_replicas": integer(s.get("num_replicas")),
            "sampler_seed": integer(s.get("seed")), "sampler_total": integer(s.get("total_size"), 0), "shuffle": _yes(s.get("shuffle")),
            "replacement": _yes(s.get("replacement"))}


def epoch_set(_, result, args, kwargs):
    """After DistributedSampler.set_epoch(epoch)."""
    global _epochs_set
    sampler, epoch = args[0], args[1] if len(args) > 1 else (kwargs or {}).get("epoch")
    _epochs_set += 1
    if _epochs_set > _MAX_EPOCHS or type(epoch) is not int:
        return
    frame, torch = wrapping.caller(), os.path.dirname(sys.modules["torch"].__file__) + os.sep
    while frame is not None and frame.f_code.co_filename.startswith(torch):
        frame = frame.f_back
    file, line = ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    ring.put_json(ring.SET_EPOCH, {"sampler_id": samplers.of(sampler)[0], "epoch": epoch, "file": file, "line": line})
