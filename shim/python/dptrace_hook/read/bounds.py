"""Whether the code that fills a container may also keep it from growing: what its bytecode compares, measures and removes.

Names and instructions alone are read. That nothing of the kind is there is what excludes a bound; that something is there says
nothing: it may be about something else.
"""
import dis
import types

_REMOVE = {"pop", "popitem", "popleft", "clear", "cache_clear", "remove", "discard", "move_to_end", "truncate", "resize_", "__delitem__"}
_DELETES = {"DELETE_SUBSCR", "DELETE_SLICE"}
_ORDER = {"<", "<=", ">", ">=", "==", "!="}
_REMAINDERS = {"BINARY_MODULO", "BINARY_AND", "INPLACE_MODULO", "INPLACE_AND"}
_STORES = {"STORE_ATTR", "STORE_GLOBAL", "STORE_NAME", "STORE_FAST", "STORE_DEREF"}
_CODES = 4000  # that are looked at


def of(name, codes):
    """Why a container that code calls by a name may stop to grow, among some codes: "unknown" (none of them names it), "removes",
    "measures" (len), "compares", "replaces"; "" nothing of the kind."""
    every = list(_nested(codes))
    touching = [code for code in every if _names(code, name)]
    if not touching or len(every) >= _CODES:
        return "unknown"
    if any(not _REMOVE.isdisjoint(code.co_names) or _has(code, _DELETES) for code in every):
        return "removes"
    if any("len" in code.co_names or "__len__" in code.co_names for code in touching):
        return "measures"
    for code in touching:
        before = ""
        for op in dis.get_instructions(code):
            if op.opname == "COMPARE_OP" and any(op.argrepr.startswith(sign) or "(%s)" % sign in op.argrepr for sign in _ORDER):
                return "compares"
            if op.opname in _REMAINDERS or op.opname == "BINARY_OP" and op.argrepr in ("%", "%=", "&", "&="):
                return "compares"
            if op.opname == "STORE_SLICE" or op.opname == "STORE_SUBSCR" and before == "BUILD_SLICE":
                return "removes"
            before = op.opname
            if op.opname in _STORES and op.argval == name and code.co_name not in ("__init__", "<module>", "setup"):
                return "replaces"
    return ""


def _nested(codes):
    todo, seen = list(codes), set()
    while todo and len(seen) < _CODES:
        code = todo.pop()
        if id(code) not in seen:
            seen.add(id(code))
            yield code
            todo += [const for const in code.co_consts if type(const) is types.CodeType]


def _names(code, name):
    return name in code.co_names or name in code.co_varnames or name in code.co_freevars or name in code.co_cellvars or \
        any(type(const) is str and const == name for const in code.co_consts)


def _has(code, opnames):
    return any(op.opname in opnames for op in dis.get_instructions(code))
