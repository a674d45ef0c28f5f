"""What was raised, and for which sample. Runs only when something was."""
import os
import sys

from ..record import guard, ring
from ..read import objects

_NO_BATCH = 0xFFFFFFFF
_MOST_FDS, _GAP = 65536, 1024  # descriptors that are asked for, 1.5 us each; unused numbers in a row after which there are no more
_told = None  # the ring that holds what ended this process

_TOLD = objects.ids(str, int, float, bool)
# The interpreter's own: a class of the user's may have properties of these names.
_TRACEBACK, _ARGS = BaseException.__traceback__.__get__, BaseException.args.__get__


def write(raised, loader, number, worker, batch, stage, asked=()):
    """asked: the indices of the batch, where there are any."""
    sample, at, inside = -1, ("", 0, ""), False
    tb = _TRACEBACK(raised)
    while tb is not None:
        frame, code = tb.tb_frame, tb.tb_frame.f_code
        if inside and sample < 0 and code.co_name == "__getitem__" and code.co_argcount > 1:
            # The comprehension's variable is gone where comprehensions are inlined (Python 3.12): what it was called with.
            sample = _index(frame.f_locals.get(code.co_varnames[1]), asked)
        inside = code.co_filename.endswith("fetch.py")  # `[self.dataset[idx] for idx in index]` of torch/utils/data/_utils/fetch.py
        if inside:
            sample = max(sample, _index(frame.f_locals.get("idx"), asked))
        if "/dptrace_hook/" not in code.co_filename:
            at = (code.co_filename, tb.tb_lineno, code.co_name)
        tb = tb.tb_next
    cls = type(raised)
    # Only what the interpreter itself can render: str() of the user's exception may be the user's code.
    text = ", ".join(a if type(a) is str else str(a) for a in _ARGS(raised) if id(type(a)) in _TOLD)
    left = descriptors() if "Too many open files" in text or "items of ancdata" in text else (0, 0, 0)
    ring.put_json(ring.EXCEPTION, {"loader": loader, "pass": number, "worker": worker, "batch": batch, "stage": stage, "sample": sample,
                                   "open": left[0], "limit": left[1], "shared": left[2],
                                   "type": ("%s." % objects.module(cls) if objects.module(cls) != "builtins" else "") + objects.qualname(cls),
                                   "message": text[:500], "file": at[0], "line": at[1], "func": at[2]})


def descriptors():
    """How many this process has open, may have, and has open of torch's shared memory. Where none is left /proc/self/fd
    cannot be listed, nor a module imported; the numbers are given out from the lowest on."""
    limit, fd, misses, count, shared = os.sysconf("SC_OPEN_MAX"), 0, 0, 0, 0
    while fd < min(limit, _MOST_FDS) and misses < _GAP:
        path = "/proc/self/fd/%d" % fd
        try:
            shared += os.readlink(path).startswith("/dev/shm/torch_")
            count, misses = count + 1, 0
        except OSError as e:
            if e.filename != path and guard.theirs(e):
                raise
            if type(e) is not FileNotFoundError:  # no /proc: nothing is known
                return 0, 0, 0
            misses += 1
        fd += 1
    return count, limit, shared


def leftover(raised, loader, number, worker, asked):
    """The end of an IterableDataset: samples that had been taken for a batch that drop_last drops. Only the traceback
    still has them, as the local `data` of torch/utils/data/_utils/fetch.py."""
    tb = _TRACEBACK(raised)
    while tb is not None:
        code = tb.tb_frame.f_code
        if code.co_name == "fetch" and code.co_filename.endswith("fetch.py"):
            data = objects.locals_of(tb.tb_frame).get("data")
            if type(data) is list and type(asked) is list and 0 < len(data) < len(asked):
                ring.put_json(ring.LEFTOVER, {"loader": loader, "pass": number, "worker": worker, "samples": len(data)})
            return
        tb = tb.tb_next


def ended(raised):
    """What nobody caught, and what this process ends with. sys.exit() is no failure, whatever its code."""
    global _told
    if _told is not ring.ring and not issubclass(type(raised), SystemExit):
        _told = ring.ring
        write(raised, 0, 0, -1, _NO_BATCH, "exit")


def uncaught():
    """What the interpreter has printed and now ends with. sys.last_value alone does not say it: test runners, consoles
    and C libraries that print the error of a callback set it too, and go on. This one has left the program's first frame."""
    raised = getattr(sys, "last_exc", None)
    if raised is None:
        raised = getattr(sys, "last_value", None)
    if not issubclass(type(raised), BaseException) or sys.flags.interactive or sys.flags.inspect or hasattr(sys, "ps1"):
        return None
    tb = _TRACEBACK(raised)
    if tb is None or tb.tb_frame.f_back is not None:
        return None
    code = tb.tb_frame.f_code
    if code.co_name == "<module>":
        return raised if tb.tb_frame.f_globals is objects.attributes(sys.modules.get("__main__")) else None
    return raised if code.co_name == "_run_module_as_main" else None  # python -m, a folder or an archive


def _index(value, asked):
    """A value that is one of the indices asked for; else -1."""
    indices = asked if type(asked) is list or type(asked) is tuple else (asked,)
    return value if type(value) is int and any(type(i) is int and i == value for i in indices) else -1
