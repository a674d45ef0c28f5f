"""Replaces functions and methods by wrappers, which call ours before and after: see twin.Around."""
import os
import sys
import types

from . import preceding, twin
from .load import native

_members = type.__dict__["__dict__"].__get__
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep  # this package

# theirs(e) of the guard, which sets it: whether an exception of a callback must reach the program.
guard = {"theirs": None}


def around(original, before=None, after=None, failed=None):
    """A wrapper of a function or any other callable: before(args, kwargs) gives a token; after(token, result, args, kwargs);
    failed(token, raised, args, kwargs). kwargs is None where there are none."""
    return native.Around(original, before, after, failed, guard["theirs"])


def wrap(owner, name, before=None, after=None, failed=None, traced=False):
    """Replaces owner.name by a wrapper of it, once. traced: compilers of torch may trace it, which know functions of Python only."""
    is_class = issubclass(type(owner), type)  # one of the program's may have a metaclass
    original = (_members(owner) if is_class else owner.__dict__).get(name)
    if original is None or original_of(original) is not None:
        return
    make = twin if traced else native
    (type.__setattr__ if is_class else setattr)(owner, name, make.Around(original, before, after, failed, guard["theirs"]))


def precede(owner, name, before, traced):
    """Calls before(args, kwargs) as owner.name begins: of a function of Python that compilers of torch may trace (traced) in its own
    frame, with what is given by name among args where its definition has it so."""
    original = owner.__dict__.get(name)
    if original is not None and not (traced and preceding.precede(original, around(_nothing, before=before), guard["theirs"])):
        wrap(owner, name, before=before, traced=traced)


def _nothing(*args, **kwargs):
    pass


def wrap_decorated(f, file, variable, before=None, after=None, failed=None):
    """Wraps what a decorator's function calls, by the variable of its closure: f stays what it is, also to compilers that know it,
    and no frame is added. False: f is no function of a file whose name ends so, or has no such variable."""
    code = f.__code__ if type(f) is types.FunctionType else None
    if code is None or not code.co_filename.endswith(file) or variable not in code.co_freevars:
        return False
    cell = f.__closure__[code.co_freevars.index(variable)]
    if original_of(cell.cell_contents) is None:
        cell.cell_contents = around(cell.cell_contents, before, after, failed)
    return True


def original_of(f):
    """What a wrapper of ours wraps; None for anything else."""
    found = native.original_of(f)
    return twin.original_of(f) if found is None else found


def caller(preceded=None):
    """The frame that called a wrapper of ours, or the first outside of this package from here on; None: there is none.
    preceded: the name of a function that may have been made to call us, whose caller it is then."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name == preceded:
        frame = frame.f_back
    return frame


def dress(new, original):
    """Makes a function pass for another."""
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(new, attribute, getattr(original, attribute))
        except AttributeError:
            pass
    new.__wrapped__ = original
    return new
