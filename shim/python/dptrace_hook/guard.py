"""Fail open, by the traceback rule.

torch raises "DataLoader worker is killed by signal" from a SIGCHLD handler, at whatever bytecode the main thread happens
to be, also inside ours; so may any handler of the user's. An exception is ours to swallow only if every frame of
its traceback is in this package; the others must reach the program. Hence never a bare except, and always

    except Exception as e:
        if guard.theirs(e):
            raise
"""
import os

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep

MAX_ERRORS = 20  # of ours in a process, after which the hook stops looking

count = 0
last = ""
off = False  # nothing is recorded any more in this process


def theirs(e):
    """True if e must go on to the program. Otherwise it is counted as ours."""
    tb = e.__traceback__
    while tb is not None:
        if not tb.tb_frame.f_code.co_filename.startswith(_HERE):
            return True
        tb = tb.tb_next
    _ours(e)
    return False


def _ours(e):
    global count, last, off
    count += 1
    tb = e.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    text = e.args[0] if e.args and type(e.args[0]) is str else ""
    last = "%s at %s:%d: %s" % (type(e).__name__, os.path.basename(tb.tb_frame.f_code.co_filename) if tb else "?", tb.tb_lineno if tb else 0, text[:200])
    if count >= MAX_ERRORS:
        off = True
    if count in (1, MAX_ERRORS):
        try:
            from . import ring
            ring.put_json(ring.ERRORS, {"count": count, "last": last, "disabled": off})
        except Exception:  # born and dead right here: reporting an error of ours must not make another
            off = True
