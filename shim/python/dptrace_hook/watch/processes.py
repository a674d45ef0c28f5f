"""Processes that the program forks itself, by multiprocessing.Process or torch.multiprocessing.start_processes: the large
containers that they inherit with their target and its arguments, how much of them each copies, and whether the parent still
holds them when the process has ended. If it does not, the pages that the process has to itself are no second copy.
"""
import functools
import os
import sys
import types
import weakref

from ..patch import wrapping
from ..record import guard, ring
from ..record.ring import cpu, mono
from ..read import addresses, discover, extents, objects, pagemap
from ..read.notes import Notes
from . import children, steps

_SHARE = 50  # of its time a process spends one part on this, after the first few
_FIRST = 8  # so many forks are looked at whatever it takes
_MAX_FRAMES = 64
_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: the frame of a function
# With these a function may keep the dictionary that f_locals is up to 3.12.
_SNAPSHOTS = {"locals", "vars", "dir", "eval", "exec", "f_locals"}
LIBRARYS_OWN = ("_worker_loop", "worker", "_process_worker")  # what children of a DataLoader, a Pool and an Executor run
_BASE = {"_identity", "_config", "_parent_pid", "_parent_name", "_popen", "_closed", "_target", "_args", "_kwargs", "_name"}

_inherited = Notes()  # of a Process what it inherits: extents.Inherited
_state = {"forks": 0, "spent": 0, "since": mono()}


class Child:
    """A process that looks at itself as a DataLoader's worker does. Its fetches: the batches that its own loaders deliver."""
    number, passes = -1, 0

    def __init__(self, inherited):
        self.fetches, self.extents = 0, inherited
        self.look("begin")

    def look(self, when):
        if self.extents is not None:
            self.extents.write(0, self, when)

    def took(self):
        self.fetches += 1
        if self.extents is not None:
            self.extents.look(self)


here = {"child": None}  # Child, in a process of this kind


def begins(child):
    here["child"] = steps.now.child = child


def watch(base):
    # BaseProcess._bootstrap, in the child: also of classes with a run() of their own.
    wrapping.wrap(base, "_bootstrap", None, lambda *_: ends(), lambda *_: ends())
    children.after_end = ended


def launches(frame):
    """Reports whether this is where multiprocessing forks a Process."""
    code = frame.f_code
    return code.co_name == "_launch" and code.co_filename.endswith("popen_fork.py")


def being_forked(frame):
    """The multiprocessing.Process that a caller of os.fork() makes; None: it makes another kind of process."""
    return objects.locals_of(frame).get("process_obj") if launches(frame) else None


def before_fork(process):
    """In the parent: leaves for the process what it inherits."""
    target = objects.attributes(process).get("_target")
    if guard.off or ring.ring.kind == "worker" or name_of(target) in LIBRARYS_OWN:
        return
    t0, c0, s = mono(), cpu(), _state
    s["forks"] += 1
    if s["forks"] > _FIRST and s["spent"] * _SHARE > t0 - s["since"]:
        return
    what, roots = asked(process)
    marks = {}
    found = extents.large(roots, addresses.now() + extents.MAX_NS, marks)
    if found:
        inherited = extents.Inherited([extents.number(e, 0, 0, what) for e in found], found)
        inherited.marks = {i: (n, marks[i]) for e, n in zip(found, inherited.numbers) for i in e.key[::2]}
        inherited.target = weakref.ref(target) if type(target) is types.FunctionType else None
        _inherited.put(process, inherited)
    s["spent"] += mono() - t0
    ring.ring.hook_ns += cpu() - c0


def asked(process):
    """(what the process runs, [(object, path, role)] that it reaches by that)."""
    d, cls = objects.attributes(process), type(process)
    target, args, kwargs = d.get("_target"), d.get("_args"), d.get("_kwargs")
    if name_of(target) == "_wrap" and _module(target) == "torch.multiprocessing.spawn" and type(args) is tuple and len(args) > 2:
        target, args = args[0], args[2]  # (fn, index, args, error file)
    roots = [(a, "args[%d]" % i, "dataset") for i, a in enumerate(args[:discover.MAX_ITEMS])] if type(args) is tuple or type(args) is list else []
    if type(kwargs) is dict:
        roots += [(a, "kwargs[%s]" % objects.key(k), "dataset") for k, a in list(kwargs.items())[:discover.MAX_ITEMS]]
    roots += [(a, "self.%s" % k, "dataset") for k, a in list(d.items())[:discover.MAX_ITEMS] if type(k) is str and k not in _BASE]
    if type(target) is types.MethodType:
        roots += [(target.__self__, "self", "dataset"), (target.__func__, name_of(target), "dataset")]
    elif target is not None:
        roots.append((target, name_of(target), "dataset"))
    if not objects.library(objects.module(cls)):  # a class of the program's, with a run() of its own
        roots += [(f, "%s.%s" % (objects.qualname(k), n), "dataset") for k in objects.mro(cls) if not objects.library(objects.module(k))
                  for n, f in list(objects.members(k).items())[:discover.MAX_ITEMS] if type(f) is types.FunctionType]
        return objects.name(cls), roots
    return "%s.%s" % (objects.main(_module(target)), name_of(target)), roots


def _function(target):
    """What a bound method, a partial or a wrapper of ours calls."""
    for _ in range(8):
        if wrapping.original_of(target) is not None:
            target = wrapping.original_of(target)
        elif type(target) is types.MethodType:
            target = target.__func__
        elif type(target) is functools.partial:
            target = objects.partial(target)[0]
        else:
            break
    return target


def _named(target):
    """Of a function or class itself, of another callable object its class."""
    target = _function(target)
    return target if type(target) is types.FunctionType or type(target) is types.BuiltinFunctionType or \
        issubclass(type(target), type) else type(target)


def name_of(target):
    """The name of what a process runs, without its module."""
    f = _named(target)
    return objects.qualname(f) if issubclass(type(f), type) else f.__qualname__


def _module(target):
    f = _named(target)
    return objects.module(f) if issubclass(type(f), type) else objects.main(f.__module__)


def after_fork(frame):
    """In the child of any os.fork()."""
    begins(None)
    _state["forks"], _state["spent"], _state["since"] = 0, 0, mono()
    process = being_forked(frame)
    inherited = _inherited.of(process) if process is not None else None
    if inherited is not None:
        looks = pagemap.of_parent(inherited)
        if looks is not None:
            begins(Child(looks))


def ends():
    """The process is about to end: its last look."""
    try:
        child = here["child"]
        begins(None)
        if child is not None:
            child.look("end")
    except Exception as e:
        if guard.theirs(e):
            raise


def ended(process):
    """In the parent, which has just learned that the process has ended: which of the containers it still holds itself."""
    inherited = _inherited.of(process)
    if inherited is None or inherited.pid != os.getpid():
        return
    _inherited.forget(process)
    t0, c0, s = mono(), cpu(), _state
    held = _held(inherited, wrapping.caller())
    looks = pagemap.Extents(inherited) if held else None
    if looks is not None:
        looks.write(0, _Parent(), "held", held)
    s["spent"] += mono() - t0
    ring.ring.hook_ns += cpu() - c0


class _Parent:
    """As pagemap.Extents wants it, for a single look."""
    number, fetches, extents = -1, 0, None


def _held(inherited, frame):
    """The numbers of the extents whose containers can be reached from what this thread runs, or from the target: those that
    hold the same as before."""
    held = set()

    def taken(obj, cls, path):
        number, mark = inherited.marks.get(id(obj), (0, None))
        if mark is None:
            return False
        n = addresses.length(obj, cls)
        if n >= 0 and addresses.mark(obj, cls, n) == mark:
            held.add(number)
        return id(cls) in addresses.EXACT

    walk = extents.Walk(taken)
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        items = _variables(frame)
        walk.keep.append(items)
        for name, value in items:
            walk.add(value, name, "dataset", None)
        if not objects.library(objects.plain(frame.f_globals).get("__name__")):
            walk.code_names(frame.f_code, objects.plain(frame.f_globals))
        frame = frame.f_back
    target = inherited.target() if inherited.target is not None else None
    walk.add(target, "target", "dataset", None)
    walk.run()
    return held


def _variables(frame):
    """Of a frame of a function a copy is taken, and the snapshot that it comes from emptied: not where the function may have it."""
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED:  # of a module, whose dictionary it is
        return list(frame.f_locals.items())[:8 * discover.MAX_ITEMS]
    if sys.version_info < (3, 13) and not _SNAPSHOTS.isdisjoint(code.co_names):
        return []
    return list(objects.locals_of(frame).items())[:discover.MAX_ITEMS]
