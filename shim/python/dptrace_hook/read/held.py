"""What persistent workers hold of the program: the walk that finds it, in the training process and in the workers.

Attributes of the dataset, of the collate function and of what hangs there: of instances, __slots__, classes, dictionaries,
closures, defaults and partials, and the globals that the code names. Types and instance dictionaries alone are read. What is
read is bounded by number and never by time, so that the parent and its workers look at the same places. What is not looked
at is said: `missed`.
"""
import functools
import sys
import types
from itertools import islice

from . import contents, objects, reads, rng, sample, short_digests
from .quiet import Quiet

MAX_OBJECTS = 600
MAX_PLACES = 128
MAX_ITEMS = 64  # of a container
MAX_KEYS = 16  # of a dictionary whose items are told of as if they were attributes
MAX_TEXT = 64  # bytes of a value
MAX_LIST = 8  # items of a list that is told as a text
# What torch's modules keep for themselves.
_REGISTRIES = ("hook", "hooks", "hooks_with_kwargs", "hooks_always_called", "_parameters", "_buffers", "_modules", "_set")
_CALLED = {"__getitem__", "__getitems__", "__iter__", "__next__", "__call__", "__len__", "__getattr__", "__contains__"}
_SHARED = ("Synchronized", "SynchronizedArray", "SynchronizedString")
_IDLE = {"Lock", "RLock", "Condition", "BoundedSemaphore", "Semaphore", "Process", "ForkProcess", "SpawnProcess", "ForkServerProcess"}


class Place:
    """holder: the object that holds the value, as reads.Reads names it; owner: the class whose code assigns it."""
    __slots__ = ("path", "owner", "holder", "name", "value")

    def __init__(self, path, owner, holder, name, value):
        self.path, self.owner, self.holder, self.name, self.value = path, owner, holder, name, value


class Walk:
    def __init__(self):
        self.places, self.queue, self.seen = [], [], set()
        self.known = set()  # (id of a holder, name) of what was looked at
        self.whole = set()  # ids of objects all of whose attributes were looked at
        self.shared = []  # places whose value other processes see change
        self.missed = []  # (Place, why)

    def run(self, roots):
        for path, obj in roots:
            self.tell(path, None, None, path, obj)
            self.add(obj, path)
        for at, (obj, path) in enumerate(self.queue):  # it grows as we go
            if at >= MAX_OBJECTS:
                self.missed.append((Place(path, None, None, "", obj), "beyond the first %d objects" % MAX_OBJECTS))
                break
            self.visit(obj, type(obj), path)
        return self.places

    def add(self, obj, path):
        if id(type(obj)) not in objects.ATOMS and id(obj) not in self.seen and len(self.queue) <= MAX_OBJECTS:
            self.seen.add(id(obj))
            self.queue.append((obj, path))

    def tell(self, path, owner, holder, name, value):
        """One attribute; what hangs on it is visited later."""
        self.known.add((id(holder), name))
        place = Place(path, owner, holder, name, value)
        cls = type(value)
        if cls is types.ModuleType or issubclass(cls, type) or rng.kind_of(cls) is not None:
            return
        if shared(value, cls):
            self.shared.append(place)
        elif objects.module(cls) in objects.BARREN or objects.module(cls).partition(".")[0] in objects.BARREN:
            return
        elif len(self.places) < MAX_PLACES:
            self.places.append(place)
        else:
            self.missed.append((place, "beyond the first %d values" % MAX_PLACES))

    def each(self, obj, path, owner, holder, names):
        for name, value in list(islice(names.items(), 2 * MAX_ITEMS)):
            if type(name) is str:
                at = "%s.%s" % (path, name)
                if not told_by_entries(value) and not (owner is not None and registry(owner, name)):
                    self.tell(at, owner, holder, name, value)
                self.add(value, at)
        if len(names) <= 2 * MAX_ITEMS:
            self.whole.add(id(obj))
        else:
            self.missed.append((Place(path, owner, holder, "", obj), "beyond the first %d attributes" % (2 * MAX_ITEMS)))

    def visit(self, obj, cls, path):
        if issubclass(cls, dict):
            self.items(obj, path)
        elif issubclass(cls, (list, tuple)):
            held = list.__getitem__(obj, slice(MAX_ITEMS)) if issubclass(cls, list) else tuple.__getitem__(obj, slice(MAX_ITEMS))
            for i, value in enumerate(held):
                self.add(value, "%s[%d]" % (path, i))
        elif cls is types.FunctionType:
            self.function(obj, path)
        elif cls is types.MethodType:
            self.add(obj.__self__, path + ".__self__")
            self.add(obj.__func__, path + ".__func__")
        elif issubclass(cls, functools.partial):
            function, args, keywords = objects.partial(obj)
            self.add(function, path + ".func")
            for i, value in enumerate(tuple.__getitem__(args, slice(MAX_ITEMS))):
                self.tell("%s.args[%d]" % (path, i), None, obj, "args[%d]" % i, value)
                self.add(value, "%s.args[%d]" % (path, i))
            self.items(keywords, path + ".keywords")
        elif cls is functools._lru_cache_wrapper:
            self.add(obj.__wrapped__, path)
        elif issubclass(cls, type):
            self.class_(obj)
        if barren(obj, cls) or issubclass(cls, type) or id(cls) in objects.SEQUENCES or id(cls) in objects.DICTS:
            return
        self.instance(obj, cls, path)

    def instance(self, obj, cls, path):
        if cls is types.SimpleNamespace:
            attributes = types.SimpleNamespace.__dict__["__dict__"].__get__(obj)
        else:
            attributes = objects.attributes_of(obj, cls)
        if cls is not types.FunctionType:
            self.each(obj, path, cls, obj, attributes)
        for k in objects.mro(cls):
            if not objects.flags(k) & objects.HEAP_TYPE or objects.module(k) in ("functools", "builtins"):
                continue
            for name, member in list(objects.members(k).items()):
                if type(member) is types.MemberDescriptorType:  # __slots__
                    try:
                        value = member.__get__(obj)
                    except AttributeError:  # not assigned yet
                        continue
                    self.tell("%s.%s" % (path, name), cls, obj, name, value)
                    self.add(value, "%s.%s" % (path, name))
            self.add(k, path)

    def class_(self, cls):
        """Class attributes, and what the methods name."""
        if objects.library(objects.module(cls)):
            return
        path = objects.name(cls)
        for name, member in list(objects.members(cls).items())[:2 * MAX_ITEMS]:
            f, _ = reads.function_of(member)
            if type(f) is types.FunctionType:
                if not name.startswith("__") or name in _CALLED:
                    self.function(f, "%s.%s" % (path, name))
            elif not name.startswith("__") and (type(member) is not types.MemberDescriptorType and type(member) is not types.GetSetDescriptorType) \
                    and not name.startswith("_abc_"):
                self.tell("%s.%s" % (path, name), None, cls, name, member)
                self.add(member, "%s.%s" % (path, name))

    def items(self, obj, path):
        n = dict.__len__(obj)
        for key, value in list(islice(dict.items(obj), MAX_ITEMS)):
            if type(key) is str or type(key) is int:
                at = "%s[%r]" % (path, key)
                if n <= MAX_KEYS:
                    self.tell(at, None, obj, key, value)
                self.add(value, at)

    def function(self, f, path):
        if ("code", id(f)) in self.seen:
            return
        self.seen.add(("code", id(f)))
        for cell, variable in zip(f.__closure__ or (), f.__code__.co_freevars):
            try:
                value = cell.cell_contents
            except ValueError:  # empty
                continue
            self.tell("%s<closure %s>" % (path, variable), None, cell, variable, value)
            self.add(value, "%s<closure %s>" % (path, variable))
        defaults, arguments = f.__defaults__ or (), f.__code__.co_varnames[:f.__code__.co_argcount]
        named = list(zip(arguments[len(arguments) - len(defaults):], defaults)) + list((f.__kwdefaults__ or {}).items())
        for variable, value in named:
            at = "<default %s>" % variable
            self.tell(path + at, None, f, at, value)
            self.add(value, path + at)
        if not objects.library(f.__module__):
            self.globals_(f.__code__, objects.plain(f.__globals__))

    def globals_(self, code, namespace):
        """The globals that the code names, one module deep: EPOCH, settings.EPOCH, CONFIG, Config."""
        names = reads.spelled(code)
        for name in sorted(names & set(namespace)):
            value = namespace[name]
            if type(value) is types.ModuleType:
                if not objects.library(value.__name__) and type(value.__dict__.get("__file__")) is str \
                        and "-packages" not in value.__dict__["__file__"]:
                    for inner in sorted(names & set(value.__dict__)):
                        self.global_(value.__dict__, inner)
            else:
                self.global_(namespace, name)

    def global_(self, namespace, name):
        module, value = namespace.get("__name__"), namespace[name]
        if type(module) is not str or type(value) is types.ModuleType or objects.library(module):
            return
        home = value.__module__ if type(value) is types.FunctionType else objects.module(value) if issubclass(type(value), type) else module
        if objects.library(home):
            return
        path = "%s.%s" % ("__main__" if module == "__mp_main__" else module, name)
        if type(value) is not types.FunctionType:
            self.tell(path, sys.modules.get(module), namespace, name, value)
        self.add(value, path)


def told_by_entries(value):
    return id(type(value)) in objects.DICTS and 0 < dict.__len__(value) <= MAX_KEYS and all(type(key) is str for key in dict.keys(value))


def registry(cls, name):
    return name.startswith("_") and name.endswith(_REGISTRIES) and issubclass(cls, sys.modules["torch"].nn.Module)


def barren(obj, cls):
    """Objects of this class hold nothing to look at."""
    if cls is types.ModuleType or issubclass(cls, (sys.modules["torch"].Tensor, sys.modules["torch"].dtype)):
        return True
    if issubclass(cls, objects.CODE_FREE) or (cls is types.MethodType or cls is types.FunctionType or cls is functools._lru_cache_wrapper):
        return True
    return objects.module(cls) == "?" or objects.module(cls) == "numpy" or objects.module(cls).partition(".")[0] in objects.BARREN


def scalar(value):
    """An exact int, float, bool, None or a short str."""
    cls = type(value)
    if cls is int:
        return -1 << 63 <= value < 1 << 64
    if cls is str:
        return len(value) <= MAX_TEXT
    return cls is float or cls is bool or value is None


def text(value):
    """A scalar and a short list of them as repr() gives it, a function by its name: without its module, which spawn calls
    otherwise, a lambda with its line. "": it is something else."""
    cls = type(value)
    if cls is types.FunctionType:
        if value.__code__.co_name == "<lambda>":
            return "<lambda> of line %d" % value.__code__.co_firstlineno
        return value.__qualname__[:MAX_TEXT]
    if scalar(value):
        return _cut(repr(value))
    if (cls is list or cls is tuple) and len(value) <= MAX_LIST and all(scalar(v) for v in value):
        shown = repr(value).encode("utf-8", "replace")
        return shown.decode("utf-8", "replace") if len(shown) <= MAX_TEXT else ""
    if (cls is sample.ndarray or cls is sample.tensor) and 0 < short_digests.length(value) <= MAX_LIST:
        return _numbers(value, cls)
    return ""


def _cut(shown):
    return shown.encode("utf-8", "replace")[:MAX_TEXT].decode("utf-8", "ignore")


def _numbers(value, cls):
    """A few numbers of an array."""
    torch = sys.modules["torch"]
    if cls is sample.tensor:
        if value.layout is not torch.strided or value.device.type != "cpu" or value.dtype not in sample._plain:
            return ""
        with Quiet():
            held = value.detach().tolist()
    elif value.dtype.kind not in "biuf":
        return ""
    else:
        held = value.tolist()
    shown = repr(held)
    return shown if len(shown) <= MAX_TEXT else ""


def told(value):
    """(class, text, items, digest, whether all of it was looked at)"""
    cls = type(value)
    sample.bind()
    shown = text(value)
    if shown:
        return ("builtins." + objects.qualname(cls) if objects.module(cls) == "builtins" else objects.name(cls), shown, 0, "", True)
    if id(cls) in objects.SEQUENCES or id(cls) in objects.DICTS or cls is range or cls is str or cls is bytes or cls is int \
            or cls is sample.ndarray or cls is sample.tensor:
        digest, whole = short_digests.short(value)
        return (objects.name(cls), "", short_digests.length(value), digest.hex() if digest else "", whole)
    return (objects.name(cls), objects.name(cls), 0, "", not opaque(value, cls))


def opaque(value, cls):
    """Objects of C extensions: what they hold cannot be looked at."""
    if issubclass(cls, (dict, list, tuple, set, frozenset)) or id(cls) in objects.ATOMS or barren(value, cls):
        return False
    if any(objects.flags(k) & objects.HEAP_TYPE and "__dict__" in objects.members(k) or objects.members(k).get("__slots__") is not None for k in objects.mro(cls)):
        return False
    return not issubclass(cls, functools.partial) and cls is not types.SimpleNamespace and objects.module(cls) != "builtins"


def shared(value, cls):
    """Reports whether other processes see it change."""
    torch = sys.modules["torch"]
    module = objects.module(cls)
    if issubclass(cls, torch.Tensor):
        with Quiet():
            return cls is torch.Tensor and value.device.type == "cpu" and value.layout is torch.strided and value.is_shared()
    if module.startswith("multiprocessing.") or module.startswith("torch.multiprocessing."):
        return objects.called(cls) not in _IDLE
    if objects.module(type(cls)) == "_ctypes" or module == "mmap":
        return True
    sample.bind()
    if sample.ndarray is not None and issubclass(cls, sample.ndarray):
        base = value
        while type(base) is sample.ndarray and base.base is not None:
            base = base.base
        return type(base) is torch.Tensor and base.is_shared() or contents._mapped(value)
    return False


def seen(value):
    """What a shared value is now; "": it cannot be told."""
    cls, torch = type(value), sys.modules["torch"]
    if objects.called(cls) in _SHARED and objects.module(cls) == "multiprocessing.sharedctypes":
        value = objects.attributes_of(value, cls).get("_obj")
        cls = type(value)
    if objects.module(type(cls)) == "_ctypes":
        return bytes(memoryview(value).cast("B")[:256]).hex()
    sample.bind()
    if cls is torch.Tensor or sample.ndarray is not None and cls is sample.ndarray and value.nbytes <= 4096:
        with Quiet():
            kind, digest = sample.read(value, 0)[:2]
        return digest.hex() if kind else ""
    return ""


def unseen(walk, code):
    """What the code reads and the walk has not come to: [(Place, why)]"""
    found, told = [], {id(p.value) for p in walk.places + walk.shared}
    for key in sorted(code.used & set(code.held), key=lambda k: str(k[1])):
        holder, value = code.held[key]
        if key in walk.known or id(holder) in walk.whole or id(holder) in told or id(holder) in code.own:
            continue
        if issubclass(type(value), type) or (type(value) is types.FunctionType or type(value) is types.ModuleType or type(value) is types.BuiltinFunctionType):
            continue
        module = _home(holder)
        if objects.library(module) or rng.kind_of(type(value)) is not None:
            continue
        found.append((Place("%s.%s" % (module, key[1]), None, holder, key[1], value), "the code reads it"))
    if code.cut:
        found.append((Place("the code that fetches", None, None, "", None), "it is too much to be followed"))
    return found


def _home(holder):
    cls = type(holder)
    if cls is dict:
        name = holder.get("__name__")
        return name if type(name) is str else "a dictionary"
    if cls is types.CellType or cls is types.FunctionType:
        return "a closure" if cls is types.CellType else holder.__module__
    return objects.name(holder if issubclass(cls, type) else cls)
