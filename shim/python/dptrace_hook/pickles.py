"""How much of a loader is pickled for each worker: under spawn and forkserver, with every pass."""
import io
import time
from _thread import _local

from . import guard
from .ring import mono


class Starting(_local):
    found = None  # id of a worker's Process -> (bytes, ns, ns of CPU time), while this thread starts the workers of a loader


starting = Starting()


def watch():
    from multiprocessing import reduction

    from . import hooks
    hooks.wrap(reduction, "dump", dump)


def dump(original):
    """Around multiprocessing.reduction.dump(obj, file, protocol=None)."""
    def wrapper(obj, file, *args, **kwargs):
        if starting.found is None:
            return original(obj, file, *args, **kwargs)
        before = size(file)
        cpu0, t0 = time.thread_time_ns(), mono()
        result = original(obj, file, *args, **kwargs)
        t1 = mono()
        try:
            starting.found[id(obj)] = (size(file) - before, t1 - t0, max(time.thread_time_ns() - cpu0, 1))
        except Exception as e:
            if guard.theirs(e):
                raise
        return result
    return wrapper


def size(file):
    return file.tell() if type(file) is io.BytesIO else 0
