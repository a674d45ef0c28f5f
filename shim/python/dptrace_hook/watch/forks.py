"""Processes that are no DataLoader workers: bare forks, multiprocessing.Pool and Executor children.

Their generators are recorded at the fork, after each task, and at the end if Python gets to end: Pool children are
killed by SIGTERM and os._exit() skips everything (measured: Finalize ran in 0 of 4, register_after_fork in 3 of 4).
"""
import atexit
import os
import sys
import threading

from ..patch import wrapping
from ..record import guard, ring
from ..read import attributes, heap, identity, modes, objects, slots
from . import children, collectives, dist, failures, iterators, processes, steps, training

_state = {"fork": None, "tasks": 0}


def watch():
    from multiprocessing.process import BaseProcess
    os.register_at_fork(before=forking, after_in_child=forked)
    atexit.register(ended)
    children.watch_signals()
    wrapping.wrap(BaseProcess, "run", wrapping.around(process_run))
    processes.watch(BaseProcess)


def forking():
    """In the parent of any os.fork()."""
    try:
        heap.before_fork(not under_multiprocessing())
        process = processes.being_forked(sys._getframe(1))
        if process is not None:
            processes.before_fork(process)
    except Exception as e:
        if guard.theirs(e):
            raise


def forked():
    """In the child of any os.fork()."""
    try:
        ring.after_fork("fork")
        guard.after_fork()
        slots.after_fork()
        heap.after_fork()
        dist.after_fork()
        collectives.after_fork()
        identity.after_fork()
        attributes.after_fork()
        modes.after_fork()
        steps.after_fork()
        training.after_fork()
        iterators.after_fork()
        _state["fork"], _state["tasks"] = None, 0
        if not under_multiprocessing():  # those say what they are when they run
            _state["fork"] = slots.Child()
        processes.after_fork(sys._getframe(1))
    except Exception as e:
        if guard.theirs(e):
            raise


def under_multiprocessing():
    """Reports whether a multiprocessing.Process is being forked."""
    frame = sys._getframe(1)
    while frame is not None:
        if processes.launches(frame):
            return True
        frame = frame.f_back
    return False


def process_run(original, self, *args, **kwargs):
    """multiprocessing.Process.run, in the child. DataLoader, Pool and Executor children are known by what they run."""
    child = None
    try:
        target = processes.name_of(objects.attributes(self).get("_target"))
        if target not in processes.LIBRARYS_OWN:
            ring.ring.kind = "fork"
            child = slots.Child()
    except Exception as e:
        if guard.theirs(e):
            raise
    orderly = True
    try:
        return original(self, *args, **kwargs)
    except BaseException as raised:  # which multiprocessing prints before it ends the process
        try:
            orderly = issubclass(type(raised), SystemExit)
            collectives.ended()
            failures.ended(raised)
        except Exception as e:
            if guard.theirs(e):
                raise
        raise
    finally:
        try:
            if child is not None:
                processes.ends()
                child.end()
                if orderly:
                    children.ended()
                iterators.process_ends()
                ring.ring.close()
        except Exception as e:
            if guard.theirs(e):
                raise


def ended():
    try:
        if ring.ring.pid == os.getpid():
            if _state["fork"] is not None:
                _state["fork"].end()
            raised = failures.uncaught()
            collectives.ended()
            if raised is not None:
                failures.ended(raised)
            else:
                children.ended()
            iterators.process_ends()
            if not children.awaited():
                ring.ring.close()
            elif ring.ring.open and not ring.ring.dead:
                ring.ring.count()
    except Exception as e:
        if guard.theirs(e):
            raise


def _serve(original, results, args, kwargs):
    """Around the loop of a Pool's or an Executor's child: each result that it sends is a task done. A ThreadPool's is a thread of
    the program's own process, and its queue an object of C."""
    if threading.current_thread() is not threading.main_thread():
        return original(*args, **kwargs)
    try:
        ring.ring.kind = "task"
        watched = slots.Slots(0, 0, -1)
        watched.begin(slots.FORK)
        put = results.put

        def shadow(*a, **k):
            try:  # before it is sent: then the parent may end this process at once
                _state["tasks"] += 1
                watched.globals_(slots.TASK, _state["tasks"])
                watched.look(slots.TASK, _state["tasks"], 0)
            except Exception as e:
                if guard.theirs(e):
                    raise
            return put(*a, **k)
        results.put = shadow
    except Exception as e:
        if guard.theirs(e):
            raise
    return original(*args, **kwargs)


def watch_pool(module):
    wrapping.wrap(module, "worker", wrapping.around(lambda original, *a, **k: _serve(original, a[1] if len(a) > 1 else k["outqueue"], a, k)))


def watch_executor(module):
    wrapping.wrap(module, "_process_worker",
               wrapping.around(lambda original, *a, **k: _serve(original, a[1] if len(a) > 1 else k["result_queue"], a, k)))
