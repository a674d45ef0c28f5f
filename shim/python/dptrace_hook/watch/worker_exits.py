"""Whether a worker ended because its parent had asked it to. Looked at right before the parent asks, without reaping:
the exit status stays for torch and multiprocessing."""
import os
import time

from ..record.ring import mono
from ..read import objects

# To wait for workers that the kernel is about to end, as the program ends: a few ms, but on a busy machine. DataLoader waits for
# them itself, for 5 s, as it shuts down.
DYING_NS = 2 * 10**9
_EXITING = 0x4  # PF_EXITING of Linux' include/linux/sched.h, in field 9 of /proc/PID/stat


def asked(process):
    """no: the worker has ended by itself, or is about to; yes: it lives, and is about to be asked; "": nobody knows."""
    popen = objects.attributes(process).get("_popen")
    if popen is None:
        return ""
    if status(process) is not None:
        return "no"
    try:
        with open("/proc/%d/stat" % popen.pid, "rb") as f:
            fields = f.read().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "no" if os.path.exists("/proc/self/stat") else ""
    # What makes its parent shut down may be a socket that it closed as it ended, a moment before it can be waited for.
    return "no" if fields[0] in (b"Z", b"X") or int(fields[6]) & _EXITING else "yes"


def status(process):
    """The exit code of a worker that has ended, as multiprocessing gives it; None: it has not, or nobody here knows.
    Process.exitcode would reap it."""
    popen = objects.attributes(process).get("_popen")
    if popen is None:
        return None
    if popen.returncode is not None:
        return popen.returncode
    try:
        found = os.waitid(os.P_PID, popen.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # the fork server's child
        return None
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def died(iterator, waits=False):
    """After next() has failed, and as the program ends: the workers that have ended by themselves, [(number, exit code)]. Their
    parent may end with the error, and never look at them again. One whose socket has just been closed can be waited for in a
    moment: not after next(), where torch's handler of SIGCHLD would raise in a frame of ours what it raises later without us."""
    found, deadline = [], mono() + (DYING_NS if waits else 0)
    for i in sorted(iterator.__dict__.get("_dptrace_alive", ())):
        process = iterator._workers[i]
        if asked(process) != "no":
            continue
        note(iterator, i)
        code = status(process)
        while code is None and process._popen.method != "forkserver" and mono() < deadline:  # not our child: nobody will know
            time.sleep(0.001)
            code = status(process)
        if code is not None:
            found.append((i, code))
    return found


def note(iterator, number):
    """Before the first request to worker `number` to end; later ones change nothing."""
    d = iterator.__dict__
    if number in d.get("_dptrace_alive", ()):
        d["_dptrace_asked"].setdefault(number, asked(iterator._workers[number]))
