"""What a map-style dataset is told between two passes: what it gives at an index may depend on it.

Scalars and functions on it, on objects of the program's in it, on its class, and globals that its code names; whether an
attribute is another object than before. Only what has changed since the last pass over this dataset is written: as a rule
nothing. Nothing of the user's is called.
"""
import types
from itertools import islice

from ..record import ring
from ..record.ring import cpu
from . import attributes, held, identity, objects
from .notes import Notes

MAX_LEAVES = 8  # datasets of a loader
MAX_OBJECTS = 16  # in a dataset
MAX_VALUES = 64  # of a dataset
MAX_CHANGES = 64  # of one value: what changes more often counts something
MAX_DATASETS = 256
_CODE = ("__getitem__", "__getitems__")
_PLAIN = objects.ATOMS | objects.ids(list, tuple, dict)

_told = {}  # number of a dataset -> (its values by path, how often each has changed)
_names = Notes()  # of a class names of globals in its code


def after_fork():
    _told.clear()


def at_iter(iterator, loader):
    """A pass begins, in the main process."""
    it = iterator.__dict__
    if it.get("_dataset_kind") != 0 or (it.get("_num_workers") and objects.attributes(loader).get("persistent_workers") is True):
        return  # no map-style dataset, or copies that are told nothing
    c0, at = cpu(), it["_dptrace_at"] + (-1,)
    for _, leaf in identity.paths(loader)[:MAX_LEAVES]:
        number = identity.datasets.of(leaf, loader)[0]
        if not number or id(type(leaf)) in _PLAIN or objects.library(objects.members(type(leaf)).get("__module__")):
            continue
        now, known = values(leaf), _told.get(number)
        if known is None:
            if len(_told) >= MAX_DATASETS:
                _told.clear()
            _told[number] = now, {}
        elif known[0] != now:
            tell(number, at, known, now)
            _told[number] = now, known[1]
    ring.ring.hook_ns += cpu() - c0


def tell(number, at, known, now):
    before, changes = known
    write = None
    for path in set(before) | set(now):
        if before.get(path) == now.get(path) or changes.get(path, 0) == MAX_CHANGES:
            continue
        changes[path] = changes.get(path, 0) + 1
        write = write or attributes._Writer("begin", at)
        cls, value = now.get(path, ("", ""))
        write.row(attributes.Attribute(path, None, "", None),
                  {"dataset": number, "class": cls, "value": value if type(value) is str else ""})


def values(leaf):
    """Path -> (class, text of a scalar or a function, id of anything else)."""
    found, todo, seen = {}, [("dataset", leaf)], {id(leaf)}
    for where, obj in todo:  # it grows as we go
        cls = type(obj)
        for name, value in list(islice(objects.attributes_of(obj, cls).items(), MAX_VALUES)):
            if type(name) is not str or len(found) >= MAX_VALUES:
                continue
            at = "%s.%s" % (where, name)
            found[at] = read(value)
            inner = type(value)
            if id(inner) not in _PLAIN and not attributes._barren(inner) and \
                    inner is not types.FunctionType and id(value) not in seen and len(todo) < MAX_OBJECTS:
                seen.add(id(value))
                todo.append((at, value))
    shared(type(leaf), found)
    return found


def shared(cls, found):
    """Scalars of a class, and globals that its code names."""
    known = _names.of(cls)
    if known is None:
        if len(_names.kept) >= MAX_DATASETS:
            _names.kept.clear()
        known = _names.put(cls, [(objects.plain(objects.members(k)[n].__globals__), name) for k in objects.mro(cls) for n in _CODE
                                       if type(objects.members(k).get(n)) is types.FunctionType and not objects.library(objects.members(k).get("__module__"))
                                       for name in objects.members(k)[n].__code__.co_names])
    for k in objects.mro(cls):
        if objects.library(objects.members(k).get("__module__")):
            break
        for name, value in list(objects.members(k).items()):
            if name[:2] != "__" and held.scalar(value) and len(found) < 2 * MAX_VALUES:
                found.setdefault("dataset." + name, read(value))
    for names, name in known:
        if name in names and held.scalar(names[name]) and len(found) < 2 * MAX_VALUES:
            found["%s.%s" % (names.get("__name__", ""), name)] = read(names[name])


def read(value):
    if type(value) is types.FunctionType or held.scalar(value):
        return "builtins." + objects.qualname(type(value)), held.text(value)
    return objects.name(type(value)), id(value)
