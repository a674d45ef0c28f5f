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
from ..read import attributes, chains, heap, identity, modes, objects, slots
from . import children, collectives, copies, dist, failures, fetches, iterators, processes, steps, training

_state = {"fork": None, "tasks": 0}


def watch():
    from multiprocessing.process import BaseProcess
    os.register_at_fork(before=guard.closing(forking), after_in_child=guard.closing(forked))
    atexit.register(guard.closing(ended))
    children.watch_signals()
    wrapping.wrap(BaseProcess, "run", runs, has_run, has_failed)
    processes.watch(BaseProcess)


def forking():
    """In the parent of any os.fork()."""
    heap.before_fork(not under_multiprocessing())
    process = processes.being_forked(wrapping.caller())
    if process is not None:
        processes.before_fork(process)


def forked():
    """In the child of any os.fork()."""
    ring.after_fork("fork")
    guard.after_fork()
    slots.after_fork()
    heap.after_fork()
    dist.after_fork()
    collectives.after_fork()
    identity.after_fork()
    attributes.after_fork()
    chains.after_fork()
    modes.after_fork()
    steps.after_fork()
    training.after_fork()
    iterators.after_fork()
    fetches.after_fork()
    copies.after_fork()
    _state["fork"], _state["tasks"] = None, 0
    if not under_multiprocessing():  # those say what they are when they run
        _state["fork"] = slots.Child()
    processes.after_fork(wrapping.caller())


def under_multiprocessing():
    """Reports whether a multiprocessing.Process is being forked."""
    frame = sys._getframe(1)
    while frame is not None:
        if processes.launches(frame):
            return True
        frame = frame.f_back
    return False


def runs(args, kwargs):
    """Before multiprocessing.Process.run, in the child. DataLoader, Pool and Executor children are known by what they run."""
    target = processes.name_of(objects.attributes(args[0]).get("_target"))
    if target in processes.LIBRARYS_OWN:
        return None
    ring.ring.kind = "fork"
    return slots.Child()


def has_run(child, result, args, kwargs):
    process_ends(child, True)


def has_failed(child, raised, args, kwargs):
    """multiprocessing prints it before it ends the process."""
    collectives.ended()
    failures.ended(raised)
    process_ends(child, issubclass(type(raised), SystemExit))


def process_ends(child, orderly):
    if child is not None:
        processes.ends()
        child.end()
        if orderly:
            children.ended()
        iterators.process_ends()
        copies.ended()
        ring.ring.close()


def ended():
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
        copies.ended()
        if not children.awaited():
            ring.ring.close()
        elif ring.ring.open and not ring.ring.dead:
            ring.ring.count()


def serves(results):
    """Before the loop of a Pool's or an Executor's child: each result that it sends is a task done. A ThreadPool's is a thread of
    the program's own process, and its queue an object of C."""
    if threading.current_thread() is not threading.main_thread():
        return
    ring.ring.kind = "task"
    watched = slots.Slots(0, 0, -1)
    watched.begin(slots.FORK)

    def sending(args, kwargs):
        """Before it is sent: then the parent may end this process at once."""
        _state["tasks"] += 1
        watched.globals_(slots.TASK, _state["tasks"])
        watched.look(slots.TASK, _state["tasks"], 0)
    results.put = wrapping.around(results.put, before=sending)


def watch_pool(module):
    wrapping.wrap(module, "worker", before=lambda args, kwargs: serves(args[1] if len(args) > 1 else kwargs["outqueue"]))


def watch_executor(module):
    wrapping.wrap(module, "_process_worker", before=lambda args, kwargs: serves(args[1] if len(args) > 1 else kwargs["result_queue"]))
