"""What was raised, and for which sample. Runs only when something was."""
from . import ring


def write(raised, loader, number, worker, batch, stage, asked=()):
    """asked: the indices of the batch, where there are any."""
    sample, at, inside = -1, ("", 0, ""), False
    tb = raised.__traceback__
    while tb is not None:
        frame, code = tb.tb_frame, tb.tb_frame.f_code
        if inside and sample < 0 and code.co_name == "__getitem__" and code.co_argcount > 1:
            # The comprehension's variable is gone where comprehensions are inlined (Python 3.12): what it was called with.
            sample = _index(frame.f_locals.get(code.co_varnames[1]), asked)
        inside = code.co_filename.endswith("fetch.py")  # `[self.dataset[idx] for idx in index]` of torch/utils/data/_utils/fetch.py
        if inside:
            sample = max(sample, _index(frame.f_locals.get("idx"), asked))
        if not code.co_filename.endswith(("dptrace_hook/windows.py", "dptrace_hook/iterators.py")):
            at = (code.co_filename, tb.tb_lineno, code.co_name)
        tb = tb.tb_next
    cls = type(raised)
    # Only what the interpreter itself can render: str() of the user's exception may be the user's code.
    text = ", ".join(a if type(a) is str else str(a) for a in raised.args if type(a) in (str, int, float, bool))
    ring.put_json(ring.EXCEPTION, {"loader": loader, "pass": number, "worker": worker, "batch": batch, "stage": stage, "sample": sample,
                                   "type": "%s.%s" % (cls.__module__, cls.__qualname__) if cls.__module__ != "builtins" else cls.__qualname__,
                                   "message": text[:500], "file": at[0], "line": at[1], "func": at[2]})


def _index(value, asked):
    """A value that is one of the indices asked for; else -1."""
    indices = asked if type(asked) in (list, tuple) else (asked,)
    return value if type(value) is int and any(type(i) is int and i == value for i in indices) else -1
