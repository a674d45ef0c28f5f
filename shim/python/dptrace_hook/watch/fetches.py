"""What happens inside a fetch, in a worker or (num_workers=0) in the main process."""
import os
import sys
import time
from _thread import _local, get_ident

from ..patch import wrapping
from ..record import guard, ring
from ..record.ring import cpu, mono
from ..read import attributes, digests, heap, open_files, pagemap, slots
from ..read.quiet import Quiet
from . import failures

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
        self.t_fetch = self.t_collate = self.t_collated = self.entered_ns = 0
        self.asked = None  # of this fetch: the index, or the list of them
        self.digest_ns = self.rows_ns = 0
        self.samples = 0
        self.batched = True  # a fetch is of a list of samples: no batch_size=None
        self.digests = None  # digests.Digests
        self.slots = slots.Slots(loader, number, worker, dataset, collate)


def made(_, result, args, kwargs):
    """After _BaseDatasetFetcher.__init__(dataset, auto_collation, collate_fn, drop_last), in all versions: after worker_init_fn,
    before the first index. The fetcher's collate function gets a clock before and after it."""
    if len(args) > 3:
        attach(args[0], args[1], args[3])


def attach(fetcher, dataset, collate):
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
    d = fetcher.__dict__
    d["_dptrace"] = fetches
    if d.get("collate_fn") is collate:
        d["collate_fn"] = timed(fetches, collate)
    with Quiet():
        fetches.slots.begin()
        attributes.at_fetch(fetches, dataset, collate)


def ended(worker):
    """A pass of a worker is over."""
    last, worker.last = worker.last, None
    if last is not None:
        last.slots.end(last.fetch)


def timed(fetches, collate):
    """The collate function with a clock before and after it."""
    own = digests.own(collate)

    def before(args, kwargs):
        data = args[0]
        fetches.samples = len(data) if type(data) is list or (fetches.batched and type(data) is tuple) else 1
        fetches.t_collate = t = mono()
        if fetches.digests is not None:
            fetches.digests.look(fetches, data, t, own)
            fetches.digest_ns = mono() - t
        here.stage = "collate"

    def after(_, result, args, kwargs):
        collated(fetches, result, own)
        here.stage = "fetch"

    def failed(_, raised, args, kwargs):
        collated(fetches, None, own)
    return wrapping.around(collate, before, after, failed)


def collated(fetches, result, own):
    fetches.t_collated = t = mono()
    if own and fetches.digests is not None and fetches.digests.waiting is not None:
        fetches.digests.collated(fetches, result)
        fetches.rows_ns = mono() - t


def enter(args, kwargs):
    """Before the fetch of either fetcher, with its index: gives its Fetches."""
    fetches = args[0].__dict__.get("_dptrace")
    if fetches is None or guard.off:
        return None
    fetches.fetch += 1
    measured = fetches.fetch & 7 == MEASURED
    c0 = cpu() if measured else 0
    if fetches.serving is not None:
        fetches.serving.fetches += 1
    fetches.t_collate = fetches.t_collated = fetches.digest_ns = fetches.rows_ns = 0
    here.stage = "fetch"
    if fetches.live:
        fetches.slots.before(fetches.fetch)
    fetches.asked = args[1] if len(args) > 1 else ()
    if measured:
        fetches.entered_ns = cpu() - c0
    fetches.t_fetch = mono()
    return fetches


def failed(fetches, raised, args, kwargs):
    if fetches is None:
        return
    if issubclass(type(raised), StopIteration):
        if fetches.batched:
            failures.leftover(raised, fetches.loader, fetches.number, fetches.worker, fetches.asked)
    else:
        batch = fetches.fetch if fetches.serving is None else fetches.serving.batch
        failures.write(raised, fetches.loader, fetches.number, fetches.worker, batch, here.stage, fetches.asked)
    if fetches.fetch == 0:
        first(fetches, args[0])


def leave(fetches, result, args, kwargs):
    if fetches is None:
        return
    t0, t1, number = fetches.t_fetch, mono(), fetches.fetch
    measured = number & 7 == MEASURED
    used = cpu() if measured else 0
    fetches.slots.after(number, t1 - t0)
    if number in slots.SEARCH_AFTER:
        fetches.slots.search(args[0].__dict__.get("dataset_iter"), number)
    fetches.asked = None
    if number == 0:
        first(fetches, args[0])
    c0, c1 = fetches.t_collate or t1, fetches.t_collated or t1
    collate_ns = max(c1 - c0 - fetches.digest_ns, 0)
    if fetches.digests is not None:
        fetches.digests.fetch(t1 - t0 - fetches.digest_ns - fetches.rows_ns, fetches.samples)
    worker = fetches.serving
    if worker is None:
        ring.pack(ring.FETCH, t0, fetches.loader, fetches.number, -1, number, number, 0, c0 - t0, collate_ns, 0, fetches.samples)
        open_files.main().look()
    else:
        worker.done = (fetches, t0, c0 - t0, collate_ns)
    ring.ring.calls += 1
    if measured:
        ring.ring.cost(fetches.entered_ns + cpu() - used)


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


def serve(args, kwargs):
    """Before torch's _worker_loop. Of its arguments only these have kept place and meaning from 1.7 to 2.15:
    2 index_queue, 3 data_queue, 10 worker_id, 12 persistent_workers."""
    if len(args) <= 10 or type(args[10]) is not int:
        return None
    ring.ring.kind = "worker"
    worker = here.worker = Worker(args[10])
    worker.persistent = len(args) > 12 and args[12] is True
    shadow(worker, args[2], args[3])
    return worker


def served(worker, result, args, kwargs):
    if worker is None:
        return
    if worker.extents is not None:
        worker.extents.end(worker)
    ended(worker)
    ring.put_json(ring.WORKER, {"phase": "end", "worker": worker.number, "pid": ring.ring.pid, "pass": max(worker.passes, 0),
                                "cpu_ns": time.process_time_ns() - worker.cpu0 if worker.cpu0 else 0})
    ring.ring.close()


def broke_off(worker, raised, args, kwargs):
    if worker is not None:
        failures.ended(raised)
        served(worker, None, args, kwargs)


def shadow(worker, index_queue, data_queue):
    """In the two queues of a worker: which batch is asked for, and when it is handed over. The methods are shadowed on
    the instances: their types stay."""
    me = get_ident()

    def asking(args, kwargs):
        if worker.extents is not None:
            worker.extents.look(worker)
        worker.files.look()

    def asked(_, got, args, kwargs):
        if type(got) is tuple and len(got) == 2 and type(got[0]) is int:
            worker.batch = got[0]

    def putting(args, kwargs):
        """After it, its feeder thread wants the interpreter."""
        if worker.done is None or get_ident() != me:
            return mono()
        (fetches, begun, fetch_ns, collate_ns), worker.done = worker.done, None
        measured = fetches.fetch & 7 == MEASURED
        c0 = cpu() if measured else 0
        ring.pack(ring.FETCH, begun, 0, fetches.number, fetches.worker, worker.batch, fetches.fetch, max(begun - worker.t_put, 0), fetch_ns,
                  collate_ns, worker.put_ns, fetches.samples)
        if measured:
            ring.ring.cost(cpu() - c0)
        return mono()

    def put(t, result, args, kwargs):
        worker.t_put = now = mono()
        worker.put_ns = now - t

    index_queue.get = wrapping.around(index_queue.get, asking, asked)
    data_queue.put = wrapping.around(data_queue.put, putting, put)
