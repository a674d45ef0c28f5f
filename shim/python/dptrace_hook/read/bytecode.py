"""Goes through the byte code of CPython 3.8 to 3.14, with what is known of the values on its stack: see reads.py.

Instructions that are not known here only move the stack, by dis.stack_effect; what they take is used, and what they give is
not known. Variables are the union of all that is assigned to them.
"""
import builtins
import dis
import operator
import sys
import types

from . import objects

MAX_INSTRUCTIONS = 20000  # of which one takes 5 to 15 us
MAX_ATOMS = 64


class Value:
    """atoms: what it may be, tuples that begin with their kind. exact: it is one of them, or nothing that leads anywhere.
    read: the attributes that it was made of and that are not used so far."""
    __slots__ = ("atoms", "exact", "read")

    def __init__(self, atoms, exact, read=frozenset()):
        self.atoms, self.exact, self.read = atoms, exact, read


UNKNOWN, NOTHING, NULL = Value((), False), Value((), True), Value((), True)


def union(values):
    if len(values) == 1:
        return values[0]
    atoms, seen, exact, read = [], set(), True, set()
    for v in values:
        exact = exact and v.exact
        read |= v.read
        for atom in v.atoms:
            k = atom_key(atom)
            if k not in seen:
                seen.add(k)
                atoms.append(atom)
    if len(atoms) > MAX_ATOMS:
        atoms, exact = atoms[:MAX_ATOMS], False
    return Value(tuple(atoms), exact, frozenset(read))


def atom_key(atom):
    return (atom[0],) + tuple([key(a) if type(a) is Value else a if type(a) is str else id(a) for a in atom[1:]])


def key(value):
    return (tuple(map(atom_key, value.atoms)), value.exact, value.read)


_STILL = {"NOP", "RESUME", "CACHE", "EXTENDED_ARG", "PRECALL", "COPY_FREE_VARS", "MAKE_CELL", "GEN_START", "NOT_TAKEN", "SETUP_FINALLY",
          "POP_BLOCK", "SETUP_ANNOTATIONS", "POP_FINALLY", "BEGIN_FINALLY", "TO_BOOL", "RETURN_CONST"}
_TAKE = ("POP_", "STORE_", "JUMP_IF", "END_", "DELETE_", "LIST_", "SET_", "MAP_", "DICT_", "SETUP_")  # and give nothing
_END = {"JUMP_FORWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP", "RETURN_VALUE", "RETURN_CONST",
        "RAISE_VARARGS", "RERAISE"}
_HANDLERS = {"SETUP_FINALLY", "SETUP_WITH", "SETUP_EXCEPT", "SETUP_ASYNC_WITH", "CALL_FINALLY"}
_COMPARED = {"==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_JUMPS = set(dis.hasjrel) | set(dis.hasjabs)


class Machine:
    def __init__(self, reads, code, namespace, outer, args, more):
        self.reads, self.code, self.namespace, self.outer = reads, code, namespace, outer
        self.stack, self.variables, self.results, self.keywords = [], {}, [], ()
        self.cells, self.scope, self.boxes = {}, Scope(self), {}
        self.caller, self.instructions, self.at, self.branches = reads.machine, (), None, {}
        if type(outer) is types.FunctionType:
            for cell, name in zip(outer.__closure__ or (), code.co_freevars):
                self.cells[name] = cell
        self.bind(args, more)

    def bind(self, args, more):
        code, f = self.code, self.outer
        names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
        given = dict(zip(code.co_varnames[:code.co_argcount], args))
        rest = list(args[code.co_argcount:])
        anything = False
        for name, value in more:
            if name in names:
                given[name] = value
            else:
                rest.append(value)
                anything = anything or name is None
        if type(f) is types.FunctionType:
            defaults, positional = f.__defaults__ or (), code.co_varnames[:code.co_argcount]
            for name, value in list(zip(positional[len(positional) - len(defaults):], defaults)) + list((f.__kwdefaults__ or {}).items()):
                if name not in given:
                    given[name] = Value((("object", value),), not anything, self.reads.key(f, "<default %s>" % name, value))
        for name in names:
            self.variables[name] = given.get(name, UNKNOWN)
        at = len(names)
        for flag in (4, 8):  # *args, **kwargs
            if code.co_flags & flag:
                self.variables[code.co_varnames[at]] = Value((("items", _union(rest)),), True)
                at += 1

    def forget(self):
        """Machines, and the functions that they make, know one another."""
        for box in self.boxes.values():
            box.value = NOTHING
        self.reads = self.outer = self.scope = self.caller = None
        self.stack, self.variables, self.results, self.cells, self.boxes = [], {}, [], {}, {}

    def run(self):
        self.reads.machines.append(self)
        self.instructions = instructions = list(dis.get_instructions(self.code))
        self.reads.machine = self
        result = self.result(instructions)
        self.reads.machine = self.caller
        return result

    def result(self, instructions):
        for _ in range(2):  # a loop's end assigns what its begin reads
            self.reads.instructions -= len(instructions)
            if self.reads.instructions < 0:
                self.reads.cut = True
                return UNKNOWN
            before = self.known()
            self.results = []
            self.once(instructions)
            if before == self.known():
                break
        result = _union(self.results)
        if self.code.co_flags & 0x220:  # generators
            return Value((("items", result),), True)
        return result

    def known(self):
        return {name: key(v) for name, v in self.variables.items()}, {at: key(box.value) for at, box in self.boxes.items()}

    def once(self, instructions):
        waiting, self.stack, dead = {}, [], False
        for i in instructions:
            if dead and i.offset not in waiting and i.opname != "PUSH_EXC_INFO":
                continue
            if dead:
                self.stack = waiting.pop(i.offset, [])
            elif i.offset in waiting:
                self.stack = _merged(self.stack, waiting.pop(i.offset))
            taken, dead = self.decided(i), False
            self.at, self.branches[i.offset] = i.offset, taken
            if i.opname in _HANDLERS:
                waiting.setdefault(i.argval, [])
            elif i.opcode in _JUMPS and i.argval > i.offset and taken is not False:
                waiting.setdefault(i.argval, self.moved(i) if taken is None else list(self.stack))
            if taken is None:
                self.step(i)
            dead = taken is True or i.opname in _END

    def decided(self, i):
        """Of a branch on what is known, and stays: whether it is taken. None: nobody knows."""
        if "POP_JUMP" not in i.opname or not self.stack:
            return None
        truth = self.reads.truth(self.stack[-1], i.opname.endswith("NONE"))
        if truth is None or i.argval <= i.offset:
            return None
        self.reads.use(self.pop())
        return truth is (i.opname.endswith("_TRUE") or i.opname.endswith("_NONE") and not i.opname.endswith("NOT_NONE"))

    def skipped(self):
        """Reports whether a call may end without the instruction that runs: as where something is made when it is first needed."""
        return self.ends_without(self.at) or self.caller is not None and self.caller.skipped()

    def ends_without(self, at):
        """Along the ways that no exception takes. A loop with `at` in it runs at least once."""
        number = {i.offset: k for k, i in enumerate(self.instructions)}
        todo, seen = [(0, False)], set()
        while todo:
            k, again = todo.pop()
            i = self.instructions[k]
            if (k, again) in seen or i.offset == at:
                continue
            seen.add((k, again))
            if i.opname in ("RETURN_VALUE", "RETURN_CONST"):
                return True
            taken, first = self.branches.get(i.offset), i.opname == "FOR_ITER" and i.offset < at < i.argval and not again
            if i.opcode in _JUMPS and i.opname not in _HANDLERS and taken is not False and not first:
                todo.append((number[i.argval], i.argval < i.offset))
            if taken is not True and i.opname not in _END and k + 1 < len(self.instructions):
                todo.append((k + 1, False))
        return False

    def moved(self, i):
        """The stack after a jump."""
        effect = dis.stack_effect(i.opcode, i.arg, jump=True)
        return self.stack[:len(self.stack) + effect] if effect <= 0 else self.stack + [UNKNOWN] * effect

    def step(self, i):
        act = _ACTS.get(i.opname)
        if act is not None:
            act(self, i)
        elif i.opname not in _STILL:
            self.other(i)

    def other(self, i):
        effect = dis.stack_effect(i.opcode, i.arg if i.opcode >= dis.HAVE_ARGUMENT else None, jump=False)
        for _ in range(-effect):
            self.reads.use(self.pop())
        if effect > 0:
            self.stack += [UNKNOWN] * effect
        elif self.stack and not i.opname.startswith(_TAKE):
            self.reads.use(self.stack[-1])
            self.stack[-1] = UNKNOWN

    def pop(self):
        return self.stack.pop() if self.stack else UNKNOWN

    def pops(self, n):
        return [self.pop() for _ in range(n)][::-1]

    def push(self, value):
        self.stack.append(value)

    # Instructions.

    def load(self, name):
        if name in self.cells:
            try:
                held = self.cells[name].cell_contents
            except ValueError:  # empty
                return UNKNOWN
            return self.reads.found(held, self.cells[name], name)
        if name in self.variables:
            return self.variables[name]
        return self.outer.machine.load(name) if type(self.outer) is Scope else UNKNOWN

    def load_fast(self, i):
        for name in i.argval if type(i.argval) is tuple else (i.argval,):
            self.push(self.load(name))

    def store(self, name, value):
        old = self.variables.get(name)
        self.variables[name] = value if old is None else union([old, value])

    def store_fast(self, i):
        for name in i.argval if type(i.argval) is tuple else (i.argval,):
            if name in self.cells:
                self.reads.stored.add((id(self.cells[name]), name))
            self.store(name, self.pop())

    def store_global(self, i):
        self.reads.stored.add((id(self.namespace), i.argval))
        value = self.pop()
        self.reads.keep(value)
        self.reads.use(value)

    def store_item(self, i):
        index, container, value = self.pop(), self.pop(), self.pop()
        for each in (index, container, value):
            self.reads.use(each)
        held = [id(a[1]) for a in container.atoms if a[0] == "object"]
        self.reads.stored_whole.update(held)
        if held:
            self.reads.keep(value)

    def store_load(self, i):
        self.store(i.argval[0], self.pop())
        self.push(self.load(i.argval[1]))

    def load_const(self, i):
        if type(i.argval) is types.CodeType:
            self.push(Value((("constant code", i.argval),), True))
        else:
            self.push(Value((("object", i.argval),), True))

    def load_global(self, i):
        if i.opname == "LOAD_NAME" or "__builtins__" not in self.namespace:
            found = builtins.__dict__
        else:
            found = self.namespace["__builtins__"]
            found = found if type(found) is dict else found.__dict__
        value = self.reads.global_(self.namespace, found, i.argval)
        if i.argval == "super" and value.atoms and value.atoms[0][1] is super:
            value = Value((("super of", None),), True)
        pushed = [value, NULL] if dis.stack_effect(i.opcode, i.arg) == 2 else [value]
        for each in pushed if sys.version_info >= (3, 13) else reversed(pushed):  # what follows may ask for an attribute of the last
            self.push(each)

    def load_attr(self, i):
        self.push(self.reads.attribute(self.pop(), i.argval))
        if i.opname == "LOAD_METHOD" or dis.stack_effect(i.opcode, i.arg) == 1:
            self.push(NULL)

    def load_super(self, i):
        obj = self.pops(3)[2]
        self.push(self.super_of(obj, i.argval))
        if dis.stack_effect(i.opcode, i.arg) == -1:
            self.push(NULL)

    def super_of(self, obj, name):
        return self.reads.attribute(self.super_object(obj), name)

    def super_object(self, obj):
        cls = self.load("__class__")
        if len(cls.atoms) == 1 and cls.atoms[0][0] == "object" and all(a[0] == "object" for a in obj.atoms):
            return Value(tuple([("super", cls.atoms[0][1], a[1]) for a in obj.atoms]), obj.exact)
        return UNKNOWN

    def store_attr(self, i):
        obj, value = self.pop(), self.pop()
        held = [a[1] for a in obj.atoms if a[0] == "object"]
        own = {(id(o), i.argval) for o in held}
        # What the class has in its place, `rng = None`, is read no more.
        own |= {(id(k), i.argval) for o in held for k in objects.mro(type(o)) if i.argval in objects.members(k)}
        self.reads.stored |= own
        if own:
            self.reads.keep(value)
        if not obj.exact:
            self.reads.stored_names.add(i.argval)  # self.served += 1 is for itself alone
        self.reads.used |= value.read - own

    def subscript(self, i):
        index = self.pop()
        self.push(self.reads.item(self.pop(), index))

    def binary(self, i):
        if i.argrepr == "[]":
            self.subscript(i)
            return
        a, b = self.pops(2)
        self.push(Value((), a.exact and b.exact and not _objects(a) and not _objects(b), a.read | b.read))

    def build(self, i):
        held = _union(self.pops(i.arg))
        if i.opname == "BUILD_TUPLE":
            self.push(Value((("items", held),), True, held.read))
        else:
            self.boxed(i, held)

    def boxed(self, i, held):
        box = self.boxes.setdefault(i.offset, Box())
        box.value = union([box.value, held])
        self.push(Value((("box", box),), True, held.read))

    def add(self, i):
        """Something to a container that is in the making."""
        taken = self.pops(2 if i.opname == "MAP_ADD" else 1)
        if "EXTEND" in i.opname or "UPDATE" in i.opname or "MERGE" in i.opname:
            taken = [self.reads.elements(taken[0])]
        held = _union(taken)
        self.reads.use(held)
        for atom in self.stack[-i.arg].atoms if len(self.stack) >= i.arg else ():
            if atom[0] == "box":
                atom[1].value = union([atom[1].value, held])

    def test(self, i):
        a, b = self.pops(2)
        if i.opname == "IS_OP" or i.argval in ("is", "is not"):
            self.push(self.reads.same(a, b, i.arg == 1 if i.opname == "IS_OP" else i.argval == "is not"))
        else:
            self.push(self.reads.compared(a, b, _COMPARED.get(i.argval) if i.opname == "COMPARE_OP" else None))

    def negate(self, i):
        value = self.pop()
        truth = self.reads.truth(value, False)
        self.push(Value((), True, value.read) if truth is None else Value((("object", not truth),), True, value.read))

    def assertion(self, i):
        self.push(Value((("object", AssertionError if i.opname == "LOAD_ASSERTION_ERROR" else i.argval),), True))

    def build_map(self, i):
        self.boxed(i, _union(self.pops(2 * i.arg)))

    def build_const_map(self, i):
        self.boxed(i, _union(self.pops(i.arg + 1)))

    def build_string(self, i):
        self.push(Value((), True, _union(self.pops(i.arg)).read))

    def format(self, i):
        pops = 1 - dis.stack_effect(i.opcode, i.arg if i.opcode >= dis.HAVE_ARGUMENT else None)
        self.push(Value((), True, _union(self.pops(pops)).read))

    def iterate(self, i):
        self.push(Value((("items", self.reads.elements(self.pop())),), True))

    def for_iter(self, i):
        found = [a[1] for a in self.stack[-1].atoms if a[0] == "items"] if self.stack else []
        self.push(union(found) if found else UNKNOWN)

    def unpack(self, i):
        value = self.pop()
        if len(value.atoms) == 1 and value.exact and value.atoms[0][0] == "object" and type(value.atoms[0][1]) is tuple \
                and len(value.atoms[0][1]) == i.arg:
            self.reads.use(value)
            self.stack += [Value((("object", v),), True, value.read) for v in value.atoms[0][1]][::-1]
        else:
            self.stack += [self.reads.elements(value)] * i.arg

    def unpack_ex(self, i):
        inner = self.reads.elements(self.pop())
        self.stack += [inner] * (1 + (i.arg & 0xFF) + (i.arg >> 8))

    def yield_value(self, i):
        value = self.pop()
        self.reads.use(value)
        self.results.append(value)
        self.push(UNKNOWN)

    def yield_from(self, i):
        if i.opname == "YIELD_FROM":
            self.pop()
        self.results.append(self.reads.elements(self.stack[-1] if self.stack else UNKNOWN))

    def returns(self, i):
        value = self.pop()
        if not self.code.co_flags & 0x220:
            self.results.append(value)

    def raises(self, i):
        self.pops(i.arg)

    def discard(self, i):
        self.pop()

    def duplicate(self, i):
        self.push(self.stack[-1] if self.stack else UNKNOWN)

    def copy(self, i):
        self.push(self.stack[-i.arg] if len(self.stack) >= i.arg else UNKNOWN)

    def swap(self, i):
        if len(self.stack) >= i.arg:
            self.stack[-1], self.stack[-i.arg] = self.stack[-i.arg], self.stack[-1]

    def rotate(self, n):
        if len(self.stack) >= n:
            self.stack.insert(len(self.stack) - n, self.stack.pop())

    def null(self, i):
        self.push(NULL)

    def kw_names(self, i):
        names = i.argval if type(i.argval) is tuple else self.code.co_consts[i.arg]
        self.keywords = names

    def make_function(self, i):
        made = self.pops(1 - dis.stack_effect(i.opcode, i.arg if i.opcode >= dis.HAVE_ARGUMENT else None))
        code = [a[1] for v in made for a in v.atoms if a[0] == "constant code"]
        self.reads.use(_union([v for v in made if v is not NULL]))
        self.push(Value((("code", code[0], self.namespace, self.scope),), True) if code else UNKNOWN)

    def set_function(self, i):
        f = self.pop()
        self.reads.use(self.pop())
        self.push(f)

    # Calls.

    def called(self, f, args, more):
        if f.atoms and f.atoms[0][0] == "super of":
            first = self.code.co_varnames[:1]
            obj = args[1] if len(args) > 1 else self.load(first[0]) if first else UNKNOWN
            self.push(self.super_object(obj))
        else:
            self.push(self.reads.call(f, args, more))

    def split(self, args, names):
        n = len(args) - len(names)
        return args[:n], tuple(zip(names, args[n:]))

    def call(self, i):
        """3.11 on: two places below the arguments, one of which may be empty."""
        names, self.keywords = self.keywords, ()
        if i.opname == "CALL_KW":
            names = self.constant(self.pop())
        args = self.pops(i.arg)
        top, below = self.pop(), self.pop()
        if top is NULL or below is NULL:
            f = top if below is NULL else below
        else:
            f, args = below, [top] + args
        self.called(f, *self.split(args, names))

    def call_function(self, i):
        names = self.constant(self.pop()) if i.opname == "CALL_FUNCTION_KW" else ()
        args = self.pops(i.arg)
        self.called(self.pop(), *self.split(args, names))

    def call_method(self, i):
        args = self.pops(i.arg)
        self.pop()
        self.called(self.pop(), args, ())

    def call_ex(self, i):
        """f(*args, **more)"""
        effect = dis.stack_effect(i.opcode, i.arg if i.opcode >= dis.HAVE_ARGUMENT else None)
        taken = [v for v in self.pops(1 - effect) if v is not NULL]
        given = [self.reads.elements(v) for v in taken[1:]]
        self.called(taken[0] if taken else UNKNOWN, [], tuple((None, v) for v in given))

    def constant(self, value):
        held = value.atoms[0][1] if value.atoms and value.atoms[0][0] == "object" else ()
        return held if type(held) is tuple else ()


class Box:
    """What a container that the code makes comes to hold: it is filled in loops."""
    __slots__ = ("value",)

    def __init__(self):
        self.value = NOTHING


class Scope:
    """The variables around a function inside of another."""

    def __init__(self, machine):
        self.machine = machine


def _merged(stack, other):
    """Two ways lead here."""
    if len(stack) != len(other):
        return stack
    return [a if a is b or a is NULL or b is NULL else union([a, b]) for a, b in zip(stack, other)]


def _union(values):
    return union(values) if values else NOTHING


def _objects(value):
    return any(a[0] == "object" and objects.module(type(a[1])) != "builtins" for a in value.atoms)


_ACTS = {
    "LOAD_CONST": Machine.load_const, "LOAD_SMALL_INT": Machine.load_const, "LOAD_CONST_IMMORTAL": Machine.load_const,
    "LOAD_GLOBAL": Machine.load_global, "LOAD_NAME": Machine.load_global,
    "LOAD_ATTR": Machine.load_attr, "LOAD_METHOD": Machine.load_attr, "LOAD_SUPER_ATTR": Machine.load_super,
    "STORE_ATTR": Machine.store_attr, "BINARY_SUBSCR": Machine.subscript, "BINARY_OP": Machine.binary,
    "STORE_FAST_LOAD_FAST": Machine.store_load,
    "BUILD_MAP": Machine.build_map, "BUILD_CONST_KEY_MAP": Machine.build_const_map, "BUILD_STRING": Machine.build_string,
    "FORMAT_VALUE": Machine.format, "FORMAT_SIMPLE": Machine.format, "FORMAT_WITH_SPEC": Machine.format, "CONVERT_VALUE": Machine.format,
    "GET_ITER": Machine.iterate, "FOR_ITER": Machine.for_iter, "UNPACK_SEQUENCE": Machine.unpack, "UNPACK_EX": Machine.unpack_ex,
    "YIELD_VALUE": Machine.yield_value, "YIELD_FROM": Machine.yield_from, "GET_YIELD_FROM_ITER": Machine.yield_from,
    "RETURN_VALUE": Machine.returns, "RAISE_VARARGS": Machine.raises, "POP_TOP": Machine.discard,
    "DUP_TOP": Machine.duplicate, "COPY": Machine.copy, "SWAP": Machine.swap, "PUSH_NULL": Machine.null,
    "ROT_TWO": lambda m, i: m.rotate(2), "ROT_THREE": lambda m, i: m.rotate(3), "ROT_FOUR": lambda m, i: m.rotate(4),
    "KW_NAMES": Machine.kw_names, "MAKE_FUNCTION": Machine.make_function, "SET_FUNCTION_ATTRIBUTE": Machine.set_function,
    "CALL": Machine.call, "CALL_KW": Machine.call, "CALL_FUNCTION": Machine.call_function, "CALL_FUNCTION_KW": Machine.call_function,
    "CALL_METHOD": Machine.call_method, "CALL_FUNCTION_EX": Machine.call_ex,
}
for _name in ("FAST", "FAST_BORROW", "FAST_CHECK", "FAST_AND_CLEAR", "FAST_LOAD_FAST", "FAST_BORROW_LOAD_FAST_BORROW", "DEREF", "CLOSURE",
              "CLASSDEREF"):
    _ACTS["LOAD_" + _name] = Machine.load_fast
for _name in ("FAST", "DEREF", "FAST_STORE_FAST"):
    _ACTS["STORE_" + _name] = Machine.store_fast
for _name in ("LIST_APPEND", "SET_ADD", "MAP_ADD", "LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE"):
    _ACTS[_name] = Machine.add
for _name in ("COMPARE_OP", "CONTAINS_OP", "IS_OP"):
    _ACTS[_name] = Machine.test
_ACTS["STORE_GLOBAL"], _ACTS["STORE_SUBSCR"] = Machine.store_global, Machine.store_item
_ACTS["UNARY_NOT"] = Machine.negate
_ACTS["LOAD_ASSERTION_ERROR"] = _ACTS["LOAD_COMMON_CONSTANT"] = Machine.assertion
for _name in ("TUPLE", "LIST", "SET"):
    _ACTS["BUILD_" + _name] = Machine.build
for _name in ("ADD", "SUBTRACT", "MULTIPLY", "TRUE_DIVIDE", "FLOOR_DIVIDE", "MODULO", "POWER", "MATRIX_MULTIPLY", "AND", "OR", "XOR",
              "LSHIFT", "RSHIFT"):
    _ACTS["BINARY_" + _name] = _ACTS["INPLACE_" + _name] = Machine.binary
