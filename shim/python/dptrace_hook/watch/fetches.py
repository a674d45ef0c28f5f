"""What happens inside a fetch, in a worker or (num_workers=0) in the main process."""
import os
import sys
import time
from _thread import _local

from ..patch import wrapping
from ..patch.load import native
from ..record import guard, ring
from ..record.ring import cpu, mono
from ..read import attributes, digests, growth, heap, objects, open_files, pagemap, shared, slots, splits
from ..read.quiet import Quiet
from . import failures



class Here(_local):
    """What the current thread is serving: threads may be workers one day."""
    worker = None  # Worker
    single = None  # (loader, pass) while a single-process iterator makes its fetcher
    inherited = None  # extents.Inherited, in the thread that forks a loader's workers


here = Here()


class Worker(native.Serving):
    """One run of torch's _worker_loop."""

    def __init__(self, number):
        self.number = number
        self.passes = -1  # fetchers made, less one; persistent workers make one per pass
        self.extents = pagemap.of_parent(here.inherited)
        self.persistent, self.told = False, None  # attributes.Told
        self.budget = None  # digests.Budget
        self.cpu0, self.wrote0 = 0, -1  # ns of CPU time and bytes written as the last fetcher was made
        self.last = None  # Fetches of the pass
        self.files = open_files.Files(-1)
        self.growth, self.roots = growth.Growth(number), ()
        self.ask = ask


class Fetches(native.Fetching):
    """What is known of one fetcher's fetches: kept in the fetcher, gone with it."""

    def __init__(self, loader, number, worker, serving, dataset, collate):
        self.loader, self.number, self.worker = loader, number, worker
        self.serving = serving  # the Worker; None in the main process
        self.live = serving is None  # the training loop runs between the fetches
        self.entered_ns = 0
        self.digests = None  # digests.Digests
        self.own = digests.own(collate)
        self.split = splits.Split(ring.session().get("digest") == "full")
        self.slots = slots.Slots(loader, number, worker, dataset, collate)


def made(_, result, args, kwargs):
    """After _BaseDatasetFetcher.__init__(dataset, auto_collation, collate_fn, drop_last), in all versions: after worker_init_fn,
    before the first index. The fetcher's collate function gets a clock before and after it."""
    if len(args) > 3:
        attach(args[0], args[1], args[3])


def attach(fetcher, dataset, collate):
    worker, single = here.worker, here.single
    if worker is not None:
        worker.growth.begin(worker, growth.roots(dataset, collate, fetcher.__dict__.get("dataset_iter")))
        if worker.extents is not None:
            worker.extents.begin(worker)
        worker.growth.base = worker.fetches
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
    fetches.batched = int(fetcher.__dict__.get("auto_collation") is not False)
    fetches.digests = digests.of_pass(fetches.loader, worker)
    fetches.look = None if fetches.digests is None else look
    if worker is not None:
        worker.next_ask, worker.full = 0, ring.full
        worker.cpu0, worker.wrote0 = time.process_time_ns(), written() if objects.called(type(fetcher)) == "_IterableDatasetFetcher" else -1
    d = fetcher.__dict__
    d["_dptrace"] = fetches
    if d.get("collate_fn") is collate:
        d["collate_fn"] = wrapping.around(collate, fetches.before_collate, fetches.after_collate, fetches.failed_collate)
    with Quiet():
        fetches.slots.begin()
        attributes.at_fetch(fetches, dataset, collate)


def ended(worker):
    """A pass of a worker is over."""
    last, worker.last = worker.last, None
    if last is not None:
        last.slots.end(last.fetch)


def look(fetches, data):
    """The samples of a fetch are there, and some of them are to be looked at."""
    found = fetches.digests
    found.position, fetches.skipped = found.position + fetches.skipped, 0
    found.look(fetches, data, fetches.t_collate, fetches.own)
    if fetches.digests is None:
        fetches.look = None
    else:
        fetches.mask = found.mask()
        if fetches.own and found.waiting is not None:
            fetches.waiting = collated


def collated(fetches, batch):
    """They have become `batch`; None: collate has failed."""
    if fetches.digests is not None:
        fetches.digests.collated(fetches, batch)


def enter(args, kwargs):
    """Before the fetch of either fetcher, with its index, where it is not known to be a quiet one: gives its Fetches."""
    fetches = args[0].__dict__.get("_dptrace")
    if fetches is None:
        return None
    if guard.off:
        fetches.due = 0
        return None
    fetches.fetch += 1
    measured = fetches.fetch < slots.EIGHTH or not fetches.fetch % slots.EIGHTH
    c0 = cpu() if measured else 0
    if fetches.serving is not None:
        fetches.serving.fetches += 1
    fetches.t_collate = fetches.t_collated = fetches.digest_ns = fetches.rows_ns = fetches.stage = 0
    if fetches.live:
        fetches.slots.before(fetches.fetch)
    fetches.asked = args[1] if len(args) > 1 else ()
    if measured:
        fetches.entered_ns = cpu() - c0
    if fetches.fetch >= fetches.split.next:
        fetches.split.begin(fetches)
    fetches.t_fetch = mono()
    return fetches


before_fetch = native.entering(enter)


def failed(fetches, raised, args, kwargs):
    if fetches is None:
        return
    if fetches.split.running:
        fetches.split.end(fetches, None, mono() - fetches.t_fetch)
    if issubclass(type(raised), StopIteration):
        if fetches.batched:
            failures.leftover(raised, fetches.loader, fetches.number, fetches.worker, fetches.asked)
    else:
        batch = fetches.fetch if fetches.serving is None else fetches.serving.batch
        failures.write(raised, fetches.loader, fetches.number, fetches.worker, batch, "collate" if fetches.stage else "fetch", fetches.asked)
    if fetches.fetch == 0:
        first(fetches, args[0])


def leave(fetches, result, args, kwargs):
    if fetches is None:
        return
    t0, t1, number = fetches.t_fetch, mono(), fetches.fetch
    one, split = number < slots.EIGHTH, fetches.split.running  # the first walk and search, which no other does
    measured = one or split or not number % slots.EIGHTH
    c0 = cpu() if measured else 0
    if split:
        fetches.split.end(fetches, number if fetches.serving is None else fetches.serving.batch, t1 - t0)
    fetches.slots.after(number, t1 - t0)
    if number in slots.SEARCH_AFTER:
        fetches.slots.search(args[0].__dict__.get("dataset_iter"), number)
    fetches.asked = None
    if number == 0:
        first(fetches, args[0])
        if fetches.serving is not None:
            weigh(fetches, result)
    begin, end = fetches.t_collate or t1, fetches.t_collated or t1
    collate_ns = max(end - begin - fetches.digest_ns, 0)
    if fetches.digests is not None:
        fetches.digests.fetch(t1 - t0 - fetches.digest_ns - fetches.rows_ns + fetches.fetched_ns, fetches.samples + fetches.fetched_samples)
        fetches.mask = fetches.digests.mask()
    worker = fetches.serving
    if worker is None:
        ring.pack(ring.FETCH, t0, fetches.loader, fetches.number, -1, number, number, 0, begin - t0, collate_ns, 0, fetches.samples)
        open_files.main().look()
    else:
        worker.done, worker.done_t, worker.done_fetch_ns, worker.done_collate_ns = fetches, t0, begin - t0, collate_ns
        worker.record, fetches.state = ring.packer(ring.FETCH), ring.packer(ring.STATE)
    quiet(fetches, number)
    ring.ring.calls += fetches.calls + 1
    ring.ring.hook_ns += fetches.own_ns
    if measured:
        one = one or fetches.calls or number % slots.EIGHTH  # else it stands for those that are not measured
        ring.ring.cost(fetches.entered_ns + cpu() - c0, 1 if one else slots.EIGHTH)
    fetches.calls = fetches.own_ns = fetches.fetched_ns = fetches.fetched_samples = 0


after_fetch = native.leaving(leave)


def quiet(fetches, number):
    """Until which fetch Python need not be called, if no generator moves: one of QUIET is measured, one of EIGHTH looks at what lies in
    no dictionary."""
    found = fetches.slots
    if found.slow or found.hidden:
        fetches.peeks = None
    else:
        fetches.peeks, fetches.places = found.peeks, found.places
    step = slots.EIGHTH if found.unseen else slots.QUIET
    due = (number // step + 1) * step
    for search in slots.SEARCH_AFTER:
        if number < search < due:
            due = search
    fetches.due = min(due, fetches.split.next)


def first(fetches, fetcher):
    """The first fetch of a worker's pass is over: what it took, from iter() of an IterableDataset on. One that has nothing to
    give may have worked for the others."""
    worker = fetches.serving
    if worker is not None and "dataset_iter" in fetcher.__dict__:
        wrote = written()
        ring.put_json(ring.WORKER, {"phase": "first", "worker": worker.number, "pid": ring.ring.pid, "pass": fetches.number,
                                    "cpu_ns": time.process_time_ns() - worker.cpu0,
                                    "written": wrote - worker.wrote0 if min(wrote, worker.wrote0) >= 0 else -1})


def weigh(fetches, batch):
    """What the first batch of a worker's pass takes of shared memory. That it cannot be told is no reason to leave out the rest."""
    try:
        with Quiet():
            shared.tell(fetches, batch, 0)
    except Exception as e:
        if guard.theirs(e):
            raise


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
    worker.growth.end(worker)
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
    index_queue.get = wrapping.around(index_queue.get, worker.asking, worker.asked)
    data_queue.put = wrapping.around(data_queue.put, worker.putting, worker.put)


def ask(worker):
    """The worker is about to wait for an index, after a fetch that one of these wants to see or none."""
    fetches = worker.fetches
    if worker.extents is not None:
        worker.extents.look(worker)
    worker.files.look(worker.asks)
    worker.asks = 0
    if fetches >= worker.growth.next:
        worker.growth.after(worker)
    more = worker.files.next - worker.files.fetches
    worker.next_ask = min(fetches + more, worker.growth.next, worker.extents.next if worker.extents is not None else 1 << 62)


def after_fork():
    """In a child of a worker: its ring is the parent's."""
    if here.worker is not None:
        here.worker.record = here.worker.full = None
        if here.worker.last is not None:
            here.worker.last.state = None
