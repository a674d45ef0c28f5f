"""How much of a loader is pickled for each worker: under spawn and forkserver, with every pass."""
import io
import os
import time
from _thread import _local

from ..patch import wrapping
from ..record import guard
from ..record.ring import mono


class Starting(_local):
    # id of a worker's Process -> (bytes, ns without those in which it waited for a processor, ns of CPU time), while this thread
    # starts the workers of a loader
    found = None


starting = Starting()


def watch():
    from multiprocessing import reduction
    wrapping.wrap(reduction, "dump", dumping, dumped)


def dumping(args, kwargs):
    """Before multiprocessing.reduction.dump(obj, file, protocol=None)."""
    return None if starting.found is None or len(args) < 2 else (size(args[1]), clocks())


def dumped(begun, result, args, kwargs):
    if begun is None:
        return
    (begin, before), after = begun, clocks()
    cpu = max(after[0] - before[0], 1)
    starting.found[id(args[0])] = (size(args[1]) - begin, max(after[1] - before[1], cpu), cpu)


def size(file):
    return file.tell() if type(file) is io.BytesIO else 0


def clocks():
    """Nanoseconds: CPU time of this thread; the time without what it was ready to run and had no processor (schedstats, if there are)."""
    try:
        fd = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            waited = int(os.read(fd, 64).split()[1])
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError) as e:
        if guard.theirs(e):
            raise
        waited = 0
    return time.thread_time_ns(), mono() - waited
