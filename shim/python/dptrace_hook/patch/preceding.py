"""Has a function of Python call us as it begins, in its own frame: compilers of torch know it as before, and nothing of ours is in stacks,
tracebacks and signatures, nor between it and those to whom its warnings are attributed (stacklevel).

It stays the object that it is and gets other code: its source, compiled anew with one statement in front, on the line that comes first
anyway. Only where its source without that statement compiles to the very code that it has, with the same numbers of lines and columns.
"""
import __future__
import ast
import inspect
import itertools
import tokenize
import types

_OURS, _UNLESS = "_dptrace_", "_dptrace_unless"  # among the globals of the function: ours of its name, and whether compilers are at work
_FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names} - {0x10})  # nested_scopes: CO_NESTED's bit

_asking = []  # the globals of such functions
_state = {"unless": int}  # int() is 0: no


def unless(compiling):
    """From now on compilers know that they are at work by compiling(), and do not look into ours. They must know it as theirs."""
    _state["unless"] = compiling
    for names in _asking:
        names[_UNLESS] = compiling


def precede(f, ours, theirs):
    """f(...) begins with ours(...), which must not raise, given its arguments, the named ones by position. False: it cannot be done,
    and f is what it was. theirs(e) of the guard."""
    if type(f) is not types.FunctionType:
        return False
    code = f.__code__
    name = _OURS + code.co_name
    if name in code.co_names:
        return True
    try:
        tree = _parsed(f)
        if _compiled(tree, code) != code:
            return False
        definition = _definition(tree)
        at = 0 if ast.get_docstring(definition, clean=False) is None else 1
        definition.body.insert(at, _statement(name, definition.args, definition.body[at]))
        new = _compiled(tree, code)
    except (OSError, SyntaxError, ValueError, LookupError, RecursionError, StopIteration) as e:  # no source, or not of this
        if theirs(e):
            raise
        return False
    f.__globals__[name], f.__globals__[_UNLESS] = ours, _state["unless"]
    _asking.append(f.__globals__)
    f.__code__ = new.replace(co_qualname=code.co_qualname) if hasattr(code, "co_qualname") else new
    return True


def _imported(f):
    """The globals it may use that come from elsewhere: CPython compiles calls of what is in an imported name in another way (3.11)."""
    found = []
    for name in f.__code__.co_names:
        value = f.__globals__.get(name)
        if type(value) is types.ModuleType or isinstance(value, (type, types.FunctionType)) and value.__module__ != f.__module__:
            found.append(name)
    return found


def _parsed(f):
    """Its definition, in a class of that name if it is of one, and imports; which are compiled and do not run."""
    code, imported = f.__code__, _imported(f)
    with tokenize.open(code.co_filename) as source:
        lines = inspect.getblock(list(itertools.islice(source, code.co_firstlineno - 1, None)))
    around = "class %s:\n" % f.__qualname__.split(".")[-2] if lines[0][:1].isspace() else ""
    tree = ast.parse(around + "".join(lines))
    ast.increment_lineno(tree, code.co_firstlineno - 1 - bool(around))
    if imported:
        tree.body.append(ast.copy_location(ast.Import([ast.copy_location(ast.alias(n, None), tree.body[0]) for n in imported]), tree.body[0]))
    return tree


def _definition(tree):
    return next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _compiled(tree, code):
    whole = compile(tree, code.co_filename, "exec", flags=code.co_flags & _FUTURE, dont_inherit=True)
    inside = [c for c in whole.co_consts if type(c) is types.CodeType]
    if type(tree.body[0]) is ast.ClassDef:
        inside = [c for c in inside[0].co_consts if type(c) is types.CodeType]
    return next(c for c in inside if c.co_name == code.co_name)


def _statement(name, args, first):
    """if not unless(): ours(...), where the first statement is."""
    def read(identifier):
        return ast.Name(identifier, ast.Load())
    given = [read(a.arg) for a in getattr(args, "posonlyargs", []) + args.args]
    given += [ast.Starred(read(args.vararg.arg), ast.Load())] if args.vararg else []
    named = [ast.keyword(a.arg, read(a.arg)) for a in args.kwonlyargs] + ([ast.keyword(None, read(args.kwarg.arg))] if args.kwarg else [])
    statement = ast.If(ast.UnaryOp(ast.Not(), ast.Call(read(_UNLESS), [], [])), [ast.Expr(ast.Call(read(name), given, named))], [])
    for node in ast.walk(statement):
        ast.copy_location(node, first)
    return statement
