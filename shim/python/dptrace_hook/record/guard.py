"""Fail open, by the traceback rule.

torch raises "DataLoader worker is killed by signal" from a SIGCHLD handler, at whatever bytecode the main thread happens
to be, also inside ours; so may any handler of the user's. An exception is ours to swallow only if its traceback has no
frame of the program: frames of this package, and of the standard library or torch that it called, but for signal handlers.
The others must reach the program. Hence never a bare except, and always

    except Exception as e:
        if guard.theirs(e):
            raise
"""
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
    tb, handlers = e.__traceback__, None
    while tb is not None:
        code = tb.tb_frame.f_code
        if not code.co_filename.startswith(_HERE):
            if not _callable_by_us(code.co_filename):
                return True
            if handlers is None:
                handlers = _handlers()
            if None in handlers or code in handlers:
                return True
        tb = tb.tb_next
    _ours(e)
    return False


wrapping.guard["theirs"] = theirs


def _callable_by_us(file):
    """Reports whether a file is the standard library's or torch's."""
    if file.startswith("<frozen "):
        return True
    if file.startswith(_STDLIB):
        return "-packages" + os.sep not in file
    torch = getattr(sys.modules.get("torch"), "__file__", None)
    return type(torch) is str and file.startswith(os.path.dirname(torch) + os.sep)


def _handlers():
    """The code of all signal handlers written in Python; None among them for one that cannot be told."""
    found = set()
    for number in signal.valid_signals():
        handler = signal.getsignal(number)
        if handler is None or isinstance(handler, (int, signal.Handlers)) or type(handler) is types.BuiltinFunctionType:
            continue  # not Python's: it cannot be in a traceback
        if type(handler) is functools.partial:
            handler = handler.func
        if type(handler) is types.MethodType:
            handler = handler.__func__
        found.add(handler.__code__ if type(handler) is types.FunctionType else None)
    return found


def _ours(e):
    global count, last
    count += 1
    tb = e.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    text = e.args[0] if e.args and type(e.args[0]) is str else ""
    file, line = (os.path.basename(tb.tb_frame.f_code.co_filename), tb.tb_lineno) if tb is not None else ("?", 0)
    last = "%s at %s:%d: %s" % (type(e).__name__, file, line, text[:200])
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
    except Exception:  # born and dead right here: reporting an error of ours must not make another
        give_up()


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
