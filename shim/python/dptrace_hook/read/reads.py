"""Which attributes the code of a fetch reads, and of which objects.

The byte code of what a fetcher calls is gone through once with what is known of its values: `self` is the dataset,
`self.clock` is what hangs there, a call goes into the function that is called. Nothing of the user's runs. What is only
put into a message (print, a logger, an exception) is not read. bytecode.py goes through the instructions.
"""
import functools
import logging
import sys
import types

from . import bytecode, objects
from .bytecode import NOTHING, UNKNOWN, Value, union

MAX_CALLS = 400
MAX_DEPTH = 24
MAX_ITEMS = 64  # of a container that are followed
_ENTRIES = ("__getitem__", "__getitems__", "__iter__", "__next__")  # what a fetcher calls
_TELLS = {"debug", "info", "warning", "warn", "error", "exception", "critical", "log", "write", "print", "set_postfix", "set_description",
          "add_scalar", "log_metrics"}  # methods that put their arguments into a message
_PRINTS = objects.ids(print, hasattr, isinstance, issubclass, len, id, type)  # they look at no value that changes a sample
_VALUES = objects.ids(int, float, str, bool, repr, format, round, abs)
_SAME = objects.ids(list, tuple, iter, sorted, reversed, set, frozenset, next)
_PLAIN = objects.ids(bool, int, float, str, type(None))
_WRITES = {"update", "pop", "popitem", "setdefault", "clear", "append", "extend", "insert", "remove", "sort", "reverse", "__setitem__"}
_WHOLE = objects.ids(types.SimpleNamespace)


def function_of(value):
    """What a class holds, down to the Python function that it was made of, and how it is bound: self, cls, get, none."""
    how = "self"
    for _ in range(8):
        cls = type(value)
        if cls is staticmethod:
            value, how = value.__func__, "none"
        elif cls is classmethod:
            value, how = value.__func__, "cls"
        elif cls is property:
            value, how = value.fget, "get"
        elif cls is functools.cached_property:
            value, how = value.func, "get"
        elif cls is functools._lru_cache_wrapper:
            value = value.__wrapped__
        else:
            break
    return value, how


def in_class(cls, name):
    """(the class that has it, what it has); (None, None)."""
    for k in objects.mro(cls):
        if name in objects.members(k):
            return k, objects.members(k)[name]
    return None, None


def spelled(code):
    """All names of attributes and globals in a code object and those inside of it."""
    names, todo = set(), [code]
    while todo:
        c = todo.pop()
        names.update(c.co_names)
        todo += [k for k in c.co_consts if type(k) is types.CodeType]
    return names


def _object(obj):
    return Value((("object", obj),), True)


class Reads:
    """read: of an attribute, by the object that holds it (for a global its module's dictionary, for a class attribute the
    class, for a closure's variable its cell) and its name."""

    def __init__(self, dataset, collate, worker_init=None, changing=()):
        """changing: (id of a holder, name) of what has other values at other times. By what stays, branches are decided."""
        self.held, self.own = {}, {}  # (id of the holder, name) -> (the holder, its value); id of a dictionary -> of its instance
        self.changing, self.dataset = set(changing), dataset
        self.stored, self.stored_whole, self.stored_names = set(), set(), set()  # by the code itself
        self.instructions, self.machine, self.machines = bytecode.MAX_INSTRUCTIONS, None, []
        for _ in range(4):
            self.decided = set()
            self.follow(dataset, collate, worker_init)
            changed = {key for key in self.decided if not self.stays(key)}
            if not changed:
                break
            self.changing |= changed
        for machine in self.machines:
            machine.forget()
        self.dataset, self.calls, self.machines = None, dict.fromkeys(self.calls), []

    def follow(self, dataset, collate, worker_init):
        self.calls, self.depth = {}, 0
        self.used, self.names, self.whole, self.vague = set(), set(), set(), set()
        self.known, self.any, self.cut = False, False, False
        if worker_init is not None:  # for what it sets
            self.call(_object(worker_init), [UNKNOWN])
            self.used, self.names, self.whole, self.vague = set(), set(), set(), set()
        cls = type(dataset)
        for name in _ENTRIES:
            if type(function_of(in_class(cls, name)[1])[0]) is types.FunctionType:
                self.known = self.known or name != "__next__"
                self.use(self.elements(self.call(self.attribute(_object(dataset), name), [UNKNOWN])))
        if type(collate) is not types.FunctionType or not objects.library(collate.__module__):
            self.use(self.call(_object(collate), [UNKNOWN]))

    def stays(self, key):
        """Reports whether an attribute keeps its value."""
        return not (key in self.changing or key in self.stored or key[0] in self.stored_whole or key[1] in self.stored_names)

    def constant(self, value):
        """What a value is for sure, in a tuple; else none."""
        if value.exact and len(value.atoms) == 1 and value.atoms[0][0] in ("object", "worker info") and all(map(self.stays, value.read)):
            self.decided |= value.read
            return (value.atoms[0][1],) if value.atoms[0][0] == "object" else (value,)
        return ()

    def truth(self, value, none):
        """Whether a value is true, or (none) None; None: nobody knows."""
        held = self.constant(value)
        if not held:
            return None
        if none:
            return held[0] is None
        return bool(held[0]) if id(type(held[0])) in _PLAIN else True if type(held[0]) is Value else None

    def compared(self, a, b, how):
        x, y = self.constant(a), self.constant(b)
        if how and x and y and id(type(x[0])) in _PLAIN and type(x[0]) is type(y[0]) and x[0] is not None:
            return Value((("object", how(x[0], y[0])),), True, a.read | b.read)
        self.use(a)
        self.use(b)
        return NOTHING

    def same(self, a, b, inverted):
        """a is b, of None"""
        x, y = self.constant(a), self.constant(b)
        if x and y and None in (x[0], y[0]):
            return Value((("object", (x[0] is y[0]) != inverted),), True, a.read | b.read)
        self.use(a)
        self.use(b)
        return NOTHING

    def read(self, holder, name):
        """yes, no; "" where it may be found in a way that is not followed."""
        key = (holder, name)
        if key in self.used or holder in self.whole:
            return "yes"
        if not self.known or self.cut or self.any or holder in self.vague or name in self.names:
            return ""
        return "no"

    # What the machine asks for.

    def use(self, value):
        self.used |= value.read

    def found(self, value, holder, name):
        """A value that was read from where it hangs."""
        return Value((("object", value),), True, self.key(holder, name, value))

    def key(self, holder, name, value=None):
        key = (self.own.get(id(holder), id(holder)), name)
        self.held[key] = (holder, value)  # so that no other object gets its number
        return frozenset((key,))

    def attribute(self, value, name):
        self.use(value)
        found = [self.of_atom(atom, name) for atom in value.atoms]
        if not value.exact:
            self.names.add(name)
            found.append(Value((("unknown", name),), False))
        return union(found) if found else NOTHING

    def of_atom(self, atom, name):
        kind, what = atom[0], atom[1]
        if kind == "object":
            return self.of_object(what, name)
        if kind == "super":
            mro = objects.mro(type(atom[2]))
            at = next((i for i, k in enumerate(mro) if k is what), len(mro))
            for k in mro[at + 1:]:
                if name in objects.members(k):
                    return self.bound(k, objects.members(k)[name], atom[2], name)
        if kind == "worker info" and name == "dataset":
            return _object(self.dataset)
        if kind == "box":  # append, update
            return Value((("box", what, name),), True)
        return NOTHING if kind in ("items", "code") else UNKNOWN

    def of_object(self, obj, name):
        cls = type(obj)
        if id(cls) in objects.ATOMS or _opaque(obj, cls):
            return Value((("unknown", name),), True) if issubclass(cls, logging.Logger) else NOTHING
        if cls is types.ModuleType:
            d = obj.__dict__
            return self.found(d[name], d, name) if name in d else UNKNOWN
        if issubclass(cls, type):
            k, found = in_class(obj, name)
            return self.bound(k, found, None, name, obj) if k is not None else UNKNOWN
        if id(cls) in objects.DICTS or id(cls) in objects.SEQUENCES:
            return Value((("container", obj, name),), True)
        return self.of_instance(obj, cls, name)

    def of_instance(self, obj, cls, name):
        attributes = objects.attributes_of(obj, cls)
        if name == "__class__":
            return _object(cls)
        if name == "__dict__":
            self.own[id(attributes)] = id(obj)
            return _object(attributes)
        k, found = in_class(cls, name)
        if type(found) is property:
            return self.bound(k, found, obj, name)
        if type(found) is types.MemberDescriptorType:  # __slots__
            try:
                held = found.__get__(obj)
            except AttributeError:  # not assigned yet
                return Value((), True, self.key(obj, name))
            return self.found(held, obj, name)
        if name in attributes:
            return self.found(attributes[name], obj, name)
        if k is not None:
            return self.bound(k, found, obj, name)
        for registry in ("_modules", "_buffers", "_parameters"):  # of torch's modules
            held = attributes.get(registry)
            if id(type(held)) in objects.DICTS and name in held:
                return self.found(held[name], held, name)
        if issubclass(cls, (dict, list, tuple)):
            return Value((("container", obj, name),), True)
        k, found = in_class(cls, "__getattr__")
        if k is not None:
            self.call(self.bound(k, found, obj, "__getattr__"), [_object(name)])
            self.vague.add(id(obj))
            return UNKNOWN
        return Value((), False, self.key(obj, name))

    def bound(self, k, found, obj, name, cls=None):
        """A member of class k, looked up in an object, or (None) in the class cls itself."""
        f, how = function_of(found)
        if type(f) is not types.FunctionType:
            if type(found) is types.GetSetDescriptorType or type(found) is types.WrapperDescriptorType or type(found) is types.MethodDescriptorType:
                return Value((("unknown", name),), True)
            return self.found(found, k, name)
        if how == "get":
            return self.call(_object(f), [_object(obj)]) if obj is not None else NOTHING
        if how == "cls":
            return Value((("method", f, _object(cls or type(obj))),), True)
        if how == "none" or obj is None:
            return _object(f)
        return Value((("method", f, _object(obj)),), True)

    def global_(self, namespace, builtins, name):
        if name in namespace:
            return self.found(namespace[name], namespace, name)
        return _object(builtins[name]) if name in builtins else UNKNOWN

    def item(self, value, index):
        """value[index]"""
        self.use(value)
        self.use(index)
        key = index.atoms[0][1] if index.exact and len(index.atoms) == 1 and index.atoms[0][0] == "object" else None
        found = [] if value.exact else [UNKNOWN]
        for atom in value.atoms:
            kind, what = atom[0], atom[1]
            cls = type(what)
            if kind == "items" or kind == "box":
                found.append(what if kind == "items" else what.value)
            elif kind != "object":
                found.append(UNKNOWN)
            elif issubclass(cls, dict) and (type(key) is str or type(key) is int) and id(in_class(cls, "__getitem__")[0]) in objects.DICTS:
                held = dict.get(what, key)
                found.append(Value((), True, self.key(what, key)) if held is None else self.found(held, what, key))
            elif (cls is list or cls is tuple) and type(key) is int and -len(what) <= key < len(what):
                found.append(NOTHING if id(type(what[key])) in objects.ATOMS and cls is list else _object(what[key]))
            elif type(function_of(in_class(cls, "__getitem__")[1])[0]) is types.FunctionType:
                found.append(self.call(self.attribute(_object(what), "__getitem__"), [index]))
            else:
                found.append(self.elements(_object(what)))
        return union(found) if found else NOTHING

    def elements(self, value):
        """What iterating over it gives."""
        self.use(value)
        found = [] if value.exact else [UNKNOWN]
        for atom in value.atoms:
            kind, what = atom[0], atom[1]
            cls = type(what)
            if kind == "items" or kind == "box":
                found.append(what if kind == "items" else what.value)
            elif kind != "object":
                found.append(UNKNOWN)
            elif cls is list or cls is tuple or cls is set or cls is frozenset:
                found += [_object(v) for v in list(what)[:MAX_ITEMS] if id(type(v)) not in objects.ATOMS]
                found.append(NOTHING if what else UNKNOWN)
            elif issubclass(cls, dict):
                self.whole.add(id(what))
                found += [_object(v) for v in list(dict.values(what))[:MAX_ITEMS] if id(type(v)) not in objects.ATOMS]
                found.append(NOTHING if dict.__len__(what) else UNKNOWN)
            elif id(cls) not in objects.ATOMS and not _opaque(what, cls):
                self.depth += 1
                found.append(self.iterated(what, cls) if self.depth < MAX_DEPTH else UNKNOWN)
                self.depth -= 1
        return union(found) if found else NOTHING

    def iterated(self, obj, cls):
        for name in ("__iter__", "__next__", "__getitem__"):
            k, f = in_class(cls, name)
            if type(function_of(f)[0]) is types.FunctionType:
                made = self.call(self.bound(k, f, obj, name), [UNKNOWN] if name == "__getitem__" else [])
                if name != "__iter__":
                    return made
                if not any(a[0] == "object" and a[1] is obj for a in made.atoms):
                    return self.elements(made)
        return UNKNOWN

    # Calls.

    def call(self, callee, args, more=()):
        """more: values that come by keyword, or that nobody knows where: [(name or None, Value)]"""
        self.use(callee)
        results = [self.call_atom(atom, args, more) for atom in callee.atoms]
        if not (callee.exact and callee.atoms) and not any(a[0] == "unknown" and a[1] in _TELLS for a in callee.atoms):
            self.escape(args, more)
            results.append(NOTHING if callee.exact else UNKNOWN)
        return union(results)

    def call_atom(self, atom, args, more):
        kind, what = atom[0], atom[1]
        if kind == "method":
            return self.run(what, [atom[2]] + args, more)
        if kind == "code":
            return self.run_code(what, atom[2], atom[3], args, more)
        if kind == "box":
            return self.of_box(what, atom[2] if len(atom) > 2 else "", args, more)
        if kind == "container":
            return self.of_container(what, atom[2], args, more)
        if kind == "object":
            return self.call_object(what, args, more)
        if kind == "unknown" and what in _TELLS:
            return NOTHING
        self.escape(args, more)
        return UNKNOWN

    def call_object(self, f, args, more):
        cls = type(f)
        if cls is types.FunctionType:
            return self.run(f, args, more)
        if cls is types.MethodType:
            return self.call(_object(f.__func__), [_object(f.__self__)] + args, more)
        if cls is functools._lru_cache_wrapper:
            return self.call(_object(f.__wrapped__), args, more)
        if issubclass(cls, functools.partial):
            function, first, keywords = objects.partial(f)
            given = [self.found(v, f, "args[%d]" % i) for i, v in enumerate(tuple.__iter__(first))]
            named = [(k, self.found(v, keywords, k)) for k, v in list(dict.items(keywords)) if type(k) is str]
            return self.call(_object(function), given + args, named + list(more))
        if issubclass(cls, type):
            return self.made(f, args, more)
        if cls is types.BuiltinFunctionType:
            return self.builtin(f, args, more)
        if issubclass(cls, sys.modules["torch"].nn.Module) and in_class(cls, "__call__")[0] is sys.modules["torch"].nn.Module:
            return self.call(self.attribute(_object(f), "forward"), args, more)
        k, found = in_class(cls, "__call__")
        if type(function_of(found)[0]) is types.FunctionType:
            return self.call(self.bound(k, found, f, "__call__"), args, more)
        self.escape(args, more)
        return UNKNOWN

    def made(self, cls, args, more):
        """An instance of a class, or what a builtin one passes on."""
        if cls is type and len(args) == 1:
            return Value(tuple([("object", type(a[1])) for a in args[0].atoms if a[0] == "object"]), args[0].exact)
        if id(cls) in _VALUES:
            return Value((), True, union(args).read if args else frozenset())
        if issubclass(cls, BaseException) or id(cls) in _PRINTS:
            return NOTHING
        if id(cls) in _SAME:
            return Value((("items", union([self.elements(a) for a in args])),), True) if args else NOTHING
        if cls is enumerate or cls is zip:
            inner = Value((("items", union([self.elements(a) for a in args] or [NOTHING])),), True)
            return Value((("items", inner),), True)
        if (cls is map or cls is filter) and args:
            items = [self.elements(a) for a in args[1:]]
            result = self.call(args[0], items)
            return Value((("items", result if cls is map else union(items or [NOTHING])),), True)
        if cls is dict or objects.library(objects.module(cls)):
            self.escape(args, more)
            return NOTHING if cls is dict else UNKNOWN
        k, init = in_class(cls, "__init__")
        if type(init) is types.FunctionType:
            self.run(init, [UNKNOWN] + args, more)
        else:
            self.escape(args, more)
        return UNKNOWN

    def builtin(self, f, args, more):
        if id(f) in _PRINTS:
            return NOTHING
        if id(f) in _VALUES:
            return Value((), True, union(args).read if args else frozenset())
        if f is getattr and len(args) > 1:
            name = args[1].atoms[0][1] if args[1].exact and len(args[1].atoms) == 1 and args[1].atoms[0][0] == "object" else None
            if type(name) is str:
                return union([self.attribute(args[0], name)] + args[2:])
            self.vaguely(args[0])
            return UNKNOWN
        if f is setattr and len(args) > 2:
            name = args[1].atoms[0][1] if args[1].exact and len(args[1].atoms) == 1 and args[1].atoms[0][0] == "object" else None
            self.stored_whole.update([id(a[1]) for a in args[0].atoms if a[0] == "object"])
            self.keep(args[2])
            if not args[0].exact and type(name) is str:
                self.stored_names.add(name)
            self.use(args[2])
            return NOTHING
        if f is vars and args:
            return self.attribute(args[0], "__dict__")
        if id(f) in _SAME and args:
            items = self.elements(args[0])
            return items if f is next else Value((("items", items),), True)
        if f is eval or f is exec:
            self.any = True
        self.escape(args, more)
        module = f.__module__
        return NOTHING if type(module) is str and objects.library(module) else UNKNOWN

    def of_box(self, box, name, args, more):
        """A method of a container that the code makes."""
        for value in args:
            self.use(value)
        if name in ("extend", "update"):
            box.value = union([box.value] + [self.elements(a) for a in args])
        elif name in _WRITES and name != "pop":
            box.value = union([box.value] + args)
        else:
            return union([box.value, Value((("items", box.value),), True)])
        return NOTHING

    def of_container(self, obj, name, args, more):
        """A method of a builtin container."""
        if name in _WRITES:
            self.stored_whole.add(id(obj))
            self.keep(union(args) if args else NOTHING, name == "setdefault")
        self.use(union(args) if args else NOTHING)
        if issubclass(type(obj), dict) and name in ("get", "pop", "setdefault") and args:
            return union([self.item(_object(obj), args[0])] + args[1:])
        if name in ("values", "items", "keys", "copy", "__iter__"):
            items = self.elements(_object(obj)) if name != "keys" else NOTHING
            if name == "items":
                items = Value((("items", items),), True)
            return Value((("items", items),), True)
        self.escape(args, more)
        return self.elements(_object(obj)) if name in ("pop", "__getitem__") else NOTHING

    def keep(self, value, first=False):
        """It is put into an object that outlives the fetch; first: unless there is something already."""

    def vaguely(self, value):
        for atom in value.atoms:
            if atom[0] == "object":
                self.vague.add(id(atom[1]))
        if not value.exact:
            self.any = True

    def escape(self, args, more):
        """They go to code that is not followed."""
        for value in list(args) + [v for _, v in more]:
            self.use(value)
            for atom in value.atoms:
                kind, what = atom[0], atom[1]
                if kind in ("method", "code"):
                    self.call_atom(atom, [], ((None, UNKNOWN),))
                elif kind == "items":
                    self.escape([what], ())
                elif kind == "box" and id(what) not in self.vague:  # one may hold itself
                    self.vague.add(id(what))
                    self.escape([what.value], ())
                elif kind == "object":
                    self.leaves(what, type(what))

    def leaves(self, obj, cls):
        if issubclass(cls, dict) or id(cls) in _WHOLE:
            self.whole.add(id(obj))
        elif cls is types.FunctionType or cls is types.MethodType or issubclass(cls, functools.partial):
            self.call_object(obj, [], ((None, UNKNOWN),))
        elif not (id(cls) in objects.ATOMS or cls is types.ModuleType or issubclass(cls, type) or _opaque(obj, cls)):
            if id(obj) in self.vague:
                return
            self.vague.add(id(obj))
            if cls is list or cls is tuple:
                self.escape([self.elements(_object(obj))], ())
                return
            for name in ("__call__", "__iter__", "__next__", "__getitem__"):
                k, found = in_class(cls, name)
                if type(function_of(found)[0]) is types.FunctionType:
                    self.call(self.bound(k, found, obj, name), [], ((None, UNKNOWN),))

    def run(self, f, args, more):
        """A Python function. Of a library's, methods of torch's own tools for data and of other packages."""
        module = f.__module__
        if module == "torch.utils.data._utils.worker" and f.__name__ == "get_worker_info":
            return Value((("worker info", None),), True)
        if type(module) is not str or _foreign(module):
            if f.__name__ in _TELLS or module in ("warnings", "logging"):
                return NOTHING
            self.escape(args, more)
            return NOTHING if module.startswith(("torch.", "numpy.", "random", "math")) else UNKNOWN
        return self.run_code(f.__code__, objects.plain(f.__globals__), f, args, more)

    def run_code(self, code, namespace, outer, args, more):
        """outer: the function, or (a function inside of another) the variables around it."""
        key = (id(code), id(outer), tuple(map(bytecode.key, args)), tuple((k, bytecode.key(v)) for k, v in more))
        if key in self.calls:
            return self.calls[key]
        if len(self.calls) >= MAX_CALLS or self.depth >= MAX_DEPTH:
            self.cut = True
            return UNKNOWN
        self.calls[key] = NOTHING  # of a recursion
        self.depth += 1
        self.calls[key] = result = bytecode.Machine(self, code, namespace, outer, args, more).run()
        self.depth -= 1
        return result


def _foreign(module):
    """Code that is not followed: Python's, NumPy's, torch's but for its datasets."""
    if module.startswith("torch.utils.data") or module.startswith("torchvision.transforms"):
        return False
    return objects.library(module)


def _opaque(obj, cls):
    """Objects of such a class hold nothing that is told of."""
    if issubclass(cls, (sys.modules["torch"].Tensor, sys.modules["torch"].dtype)) or cls is types.BuiltinFunctionType:
        return True
    return objects.module(cls) == "numpy" or objects.module(cls).partition(".")[0] in objects.BARREN
