"""What this process does to others: the signals that it sends, and what it learns of children that ended badly, and whether
the program looks at it. Of a child that ends with 0 nothing is written.

Whether a result is used says the caller's bytecode: what comes after the call. Nobody can say so where a library waits for the child,
where the program gets what the child prints, or may be told by it through a queue or the like.
"""
import functools
import opcode
import os
import sys
import types
from itertools import islice
from _thread import get_ident

from ..patch import wrapping
from ..record import guard, ring
from ..read import objects
from ..read.notes import Notes

_OPS = opcode.opmap
_CACHE, _POP, _CONST = _OPS.get("CACHE", -1), _OPS["POP_TOP"], _OPS["LOAD_CONST"]
_NONE = {op for name, op in _OPS.items() if name.startswith("POP_JUMP") and name.endswith("NONE")}  # Python >= 3.11
_IS = {_OPS[name] for name in ("IS_OP", "COMPARE_OP") if name in _OPS}
_MAX_TOLD = 4096

after_end = None  # asked after the status of each multiprocessing.Process that has ended is learned

_told = set()
_last = {}  # by thread: (pid, exit code) of the child that ended badly last, of which a function of subprocess has learned
_pids = Notes()  # of a CompletedProcess its pid
_mute = Notes()  # of a multiprocessing.Process: mute() as it was made


def write(facts):
    if ring.ring.pid != os.getpid():  # forked where torch is not, so nobody has told the ring
        ring.after_fork("fork")
        _told.clear()
    if not ring.ring.closed:
        ring.put_json(ring.ACT, facts)


def used(frame):
    """Reports whether a caller does anything with what it gets: more than to throw it away or to ask whether it is None."""
    code, at = frame.f_code.co_code, frame.f_lasti + 2
    while at < len(code) and code[at] == _CACHE:
        at += 2
    if at + 2 >= len(code):
        return True
    if code[at] == _CONST and code[at + 2] in _IS:
        return frame.f_code.co_consts[code[at + 1]] is not None
    return code[at] != _POP and code[at] not in _NONE


def inside(frame):
    """Reports whether a caller is the module that has a status in its hands to give it to somebody else."""
    name = objects.plain(frame.f_globals).get("__name__")
    return type(name) is str and (name in ("subprocess", "os") or name.startswith(("multiprocessing.", "dptrace_hook")))


def ours(frame):
    """Reports whether it is code of the program's own that waits, if need be through subprocess and the like."""
    while frame is not None and inside(frame):
        frame = frame.f_back
    return frame is not None and not objects.library(objects.plain(frame.f_globals).get("__name__"))


def learned(pid, code, read, by, begin=0):
    """A child's status that is no good. read: whether the program looked at it, None: nobody knows. begin: of a child whose pid
    nobody knows."""
    key = (pid, begin, read)
    if key in _told or len(_told) >= _MAX_TOLD:
        return
    _told.add(key)
    write({"op": "status", "pid": pid, "exit_code": code, "read": {True: "yes", False: "no"}.get(read, ""), "by": by, "begin_ns": begin})


def got(pid, code, frame, by, heard):
    """A caller got a status. heard: whether the program may know of another way how it went."""
    if type(code) is not int or code == 0 or type(pid) is not int:
        return
    within = inside(frame)
    if within:
        if frame.f_code.co_name == "__del__":
            return  # the object goes, and looks whether its child is gone
        _last[get_ident()] = pid, code
    read = frame.f_code.co_name in ("check_returncode", "__repr__") if within else used(frame)
    learned(pid, code, read or (None if heard or not ours(frame) else False), by)


def captured(waited):
    """Reports whether the program gets what a child prints."""
    d = objects.attributes(waited)
    return d.get("stdout") is not None or d.get("stderr") is not None


def _asked(by):
    """After Popen.wait() and Popen.poll()."""
    def asked(_, code, args, kwargs):
        got(objects.attributes(args[0]).get("pid"), code, wrapping.caller(), by, captured(args[0]))
    return asked


def _through(by):
    """Around call(), check_call() and run(), which have a Popen of their own."""
    def begins(args, kwargs):
        _last.pop(get_ident(), None)

    def failed(_, raised, args, kwargs):
        here = get_ident()
        if objects.called(type(raised)) == "CalledProcessError" and here in _last:
            learned(*_last.pop(here), True, by)

    def returned(_, result, args, kwargs):
        here, frame = get_ident(), wrapping.caller()
        if here in _last and not inside(frame) and used(frame):
            pid, code = _last.pop(here)
            if type(result) is int and result == code:
                learned(pid, code, True, by)
            else:
                _pids.put(result, pid)
    return begins, returned, failed


def _returncode(cls, pid_of, by):
    """A property in place of an attribute, which stays where it is: in the instance's dictionary. All that it needs is bound to it:
    Popen.__del__ asks for it, also as the interpreter ends."""
    own, called, ends = cls.__dict__["__dict__"].__get__, objects.called, sys.is_finalizing
    tell = guard.closing(lambda self, code: got(pid_of(self), code, wrapping.caller(), by, captured(self)))

    def read(self):
        try:
            code = own(self)["returncode"]
        except KeyError:
            raise AttributeError("'%s' object has no attribute 'returncode'" % called(type(self))) from None
        if code and not ends():  # then what got() needs may be gone; and it is Popen.__del__ that asks
            tell(self, code)
        return code

    def write_(self, code):
        own(self)["returncode"] = code

    def delete(self):
        try:
            del own(self)["returncode"]
        except KeyError:
            raise AttributeError("returncode") from None
    return property(read, write_, delete)


def watch_subprocess(module):
    """subprocess was imported."""
    if "returncode" in module.Popen.__dict__:
        return
    for name in ("wait", "poll"):
        wrapping.wrap(module.Popen, name, after=_asked("Popen.%s" % name))
    for name in ("call", "check_call", "run"):
        wrapping.wrap(module, name, *_through("subprocess.%s" % name))
    module.Popen.returncode = _returncode(module.Popen, lambda self: objects.attributes(self).get("pid"), "Popen.returncode")
    module.CompletedProcess.returncode = _returncode(module.CompletedProcess, _pids.of, "CompletedProcess.returncode")


def _status(process):
    """(pid, exit code) of a multiprocessing.Process that has ended, without reaping it."""
    d = objects.attributes(objects.attributes(process).get("_popen"))
    return d.get("pid"), d.get("returncode")


_MOST = 300  # things that are looked at of one Process


def mute(process):
    """Reports whether a multiprocessing.Process has nothing through which it could tell its parent anything: no queue, pipe, event or
    shared value among its arguments (which it forgets as it starts), its attributes, and what its functions use."""
    rest, seen = [v for k, v in objects.attributes(process).items() if k not in _STANDARD], set()
    function = objects.attributes(process).get("_target")
    if type(function) is types.FunctionType and objects.library(function.__module__):
        return False  # a worker of torch's, or the like
    rest.append(objects.member(type(process), "run"))
    while rest:
        thing = rest.pop()
        if id(type(thing)) in objects.ATOMS or id(thing) in seen:
            continue
        seen.add(id(thing))
        if len(seen) > _MOST or objects.module(type(thing)).startswith(_CHANNELS):
            return False
        rest.extend(islice(_inside(thing), _MOST))
    return True


def was_mute(process):
    """The same of one that has ended: by its arguments when it was made, and by what it was given since."""
    return _mute.of(process) is True and mute(process)


def _inside(thing):
    """What a thing is made of, or uses."""
    kind = type(thing)
    if id(kind) in objects.SEQUENCES:
        return thing
    if id(kind) in objects.DICTS:
        return thing.values()
    if kind is types.FunctionType:
        return _uses(thing)
    if kind is types.MethodType:
        return thing.__func__, thing.__self__
    if kind is functools.partial:
        return objects.partial(thing)
    module = objects.module(kind)
    return () if objects.library(module) and module not in ("types", "argparse") else objects.attributes(thing).values()


# Names under which a Process has what says nothing of the program; and modules of what processes talk through.
_STANDARD = {"_identity", "_config", "_parent_pid", "_parent_name", "_popen", "_closed", "_name"}
_CHANNELS = ("multiprocessing.queues", "multiprocessing.connection", "multiprocessing.managers", "multiprocessing.synchronize",
             "multiprocessing.sharedctypes", "multiprocessing.shared_memory", "multiprocessing.heap", "torch.multiprocessing", "_multiprocessing",
             "_socket", "socket", "mmap")


def _uses(function):
    """What a function of the program's has in its closure, in its defaults, and in those globals that its code names."""
    if objects.library(function.__module__):
        return
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:
            pass  # it is empty
    yield from function.__defaults__ or ()
    known = objects.plain(function.__globals__)
    for name in function.__code__.co_names:
        if name in known:
            yield known[name]


def watch_process(module):
    """multiprocessing.process was imported."""
    base = module.BaseProcess

    def joined(_, result, args, kwargs):
        pid, code = _status(args[0])
        if code and type(pid) is int:
            learned(pid, code, False if was_mute(args[0]) and ours(wrapping.caller()) else None, "Process.join")
        if code is not None and after_end is not None:
            after_end(args[0])

    def exitcode(_, code, args, kwargs):
        frame = wrapping.caller()
        if code and not inside(frame):
            got(_status(args[0])[0], code, frame, "Process.exitcode", not was_mute(args[0]))
        if code is not None and after_end is not None:
            after_end(args[0])
    def made(_, result, args, kwargs):
        _mute.put(args[0], mute(args[0]))
    wrapping.wrap(base, "__init__", after=made)
    wrapping.wrap(base, "join", after=joined)
    original = base.__dict__["exitcode"]
    if wrapping.original_of(original.fget) is None:
        base.exitcode = property(wrapping.around(original.fget, after=exitcode), None, None, original.__doc__)


def ran(status, begin):
    """os.system() has returned."""
    caller = wrapping.caller()
    read = used(caller) or (False if ours(caller) else None)
    learned(0, -(status & 0x7f) if status & 0x7f else status >> 8, read, "os.system", begin)


def watch_signals():
    """os.kill and os.killpg, through which multiprocessing, subprocess and psutil send signals, too. Told before: the target
    may be this process."""
    def sends(kill, group):
        def sending(args, kwargs):
            if len(args) == 2 and type(args[0]) is int and issubclass(type(args[1]), int) and int.__int__(args[1]):
                write({"op": "signal", "pid": -args[0] if group else args[0], "signal": int.__int__(args[1]), "by": kill})
        return sending
    for name, group in (("kill", False), ("killpg", True)):
        wrapping.wrap(os, name, before=sends("os." + name, group))


def awaited():
    """Reports whether multiprocessing has children that it waits for as this process ends: how they end is still to be learned."""
    module = sys.modules.get("multiprocessing.process")
    for process in list(module.__dict__.get("_children", ())) if module is not None else ():
        d = objects.attributes(process)
        target, config = d.get("_target"), d.get("_config")
        worker = type(target) is type(awaited) and target.__name__ == "_worker_loop"
        if not worker and not (type(config) is dict and config.get("daemon") is True):
            return True
    return False


def ended():
    """This process ends in good order, whatever its exit code will be: nothing that nobody caught ended it."""
    write({"op": "end"})
