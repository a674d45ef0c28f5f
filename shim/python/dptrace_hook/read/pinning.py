"""What the pin step has left as it was in a batch that was handed to the loop (PROTOCOL.md, "Pinning").

torch.utils.data._utils.pin_memory.pin_memory looks into tensors, mappings and sequences, calls the pin_memory() of what has one,
and gives anything else back unchanged, with the tensors in it (torch 1.8 to 2.15). The batch is walked by the same rule. No
method of the program's is called: where only a __getattr__ of its own could say whether there is a pin_memory, that is told.
"""
import dis
import sys
import types
from collections import deque
from collections.abc import Mapping, Sequence

from ..record import guard, ring
from ..record.ring import cpu
from . import objects
from .quiet import Quiet

LOOKS = 2  # batches of a loader's first pass; one of each later pass
MAX_PASSES = 64
MAX_OBJECTS = 4096  # of a batch
MAX_DEPTH = 6
MAX_NAMES = 8
MAX_FRAMES = 16
MAX_CODE = 4096
_NAME = "pin_memory"

_REFLECTS = {"getattr", "methodcaller"}  # by which a name in a string becomes a method
_code = {}  # id of code -> (it, whether it calls a pin_memory())


def begins(notes, number, iterator):
    """A pass begins. Reports whether the first batch of it is to be looked at."""
    if iterator.get("_pin_memory") is not True or number >= MAX_PASSES:
        return False
    notes["pins"] = 1 if number else LOOKS
    return True


def look(loader, number, batch, data, frame):
    """frame: of the code that has called next()."""
    c0 = cpu()
    try:
        with Quiet():
            found = Batch()
            found.step(data, "", 0)
        ring.put_json(ring.PIN, {
            "loader": loader, "pass": number, "batch": batch, "class": objects.name(type(data)),
            "reached": found.reached[0], "reached_bytes": found.reached[1], "left": found.left[0], "left_bytes": found.left[1],
            "largest_bytes": found.largest, "pinned": found.pinned, "arrays": found.arrays[0], "array_bytes": found.arrays[1],
            "holder": found.holder, "path": found.path, "fields": ",".join(found.fields), "made": found.made,
            "unsure": found.unsure or _replaced(), "pins": _pins(frame, found.classes)})
    except Exception as e:
        if guard.theirs(e):
            raise
    finally:
        ring.ring.hook_ns += cpu() - c0


def _replaced():
    """"replaced" where the function is not torch's."""
    module = sys.modules.get("torch.utils.data._utils.pin_memory")
    f = objects.attributes(module).get(_NAME)
    code = f.__code__ if type(f) is types.FunctionType else None
    return "" if code is not None and code.co_filename.endswith("/torch/utils/data/_utils/pin_memory.py") else "replaced"


class Batch:
    def __init__(self):
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy")
        self.tensor, self.array = torch.Tensor, objects.attributes(numpy).get("ndarray")
        self.others = (torch.nn.Module, torch.utils.data.Dataset, torch.utils.data.DataLoader, types.ModuleType, types.FunctionType,
                       types.MethodType, type)  # a way back to the program, no data of the batch
        self.is_pinned = torch._C._TensorBase.__dict__.get("is_pinned")
        self.reached, self.left, self.arrays = [0, 0], [0, 0], [0, 0]  # how many, bytes
        self.pinned = self.largest = 0  # of those that are left: how many are all the same; bytes
        self.holder = self.path = self.made = self.unsure = ""
        self.fields, self.classes = [], []
        self.objects, self.seen, self.most = MAX_OBJECTS, set(), 0

    def step(self, obj, path, depth):
        """As torch's function goes."""
        cls = type(obj)
        if id(cls) in objects.ATOMS:
            return
        if objects.derives(cls, self.tensor):
            self.count(self.reached, obj)
        elif not self.room(depth):
            return
        elif objects.member(cls, _NAME) is not None or objects.attributes_of(obj, cls).get(_NAME) is not None:
            self.reached[0] += 1  # it pins itself
        elif issubclass(cls, (str, bytes)):
            pass
        elif issubclass(cls, Mapping):
            self.all(_items(obj, cls), path, depth, self.step)
        elif issubclass(cls, Sequence):
            self.all(_elements(obj, cls), path, depth, self.step)
        elif cls is self.array:
            self.arrays[0] += 1
            self.arrays[1] += obj.nbytes
            if not self.left[0]:
                self.largest = max(self.largest, obj.nbytes)
            if not self.holder:
                self.names(cls, path, [])
        else:
            self.opaque(obj, cls, path, depth)

    def opaque(self, obj, cls, path, depth):
        """What is given back as it is."""
        before = self.left[1]
        if _answers(cls):
            self.unsure = self.unsure or "getattr"
        fields = []
        for name, held in _held(obj, cls):
            was = self.left[1]
            self.inside(held, depth + 1)
            if self.left[1] > was:
                fields.append(name + self.kind(type(held)))
        if self.left[1] == before:
            return
        if not any(k is cls for k in self.classes):
            self.classes.append(cls)
        if self.left[1] - before > self.most:
            self.most = self.left[1] - before
            self.names(cls, path, fields)

    def kind(self, cls):
        """How a field holds its tensors, behind its name: it is one, a list, a dictionary, something else."""
        if objects.derives(cls, self.tensor):
            return ""
        return "[]" if cls is list or cls is tuple else "{}" if cls is dict else "?"

    def names(self, cls, path, fields):
        members = objects.members(cls)
        self.holder, self.path, self.fields = objects.name(cls), path[:200], [f[:64] for f in fields[:MAX_NAMES]]
        params = members.get("__dataclass_params__")
        self.made = "" if type(members.get("__dataclass_fields__")) is not dict else \
            "frozen" if objects.attributes(params).get("frozen") is True or _slot(params, "frozen") is True else "dataclass"

    def inside(self, obj, depth):
        """Of what is left as it is: tensors, wherever."""
        cls = type(obj)
        if id(cls) in objects.ATOMS or id(obj) in self.seen:
            return
        if objects.derives(cls, self.tensor):
            self.seen.add(id(obj))
            was = self.left[1]
            self.count(self.left, obj)
            if not self.left[0] - 1:
                self.largest = 0  # of arrays
            self.largest = max(self.largest, self.left[1] - was)
            self.pinned += self.is_pinned is not None and obj.device.type == "cpu" and self.is_pinned(obj)
        elif self.room(depth) and not any(objects.derives(cls, other) for other in self.others):
            self.seen.add(id(obj))
            for _, held in _held(obj, cls):
                self.inside(held, depth + 1)

    def all(self, items, path, depth, do):
        if items is None:
            self.unsure = self.unsure or "container"
            return
        for name, held in items:
            do(held, path + name, depth + 1)

    def room(self, depth):
        self.objects -= 1
        if self.objects < 0 or depth > MAX_DEPTH:
            self.unsure = self.unsure or "large"
            return False
        return True

    def count(self, of, tensor):
        if tensor.layout is sys.modules["torch"].strided and tensor.device.type == "cpu":
            of[0] += 1
            of[1] += tensor.numel() * tensor.element_size()


def _answers(cls):
    """Reports whether a class may have attributes of which nothing can be seen."""
    if objects.member(cls, "__getattr__") is not None:
        return True
    k = next(k for k in objects.mro(cls) if "__getattribute__" in objects.members(k))
    return type(objects.members(k)["__getattribute__"]) is not types.WrapperDescriptorType or objects.module(k) not in ("builtins", "types")


def _items(obj, cls):
    """(name, value) of a mapping; None: only its own code could say."""
    if objects.derives(cls, dict):
        return [("[%s]" % objects.key(k), v) for k, v in list(dict.items(obj))]
    held = objects.attributes_of(obj, cls).get("data")  # of UserDict, and of transformers' that derive from it
    return [("[%s]" % objects.key(k), v) for k, v in list(dict.items(held))] if type(held) is dict else None


def _elements(obj, cls):
    for base in list, tuple, deque:
        if objects.derives(cls, base):
            return [("[%d]" % i, v) for i, v in enumerate(list(base.__iter__(obj)))]
    if objects.derives(cls, range) or objects.derives(cls, bytearray) or objects.derives(cls, memoryview):
        return []
    held = objects.attributes_of(obj, cls).get("data")  # of UserList
    return [("[%d]" % i, v) for i, v in enumerate(held)] if type(held) is list else None


def _held(obj, cls):
    """(name, value) of what an object holds: its attributes, its slots, and what is in it if it is a builtin container."""
    if objects.derives(cls, dict):
        found = [("[%s]" % objects.key(k), v) for k, v in list(dict.items(obj))]
    else:
        base = next((b for b in (list, tuple, deque, set, frozenset) if objects.derives(cls, b)), None)
        found = [] if base is None else [("[%d]" % i, v) for i, v in enumerate(list(base.__iter__(obj)))]
    found += [(name, v) for name, v in list(objects.attributes_of(obj, cls).items()) if type(name) is str]
    for k in objects.mro(cls):
        for name, member in list(objects.members(k).items()):
            if type(member) is types.MemberDescriptorType and name[:2] != "__":
                v = _slot(obj, name, member)
                if v is not None:
                    found.append((name, v))
    return found


def _slot(obj, name, member=None):
    if member is None:
        member = objects.member(type(obj), name)
    if type(member) is not types.MemberDescriptorType:
        return None
    try:
        return member.__get__(obj)
    except AttributeError:  # not set
        return None


def _pins(frame, classes):
    """Where the program's own code pins by itself: in the modules of the functions that lead to next(), or in methods of the
    classes that are left as they are."""
    modules = []
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        names = objects.plain(frame.f_globals)
        if not objects.library(names.get("__name__")):
            if _calls(frame.f_code):
                return _where(frame.f_code)
            if not any(m is names for m in modules):
                modules.append(names)
        frame = frame.f_back
    for names in modules:
        values = [v for v in list(names.values()) if type(v) is types.FunctionType or issubclass(type(v), type)]
        for v in values[:MAX_CODE]:
            f = v if type(v) is types.FunctionType else _method(v)
            if f is not None and not objects.library(f.__module__) and _calls(f.__code__):
                return _where(f.__code__)
    for cls in classes:
        f = _method(cls)
        if f is not None:
            return _where(f.__code__)
    return ""


def _where(code):
    return "%s:%d" % (code.co_filename, code.co_firstlineno)


def _method(cls):
    """A method that pins something; not one of that name, which the pin step calls."""
    for k in objects.mro(cls):
        if not objects.library(objects.members(k).get("__module__")):
            for name, f in list(objects.members(k).items()):
                f = objects.attributes(f).get("__func__", f) if type(f) is staticmethod else f
                if type(f) is types.FunctionType and name != _NAME and _calls(f.__code__):
                    return f
    return None


def _calls(code):
    """Reports whether .pin_memory( is in it, or in a function made by it. `pin_memory=args.pin_memory` is no call."""
    known = _code.get(id(code))
    if known is None:
        known = code, _NAME in code.co_names and _called(code) or _NAME in code.co_consts and not _REFLECTS.isdisjoint(code.co_names) or any(
            type(c) is types.CodeType and c.co_name != _NAME and (c.co_name[:1] == "<" or code.co_name != "<module>") and _calls(c)
            for c in code.co_consts)  # a module's functions are looked at as its globals
        if len(_code) < MAX_CODE:
            _code[id(code)] = known
    return known[1]


def _called(code):
    """By the instructions: an attribute loaded to be called, or Tensor's own method, for map() and the like."""
    before = None
    for i in dis.get_instructions(code):
        if i.argval == _NAME and (i.opname == "LOAD_METHOD" or i.opname == "LOAD_ATTR" and (
                before == "Tensor" or sys.version_info >= (3, 12) and i.arg & 1)):
            return True
        before = i.argval
    return False
