"""Fail open, by the traceback rule.

torch raises "DataLoader worker is killed by signal" from a SIGCHLD handler, at whatever bytecode the main thread happens
to be, also inside ours; so may any handler of the user's, and any trace function. These must reach the program: a frame in
the traceback is theirs. So must what another thread has had raised in this one (PyThreadState_SetAsyncExc): it is of a class of
the program's, and begins in a frame of ours. All else is an error of ours, also what code of the program's has raised that was
called by us: nobody else did. Hence never a bare except, and always

    except Exception as e:
        if guard.theirs(e):
            raise
"""
import errno
import functools
import os
import signal
import sys
import types

from ..patch import wrapping

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # this package
_STDLIB = os.path.dirname(os.__file__) + os.sep

MAX_ERRORS = 20  # of ours in a process, after which the hook stops looking

count = 0
told = 0  # of them in a record
last = ""
off = False  # nothing is recorded any more in this process


def report(facts):
    """How errors of ours are written down: set by who can write."""


def stop():
    """How those who write are told that nothing follows: set by them."""


def theirs(e):
    """Reports whether e must go on to the program. Otherwise it is counted as ours."""
    tb, handlers, frame = _traceback(e), None, None
    while tb is not None:
        frame = tb.tb_frame
        if not frame.f_code.co_filename.startswith(_HERE):
            if handlers is None:
                handlers = _handlers()
            if None in handlers or frame.f_code in handlers or _interrupts(frame):
                return True
        tb = tb.tb_next
    if frame is not None and _callable_by_us(frame.f_code.co_filename) and _of_program(type(e)):
        return True
    _ours(e)
    return False


# What the interpreter itself has of an exception: a class of the user's may have properties of these names.
_traceback, _args, _called = BaseException.__traceback__.__get__, BaseException.args.__get__, type.__dict__["__name__"].__get__
_mro, _members = [type.__dict__[n].__get__ for n in ("__mro__", "__dict__")]
_FREE = ("builtins", "torch", "numpy", "dptrace_hook")  # modules whose exceptions may come out of C that we have called

wrapping.guard["theirs"] = theirs


def closing(call):
    """A function of ours that others call, without its errors: also as the interpreter ends, when the names of modules are None."""
    judge, finalizing = theirs, sys.is_finalizing

    def guarded(*args):
        try:
            return call(*args)
        except Exception as e:
            reason = None
            try:
                if judge(e):
                    reason = e
            except Exception as other:  # the program's recursion limit may leave no room to judge
                try:
                    if not finalizing() and judge(other):
                        reason = other
                except Exception:
                    pass
            if reason is e:
                raise
            if reason is not None:
                raise reason
    return guarded


def _callable_by_us(file):
    """Reports whether a file is ours, the standard library's or torch's."""
    if file.startswith((_HERE, "<frozen ")):
        return True
    if file.startswith(_STDLIB):
        return "-packages" + os.sep not in file
    torch = _file("torch")
    return torch is not None and file.startswith(os.path.dirname(torch) + os.sep)


def _file(name):
    """Of a module that is loaded; None."""
    module = sys.modules.get(name)
    file = module.__dict__.get("__file__") if type(module) is types.ModuleType else None
    return file if type(file) is str else None


def _interrupts(frame):
    """Reports whether a frame was entered between two instructions of the one below it: a signal handler or a trace function, one
    of whose arguments that frame is. Functions that are called have arguments of their own."""
    back, code = frame.f_back, frame.f_code
    if back is None:
        return False
    n = code.co_argcount + code.co_kwonlyargcount
    known = frame.f_locals
    for name in code.co_varnames[:n + (code.co_flags & 4 > 0) + (code.co_flags & 8 > 0)]:
        value = known.get(name)
        if value is back or type(value) is tuple and any(v is back for v in value):
            return True
    return False


def _of_program(cls):
    """Reports whether a class of exceptions is neither Python's nor torch's nor NumPy's."""
    module = _members(cls).get("__module__")
    top = module.partition(".")[0] if type(module) is str else "builtins"
    file = _file(top)
    return top == "__main__" or top not in _FREE and file is not None and (not file.startswith(_STDLIB) or "-packages" + os.sep in file)


def _handlers():
    """The code of all signal handlers written in Python; None among them for one that cannot be told."""
    found = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        cls = type(handler)
        if handler is None or issubclass(cls, int) or cls is types.BuiltinFunctionType:
            continue  # not Python's: it cannot be in a traceback
        if cls is functools.partial:
            handler = handler.func
        if type(handler) is types.MethodType:
            handler = handler.__func__
        elif type(handler) is not types.FunctionType:
            handler = next((_members(k)["__call__"] for k in _mro(type(handler)) if "__call__" in _members(k)), None)
        found.add(handler.__code__ if type(handler) is types.FunctionType else None)
    return found


def none_left(e):
    """Reports whether a file could not be opened because the program has all descriptors in use: no error of ours."""
    return type(e) is OSError and e.errno in (errno.EMFILE, errno.ENFILE)


def _ours(e):
    global count, last
    count += 1
    tb, args = _traceback(e), _args(e)
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    text = args[0] if args and type(args[0]) is str else ""
    file, line = (os.path.basename(tb.tb_frame.f_code.co_filename), tb.tb_lineno) if tb is not None else ("?", 0)
    last = "%s at %s:%d: %s" % (_called(type(e)), file, line, text[:200])
    if count in (1, MAX_ERRORS):
        tell()
    if count >= MAX_ERRORS:
        give_up()


def tell():
    """Writes how many there were; of some of them only as the process ends."""
    global told
    if count == told or off:
        return
    told = count
    try:
        report({"count": count, "last": last, "disabled": count >= MAX_ERRORS})
    except Exception as e:
        if not sys.is_finalizing() and theirs(e):
            raise
        give_up()  # born and dead right here: reporting an error of ours must not make another


def give_up():
    global off
    off = True
    try:
        stop()
    except Exception:  # as above
        pass


def after_fork():
    """In the child: errors of the parent's are the parent's. One that has given up has children that have."""
    global count, told, last
    count, told, last = 0, 0, ""
