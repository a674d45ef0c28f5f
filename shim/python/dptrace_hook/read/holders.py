"""Who holds a generator, as code spells it: pkg.aug.RNG, lru_cache of pkg.make_rng(), __main__.Rngs.IMAGE.value.

From the generator upwards by what the garbage collector calls its referrers, level by level, to something that has a name:
a module, a class, a function. The nearest name counts. What is found below a sampler, or a library's own module, is that
one's own affair.
"""
import contextvars
import enum
import functools
import gc
import sys
import types
import weakref
from _thread import _local
from collections import deque
from itertools import islice

from . import discover, insides, objects, rng
from .addresses import now

MAX_LEVELS = 20
MAX_WIDTH = 128  # objects of a level whose holders are looked for
MAX_HELD = 100000  # items of a container in which a place is looked for
_GENERATOR = 0x20  # inspect.CO_GENERATOR
_STDLIB_OWN = ("tempfile._RandomNameSequence",)
_CONTEXT = ("hamt", "hamt_bitmap_node", "hamt_array_node", "hamt_collision_node", "Context")
_BETWEEN = objects.ids(dict, list, tuple, set, types.CellType, types.FrameType)
_count = {}  # class -> generators without a name so far


class Node:
    """An object and who holds it."""
    __slots__ = ("obj", "up", "name", "dead")

    def __init__(self, obj):
        self.obj, self.up, self.name, self.dead = obj, [], None, False


class Graph:
    def __init__(self):
        self.nodes = {}
        self.modules = {id(m.__dict__): n for n, m in list(sys.modules.items()) if type(n) is str and type(m) is types.ModuleType}
        self.said = {}  # id -> name, of what the collector cannot lead to
        for variable, value in contextvars.copy_context().items():
            self.said[id(value)] = "ContextVar %r" % variable.name

    def node(self, obj):
        node = self.nodes.get(id(obj))
        if node is None:
            node = self.nodes[id(obj)] = Node(obj)
            node.name = self.said.get(id(obj)) or self.named(obj, type(obj))
            node.dead = node.name is None and self.foreign(obj, type(obj))
        return node

    def forget(self):
        """Lets go of all: nodes hold one another, and what the program lets go of would wait for the garbage collector."""
        for node in self.nodes.values():
            node.obj, node.up = None, []
        self.nodes.clear()

    def link(self, held, holder):
        """The node of the holder."""
        node, above = self.nodes[id(held)], self.node(holder)
        if above not in node.up and above is not node:
            node.up.append(above)
        return above

    def named(self, obj, cls):
        """The name of what has one; "" of what is none of the program's."""
        if cls is dict:
            module = self.modules.get(id(obj))
            return None if module is None else _own(module, objects.main(module))
        if cls is types.FunctionType:
            return _own(obj.__module__, "%s.%s" % (objects.main(obj.__module__), obj.__qualname__))
        if issubclass(cls, type):
            return _own(objects.module(obj), objects.name(obj))
        if cls is contextvars.ContextVar:
            return "ContextVar %r" % obj.name
        if cls is types.GeneratorType:
            module = None if obj.gi_frame is None else objects.plain(obj.gi_frame.f_globals).get("__name__")
            return _own(module, "%s.%s()" % (objects.main(module), obj.__qualname__))
        if issubclass(cls, insides.Cached):
            f = insides.function_of(obj)
            return None if f is None else _own(f.__module__, "lru_cache of %s.%s()" % (objects.main(f.__module__), f.__qualname__))
        return None

    def foreign(self, obj, cls):
        """Whether what it holds is not looked for: of loaders and samplers, of Python's own, of ours."""
        module = objects.module(cls)
        return (_nobody(obj, cls) or issubclass(cls, types.ModuleType) or module.startswith("dptrace_hook")
                or module + "." + objects.called(cls) in _STDLIB_OWN or objects.called(cls) in _CONTEXT
                or issubclass(cls, _loaders()) or discover.role_of(obj, "") == "order")

    def climb(self, nodes, deadline):
        """Finds who holds what has no name yet, level by level."""
        done = set(map(id, nodes))
        above = deque(nodes)
        level = []
        while above:  # the nodes that are known to hold them already
            node = above.popleft()
            for up in node.up:
                if id(up) not in done:
                    done.add(id(up))
                    above.append(up)
            if not node.up and node.name is None and not node.dead:
                level.append(node)
        for _ in range(MAX_LEVELS):
            level = [n for n in level if n.name is None and not n.dead][:MAX_WIDTH]
            if not level or now() > deadline:
                return
            following = []
            for holder in gc.get_referrers(*[n.obj for n in level]):
                if type(holder) is Node or _nobody(holder, type(holder)):
                    continue
                held = set(map(id, gc.get_referents(holder)))
                for n in level:
                    if id(n.obj) in held:
                        up = self.link(n.obj, holder)
                        if id(up) not in done:
                            done.add(id(up))
                            following.append(up)
            level = following

    def best(self, node):
        """([the nearest that has a name, ..., the generator], its name), (None, "") where all are none of the program's, and
        ([the generator], "") where nobody is known."""
        ways, foreign, level = [[node]], False, 0
        seen = {id(node)}
        while ways and level <= 2 * MAX_LEVELS:
            named = [w for w in ways if w[0].name]
            if named:
                return min(((w, spell([n.obj for n in w], w[0].name, self.modules)) for w in named), key=lambda p: (p[1].count("<"), len(p[1]), p[1]))
            foreign = foreign or any(w[0].dead or w[0].name == "" for w in ways)
            following = []
            for w in ways:
                for up in w[0].up if not w[0].dead and w[0].name is None else ():
                    if id(up) not in seen:
                        seen.add(id(up))
                        following.append([up] + w)
            ways, level = following, level + 1
        return (None, "") if foreign else ([node], "")


def _nobody(obj, cls):
    """Reports whether it is what runs. Before Python 3.11 a suspended generator has its variables in a frame that it holds."""
    return cls is types.TracebackType or cls is types.FrameType and not obj.f_code.co_flags & _GENERATOR


def _own(module, name):
    return "" if objects.library(module) or module.startswith("dptrace_hook") else name


def _loaders():
    dataloader = sys.modules["torch.utils.data.dataloader"]
    return dataloader.DataLoader, dataloader._BaseDataLoaderIter


class Held(discover.Found):
    """A generator that is looked for again from what has a name, as a pass or a worker begins: what is between may be another then,
    and is not kept alive."""
    __slots__ = ("root", "steps")

    def again(self):
        """A Found of what code would find there now."""
        today = discover.Found(self.path, self.obj, self.kind, self.role, self.owner, self.attr, self.holder, self.key,
                             (self.source, self.first, self.last))
        if self.steps:
            self.look(today, self.root() if type(self.root) is weakref.ref else self.root)
        return today

    def look(self, today, obj):
        for kind, key in self.steps if obj is not None else ():
            if kind == "attributes":
                obj = objects.attributes_of(obj, type(obj))
                continue
            holder = obj
            if kind == "attribute":
                holder = objects.attributes_of(obj, type(obj))
                if key not in holder:
                    holder = dict(discover.slots_of(obj, type(obj))).get(key)
            elif type(obj) is not dict and type(obj) is not list:
                return
            found = discover.Found(self.path, None, self.kind, self.role, self.owner, self.attr, holder, key).current() if holder is not None else None
            if found is None:
                return
            obj = found
        if obj is self.obj or rng.kind_of(type(obj)) is not None:
            today.holder, today.key = holder, key


def _steps(way):
    """How to come from the first to the last again; None: not by keys and attributes alone."""
    steps = []
    for holder, held in zip(way, way[1:]):
        cls = type(holder)
        container, _, key = place(holder, held)
        if cls is dict or cls is list:
            step = None if container is None else ("key", key)
        elif not objects.flags(cls) & objects.HEAP_TYPE and cls is not types.SimpleNamespace or issubclass(cls, type):
            step = None
        elif held is objects.attributes_of(holder, cls):
            step = ("attributes", "")
        else:
            step = None if container is None else ("attribute", key)
        if step is None:
            return None
        steps.append(step)
    return steps


def found(graph, node):
    """A discover.Found of a generator, or None."""
    way, path = graph.best(node)
    if way is None:
        return None
    obj, cls = node.obj, type(node.obj)
    if not path:
        name = objects.name(cls)
        _count[name] = _count.get(name, 0) + 1
        path = "a %s that no variable leads to" % name + (" (%d)" % _count[name] if _count[name] > 1 else "")
    owner, attr, holder, key = None, "", None, None
    if len(way) > 1:
        holder, attr, key = place(way[-2].obj, obj)
        owner = next((n.obj for n in reversed(way[:-1]) if id(type(n.obj)) not in _BETWEEN), None)
        if owner is None:
            owner = sys.modules.get(graph.modules.get(id(way[0].obj)))
    called = objects.flags(type(owner)) & objects.HEAP_TYPE and not issubclass(type(owner), type) and not rng.kind_of(type(owner))
    role = "transform" if called and discover.role_of(owner, "dataset") == "transform" else "process"
    made = Held(path, obj, rng.kind_of(cls), role, "" if owner is None else objects.owner_name(owner), attr, holder, key,
                          discover.source(owner))
    if made.current() is not obj:
        made.holder = made.key = None
    made.steps = _steps([n.obj for n in way])
    made.root = _root(way[0].obj) if made.steps else None
    if not _lasting([n.obj for n in way], graph):
        made.holder = made.key = None
    return made


def _root(obj):
    """A weak reference to it; itself where there is none: of a module's dictionary."""
    try:
        return weakref.ref(obj)
    except TypeError:
        return obj


def _lasting(way, graph):
    """Whether the dictionary that holds the generator is a module's, or a class's that is a module's: to keep it keeps nothing."""
    root = way[0]
    if len(way) == 2:
        return id(root) in graph.modules
    return len(way) == 3 and issubclass(type(root), type) and "<locals>" not in objects.qualname(root)


def place(holder, held):
    """(the dictionary or list in which to look again, the name that is assigned, the key)"""
    cls = type(holder)
    if cls is dict:
        for k, v in islice(holder.items(), MAX_HELD):
            if v is held and objects.plain_key(k):
                return holder, k if type(k) is str else "", k
    elif cls is list:
        for i, v in enumerate(islice(holder, MAX_HELD)):
            if v is held:
                return holder, "", i
    elif objects.flags(cls) & objects.HEAP_TYPE and not issubclass(cls, type):
        attributes = objects.attributes_of(holder, cls)
        for k, v in list(attributes.items()):
            if v is held and type(k) is str:
                return attributes, k, k
        for n, slot in discover.slots_of(holder, cls):
            if slot.get() is held:
                return slot, n, n
    return None, "", None


def spell(way, text, modules):
    """The way from what has a name down to the generator."""
    spelling = _Spelling(type(way[0]) is dict and id(way[0]) in modules)
    for holder, held in zip(way, way[1:]):
        text += spelling.step(holder, held, type(holder))
    if issubclass(type(way[0]), enum.EnumMeta):
        for member, each in list(objects.members(way[0]).get("_member_map_", {}).items()):
            if objects.attributes_of(each, type(each)).get("_value_") is way[-1]:
                return "%s.%s.value" % (objects.name(way[0]), member)
    return text


class _Spelling:
    def __init__(self, attributes):
        self.attributes = attributes  # of the dictionary that follows
        self.quiet = False  # it is no part of what code says
        self.function = None

    def step(self, holder, held, cls):
        """How code spells one step."""
        if cls is types.FunctionType:
            self.function, self.attributes = holder, held is holder.__dict__
            return "<default>" if held is holder.__kwdefaults__ else ""
        if cls is dict:
            return self.key(holder, held)
        if cls is tuple and self.function is not None:
            return self.of_function(holder, held, self.function)
        if cls is list or cls is tuple or cls is deque:
            return "[%d]" % _index(holder, held)
        if cls is set or cls is frozenset:
            return "[...]"
        if cls is types.MethodType or cls is types.BuiltinFunctionType:
            return ".__self__"
        if issubclass(cls, functools.partial):
            return (".func", ".args", ".keywords")[next((i for i, part in enumerate(objects.partial(holder)) if part is held), 0)]
        if issubclass(cls, type):
            self.attributes = True
            return ""
        if insides.is_array(cls):
            return "[%d]" % _index(insides.items(holder, MAX_HELD), held)
        if cls is types.GeneratorType and type(held) is not types.FrameType:
            return _variable(holder.gi_frame, held) if holder.gi_frame else ""
        if cls is types.FrameType:
            return _variable(holder, held)
        if issubclass(cls, (insides.Cached, _local)):
            self.quiet = type(held) is dict
            return ""
        if held is objects.attributes_of(holder, cls):
            self.attributes = True
            return ""
        name = place(holder, held)[1]
        return "." + name if name else ""

    def key(self, d, held):
        attributes, quiet, self.attributes, self.quiet = self.attributes, self.quiet, False, False
        if quiet:
            self.attributes = type(held) is dict
            return ""
        for k, v in islice(d.items(), MAX_HELD):
            if v is held:
                return ".%s" % k if attributes and type(k) is str else "[%s]" % objects.key(k)
            if k is held:
                return "<key %s>" % objects.key(k)
        return ""

    def of_function(self, held_by, held, function):
        self.function = None
        names = function.__code__.co_freevars
        if held_by is function.__closure__:
            return "<closure %s>" % names[_index(held_by, held)]
        names = function.__code__.co_varnames[:function.__code__.co_argcount]
        return "<default %s>" % names[len(names) - len(held_by):][_index(held_by, held)]


def _variable(frame, held):
    return "<local %s>" % next((n for n, v in objects.locals_of(frame).items() if v is held), "?")


def _index(sequence, held):
    return next((i for i, v in enumerate(islice(sequence, MAX_HELD)) if v is held), 0)
