"""What happens inside a fetch, in a worker or (num_workers=0) in the main process."""
import struct
import sys
from _thread import _local, get_ident

from . import guard, ring, slots
from .ring import mono

_FETCH = struct.Struct("<IIiIIqqqqi")


class Here(_local):
    """What the current thread is serving: threads may be workers one day."""
    worker = None  # Worker
    single = None  # (loader, pass) while a single-process iterator makes its fetcher
    stage = "fetch"


here = Here()


class Worker:
    """One run of torch's _worker_loop."""

    def __init__(self, number, seed):
        self.number, self.seed = number, seed
        self.passes = -1  # fetchers made, less one; persistent workers make one per pass
        self.batch = self.window = -1
        self.t_wait = self.t_got = 0
        self.done = None  # the window that waits for its batch to be put


class Window:
    """The state of one fetcher's windows: kept in the fetcher, gone with it."""

    def __init__(self, loader, number, worker, dataset, collate):
        self.loader, self.number, self.worker = loader, number, worker
        self.live = worker == -1  # the training loop runs between the windows
        self.window, self.batch = -1, 0
        self.t_fetch = self.t_collate = self.t_collated = 0
        self.samples = 0
        self.slots = slots.Slots(loader, number, worker, dataset, collate)


def attach(fetcher, box, dataset, collate):
    """A fetcher was made: after worker_init_fn, before the first index. The window goes to its collate's box too."""
    worker, single = here.worker, here.single
    if worker is not None:
        worker.passes += 1
        window = Window(0, worker.passes, worker.number, dataset, collate)
        if worker.passes == 0:
            torch = sys.modules["torch"]
            ring.put_json(ring.WORKER, {"phase": "ready", "worker": worker.number, "pid": ring.ring.pid, "seed": torch.initial_seed()})
    elif single is not None:
        window = Window(single[0], single[1], -1, dataset, collate)
    else:
        return
    fetcher.__dict__["_dptrace"] = window
    box.append(window)
    window.slots.begin()


def timed(box, collate):
    """The collate function with a clock before and after it. It knows the window by a box, not the fetcher: the fetcher
    holds it, and a cycle would keep the user's dataset alive until the collector runs."""
    def collated(data):
        window = box[0] if box else None
        if window is None:
            return collate(data)
        window.samples = len(data) if type(data) is list else 1
        window.t_collate = mono()
        here.stage = "collate"
        result = collate(data)
        here.stage = "fetch"
        window.t_collated = mono()
        return result
    return collated


def fetch(original, fetcher, *args, **kwargs):
    """Around the fetch of either fetcher."""
    t_in = mono()
    window = fetcher.__dict__.get("_dptrace")
    if window is None or guard.off:
        return original(fetcher, *args, **kwargs)
    try:
        enter(window)
    except Exception as e:
        if guard.theirs(e):
            raise
    here.stage = "fetch"
    window.t_collate = window.t_collated = 0
    t0 = window.t_fetch = mono()
    try:
        data = original(fetcher, *args, **kwargs)
    except BaseException as raised:
        try:
            failed(window, raised, args[0] if args else ())
        except Exception as e:
            if guard.theirs(e):
                raise
        raise
    t1 = mono()
    try:
        leave(window, fetcher, t0, t1)
        r = ring.ring
        r.calls += 1
        if r.calls & 7 == 0:
            r.cost(t0 - t_in + mono() - t1)
    except Exception as e:
        if guard.theirs(e):
            raise
    return data


def enter(window):
    worker = here.worker
    window.window += 1
    if worker is not None:
        window.batch = worker.batch
    else:
        window.batch = window.window
    if window.live:
        window.slots.before(window.window)


def leave(window, fetcher, t0, t1):
    window.slots.after(window.window, t1 - t0)
    if window.window in slots.SEARCH_AFTER:
        window.slots.search(fetcher.__dict__.get("dataset_iter"), window.window)
    worker = here.worker
    c0, c1 = window.t_collate or t1, window.t_collated or t1
    wait = worker.t_got - worker.t_wait if worker is not None and worker.t_wait else 0
    fact = (window.loader, window.number, window.worker, window.batch, window.window, wait, c0 - t0, c1 - c0)
    if worker is None:
        ring.put(ring.FETCH, _FETCH.pack(*fact, 0, window.samples), t0)
    else:
        worker.done = (fact, window.samples, t0)


def put_done(worker, ns):
    """The batch of the last window went to the queue's feeder thread."""
    if worker.done is not None:
        fact, samples, t0 = worker.done
        worker.done = None
        ring.put(ring.FETCH, _FETCH.pack(*fact, ns, samples), t0)


def failed(window, raised, asked):
    if isinstance(raised, StopIteration):
        return
    from . import failures
    failures.write(raised, window.loader, window.number, window.worker, window.batch, here.stage, asked)


def serve(original, *args, **kwargs):
    """Around torch's _worker_loop. Of its arguments only these have kept place and meaning from 1.5 to 2.15:
    2 index_queue, 3 data_queue, 8 the seed, 10 worker_id."""
    worker = None
    try:
        if len(args) > 10 and type(args[10]) is int:
            ring.ring.kind = "worker"
            worker = here.worker = Worker(args[10], args[8] if type(args[8]) is int else 0)
            shadow(worker, args[2], args[3])
    except Exception as e:
        if guard.theirs(e):
            raise
    try:
        return original(*args, **kwargs)
    finally:
        try:
            if worker is not None:
                ring.put_json(ring.WORKER, {"phase": "end", "worker": worker.number, "pid": ring.ring.pid})
                ring.ring.close()
        except Exception as e:
            if guard.theirs(e):
                raise


def shadow(worker, index_queue, data_queue):
    """Clocks in the two queues of a worker. The methods are shadowed on the instances: their types stay."""
    get, put = index_queue.get, data_queue.put
    me = get_ident()

    def shadow_get(*args, **kwargs):
        if not worker.t_wait:
            worker.t_wait = mono()
        got = get(*args, **kwargs)
        try:
            if type(got) is tuple and len(got) == 2 and type(got[0]) is int:
                worker.t_got, worker.batch = mono(), got[0]
        except Exception as e:
            if guard.theirs(e):
                raise
        return got

    def shadow_put(*args, **kwargs):
        t0 = mono()
        result = put(*args, **kwargs)
        try:
            if get_ident() == me:
                t1 = mono()
                put_done(worker, t1 - t0)
                worker.t_wait = 0
                ring.ring.calls += 1
                if ring.ring.calls & 7 == 0:
                    ring.ring.cost(mono() - t1)
        except Exception as e:
            if guard.theirs(e):
                raise
        return result

    index_queue.get, data_queue.put = shadow_get, shadow_put
