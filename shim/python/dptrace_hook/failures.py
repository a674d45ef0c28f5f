"""What was raised, and for which sample. Runs only when something was."""
from . import ring


def write(raised, loader, number, worker, batch, stage):
    sample, at = -1, ("", 0, "")
    tb = raised.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_filename.endswith("fetch.py"):  # `[self.dataset[idx] for idx in index]` of torch/utils/data/_utils/fetch.py
            index = tb.tb_frame.f_locals.get("idx")
            if type(index) is int:
                sample = index
        if not code.co_filename.endswith(("dptrace_hook/windows.py", "dptrace_hook/iterators.py")):
            at = (code.co_filename, tb.tb_lineno, code.co_name)
        tb = tb.tb_next
    cls = type(raised)
    # Only what the interpreter itself can render: str() of the user's exception may be the user's code.
    text = ", ".join(a if type(a) is str else str(a) for a in raised.args if type(a) in (str, int, float, bool))
    ring.put_json(ring.EXCEPTION, {"loader": loader, "pass": number, "worker": worker, "batch": batch, "stage": stage, "sample": sample,
                                   "type": "%s.%s" % (cls.__module__, cls.__qualname__) if cls.__module__ != "builtins" else cls.__qualname__,
                                   "message": text[:500], "file": at[0], "line": at[1], "func": at[2]})
