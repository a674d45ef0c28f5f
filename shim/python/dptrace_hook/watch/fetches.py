"""What happens inside a fetch, in a worker or (num_workers=0) in the main process."""
import os
import sys
import time
from _thread import _local, get_ident

from ..record import guard, layouts, ring
from ..record.ring import mono
from ..read import attributes, digests, heap, open_files, pagemap, slots
from ..read.quiet import Quiet
from . import failures

_FETCH = layouts.packed(layouts.FETCH_FIELDS)
MEASURED = 1  # of every eight fetches, the one in which our own time is taken


class Here(_local):
    """What the current thread is serving: threads may be workers one day."""
    worker = None  # Worker
    single = None  # (loader, pass) while a single-process iterator makes its fetcher
    stage = "fetch"
    inherited = None  # extents.Inherited, in the thread that forks a loader's workers


here = Here()


class Worker:
    """One run of torch's _worker_loop."""

    def __init__(self, number):
        self.number = number
        self.passes = -1  # fetchers made, less one; persistent workers make one per pass
        self.batch = -1  # given with the last index
        self.t_put = ring.mono()  # when the last batch was handed over
        self.put_ns = 0  # how long that took
        self.done = None  # the fetch whose batch is not handed over yet
        self.fetches = 0  # fetches of this pass so far
        self.extents = pagemap.of_parent(here.inherited)
        self.persistent, self.told = False, None  # attributes.Told
        self.budget = None  # digests.Budget
        self.cpu0, self.wrote0 = 0, -1  # ns of CPU time and bytes written as the last fetcher was made
        self.last = None  # Fetches of the pass
        self.files = open_files.Files(-1)


class Fetches:
    """What is known of one fetcher's fetches: kept in the fetcher, gone with it."""

    def __init__(self, loader, number, worker, serving, dataset, collate):
        self.loader, self.number, self.worker = loader, number, worker
        self.serving = serving  # the Worker; None in the main process
        self.live = serving is None  # the training loop runs between the fetches
        self.fetch = -1  # number of the last one
        self.t_fetch = self.t_collate = self.t_collated = 0
        self.asked = None  # of this fetch: the index, or the list of them
        self.digest_ns = self.rows_ns = 0
        self.samples = 0
        self.batched = True  # a fetch is of a list of samples: no batch_size=None
        self.digests = None  # digests.Digests
        self.slots = slots.Slots(loader, number, worker, dataset, collate)


def attach(fetcher, box, dataset, collate):
    """A fetcher was made: after worker_init_fn, before the first index. Its Fetches go to its collate's box too."""
    worker, single = here.worker, here.single
    if worker is not None:
        if worker.extents is not None:
            worker.extents.begin(worker)
        worker.passes += 1
        ended(worker)
        if worker.passes == 0:
            heap.look((0, 0, worker.number), dataset, collate, here=True)
        worker.last = fetches = Fetches(0, worker.passes, worker.number, worker, dataset, collate)
        if worker.passes == 0:
            torch = sys.modules["torch"]
            ring.put_json(ring.WORKER, {"phase": "ready", "worker": worker.number, "pid": ring.ring.pid, "seed": torch.initial_seed()})
    elif single is not None:
        fetches = Fetches(single[0], single[1], -1, None, dataset, collate)
    else:
        return
    fetches.batched = fetcher.__dict__.get("auto_collation") is not False
    fetches.digests = digests.of_pass(fetches.loader, worker)
    if worker is not None:
        worker.cpu0, worker.wrote0 = time.process_time_ns(), written() if type(fetcher).__name__ == "_IterableDatasetFetcher" else -1
    fetcher.__dict__["_dptrace"] = fetches
    box.append(fetches)
    with Quiet():
        fetches.slots.begin()
        attributes.at_fetch(fetches, dataset, collate)


def ended(worker):
    """A pass of a worker is over."""
    last, worker.last = worker.last, None
    if last is not None:
        last.slots.end(last.fetch)


def timed(box, collate):
    """The collate function with a clock before and after it. It knows the fetches by a box, not the fetcher: the fetcher
    holds it, and a cycle would keep the user's dataset alive until the collector runs."""
    own = digests.own(collate)

    def collated(data):
        fetches = box[0] if box else None
        if fetches is None:
            return collate(data)
        fetches.samples = len(data) if type(data) is list or (fetches.batched and type(data) is tuple) else 1
        fetches.t_collate = t = mono()
        if fetches.digests is not None:
            fetches.digests.look(fetches, data, t, own)
            fetches.digest_ns = mono() - t
        here.stage = "collate"
        result = None
        try:
            result = collate(data)
        finally:
            fetches.t_collated = t = mono()
            if own and fetches.digests is not None and fetches.digests.waiting is not None:
                fetches.digests.collated(fetches, result, t)
                fetches.rows_ns = mono() - t
        here.stage = "fetch"
        return result
    return collated


def fetch(original):
    """Around the fetch of either fetcher."""
    def wrapper(fetcher, *args, **kwargs):
        t_in = mono()
        fetches = fetcher.__dict__.get("_dptrace")
        if fetches is None or guard.off:
            return original(fetcher, *args, **kwargs)
        try:
            enter(fetches)
        except Exception as e:
            if guard.theirs(e):
                raise
        fetches.asked = args[0] if args else ()
        fetches.t_fetch = t0 = mono()
        try:
            data = original(fetcher, *args, **kwargs)
        except BaseException as raised:
            try:
                failed(fetches, raised, fetches.asked)
                if fetches.fetch == 0:
                    first(fetches, fetcher)
            except Exception as e:
                if guard.theirs(e):
                    raise
            raise
        t1 = mono()
        try:
            leave(fetches, fetcher, t0, t1)
            ring.ring.calls += 1
            if fetches.fetch & 7 == MEASURED:
                ring.ring.cost(t0 - t_in + mono() - t1)
        except Exception as e:
            if guard.theirs(e):
                raise
        return data
    return wrapper


def enter(fetches):
    fetches.fetch += 1
    if fetches.serving is not None:
        fetches.serving.fetches += 1
    fetches.t_collate = fetches.t_collated = fetches.digest_ns = fetches.rows_ns = 0
    here.stage = "fetch"
    if fetches.live:
        fetches.slots.before(fetches.fetch)


def leave(fetches, fetcher, t0, t1):
    number = fetches.fetch
    fetches.slots.after(number, t1 - t0)
    if number in slots.SEARCH_AFTER:
        fetches.slots.search(fetcher.__dict__.get("dataset_iter"), number)
    fetches.asked = None
    if number == 0:
        first(fetches, fetcher)
    c0, c1 = fetches.t_collate or t1, fetches.t_collated or t1
    collate_ns = max(c1 - c0 - fetches.digest_ns, 0)
    if fetches.digests is not None:
        fetches.digests.fetch(t1 - t0 - fetches.digest_ns - fetches.rows_ns, fetches.samples)
    worker = fetches.serving
    if worker is None:
        ring.put(ring.FETCH, _FETCH.pack(fetches.loader, fetches.number, -1, number, number, 0, c0 - t0, collate_ns, 0, fetches.samples),
                 t0)
        open_files.main().look()
    else:
        worker.done = (fetches, t0, c0 - t0, collate_ns)


def first(fetches, fetcher):
    """The first fetch of a worker's pass is over: what it took, from iter() of an IterableDataset on. One that has nothing to
    give may have worked for the others."""
    worker = fetches.serving
    if worker is not None and "dataset_iter" in fetcher.__dict__:
        wrote = written()
        ring.put_json(ring.WORKER, {"phase": "first", "worker": worker.number, "pid": ring.ring.pid, "pass": fetches.number,
                                    "cpu_ns": time.process_time_ns() - worker.cpu0,
                                    "written": wrote - worker.wrote0 if min(wrote, worker.wrote0) >= 0 else -1})


def written():
    """Bytes that this process has written by system calls; -1: the kernel does not say."""
    try:
        fd = os.open("/proc/self/io", os.O_RDONLY | os.O_CLOEXEC)
        try:
            for line in os.read(fd, 4096).splitlines():
                if line.startswith(b"wchar:"):
                    return int(line[6:])
        finally:
            os.close(fd)
    except (OSError, ValueError) as e:
        if guard.theirs(e):
            raise
    return -1


def handed_over(worker, batch):
    """Right before the batch of the last fetch goes to the queue: after it, its feeder thread wants the interpreter."""
    fetches, t0, fetch_ns, collate_ns = worker.done
    worker.done = None
    ring.put(ring.FETCH, _FETCH.pack(0, fetches.number, fetches.worker, batch, fetches.fetch, max(t0 - worker.t_put, 0), fetch_ns,
                                     collate_ns, worker.put_ns, fetches.samples), t0)


def failed(fetches, raised, asked):
    if issubclass(type(raised), StopIteration):
        if fetches.batched:
            failures.leftover(raised, fetches.loader, fetches.number, fetches.worker, asked)
        return
    batch = fetches.fetch if fetches.serving is None else fetches.serving.batch
    failures.write(raised, fetches.loader, fetches.number, fetches.worker, batch, here.stage, asked)


def serve(original, *args, **kwargs):
    """Around torch's _worker_loop. Of its arguments only these have kept place and meaning from 1.7 to 2.15:
    2 index_queue, 3 data_queue, 10 worker_id, 12 persistent_workers."""
    worker = None
    try:
        if len(args) > 10 and type(args[10]) is int:
            ring.ring.kind = "worker"
            worker = here.worker = Worker(args[10])
            worker.persistent = len(args) > 12 and args[12] is True
            shadow(worker, args[2], args[3])
    except Exception as e:
        if guard.theirs(e):
            raise
    try:
        return original(*args, **kwargs)
    except BaseException as raised:
        try:
            if worker is not None:
                failures.ended(raised)
        except Exception as e:
            if guard.theirs(e):
                raise
        raise
    finally:
        try:
            if worker is not None:
                if worker.extents is not None:
                    worker.extents.end(worker)
                ended(worker)
                ring.put_json(ring.WORKER, {"phase": "end", "worker": worker.number, "pid": ring.ring.pid, "pass": max(worker.passes, 0),
                                            "cpu_ns": time.process_time_ns() - worker.cpu0 if worker.cpu0 else 0})
                ring.ring.close()
        except Exception as e:
            if guard.theirs(e):
                raise


def shadow(worker, index_queue, data_queue):
    """In the two queues of a worker: which batch is asked for, and when it is handed over. The methods are shadowed on
    the instances: their types stay."""
    get, put = index_queue.get, data_queue.put
    me = get_ident()

    def shadow_get(*args, **kwargs):
        try:
            if worker.extents is not None:
                worker.extents.look(worker)
            worker.files.look()
        except Exception as e:
            if guard.theirs(e):
                raise
        got = get(*args, **kwargs)
        if type(got) is tuple and len(got) == 2 and type(got[0]) is int:
            worker.batch = got[0]
        return got

    def shadow_put(*args, **kwargs):
        t0 = mono()
        try:
            if worker.done is not None and get_ident() == me:
                measured = worker.done[0].fetch & 7 == MEASURED
                handed_over(worker, worker.batch)
                if measured:
                    ring.ring.cost(mono() - t0)
        except Exception as e:
            if guard.theirs(e):
                raise
        t1 = mono()
        result = put(*args, **kwargs)
        worker.t_put = t2 = mono()
        worker.put_ns = t2 - t1
        return result

    index_queue.get, data_queue.put = shadow_get, shadow_put
