"""The part of the native helper's twin that writes what an iterator's workers are asked for, and what the training was handed."""
import time

now = time.monotonic_ns
_SURELY = 20000  # ns: what of ours took longer was not the processor's, the thread had to wait for it
_OK, _GRAD, _WATCHED = 1, 256, 4096  # of layouts.STATUS_VALUES, layouts.STATUS_GRAD, layouts.STATUS_WATCHED
_MAIN = -1
_DEPTH = 3


class Training:
    """What this process trains, and where it is written. The hook sets and counts:

    taken, last, ran, grads_from, grads_to, restarts    of layouts.NEXT_FIELDS
    bits, watched   of its status since the last batch; whether all is watched that these need
    look            1: flags() is called, and gives what is to be added to the status
    armed           1: begun(rows, notes) is called after each batch, else after those of one row where gradients are computed and
                    the loader's batch_size is not 1
    rows(data)      the first dimension of the first array in a batch; not called for tensors of exactly this type, also in lists,
                    tuples and dictionaries, unless modes() says that somebody would see it
    grad()          whether gradients are computed
    child           something: only Python hands batches over
    put, record     an Integers of layouts.PUT_FIELDS and a Record of layouts.NEXT_FIELDS into sink; full() is called when there was
                    no room, bell() when the sink's head is beyond its bell
    due             calls that Python is called with at the latest

    delivered       counted here: batches; then: steps taken as the last was handed over
    calls, own_ns   counted here, and set to 0 by the hook: batches handed over without Python, and what that took
    """
    __slots__ = ("taken", "last", "ran", "grads_from", "grads_to", "restarts", "bits", "watched", "look", "armed", "delivered", "then", "due",
                 "calls", "own_ns", "flags", "begun", "rows", "grad", "modes", "tensor", "child", "sink", "bell", "put", "record", "full")

    def __init__(self):
        self.taken = self.last = self.ran = self.grads_from = self.grads_to = self.restarts = self.bits = self.watched = self.look = 0
        self.armed = self.delivered = self.then = self.due = self.calls = self.own_ns = 0
        self.flags = self.begun = self.rows = self.grad = self.modes = self.tensor = self.child = self.sink = self.bell = None
        self.put = self.record = self.full = None


class Delivering:
    """A pass of an iterator, which has it under _dptrace in its dictionary. The hook's own class derives from it, and sets:

    loader, number, worker  of the loader and the pass; -1, or what else is to be written for whoever hands over
    single          the loader's batch_size is 1
    training        a Training
    notes           of the loader, a dictionary: batches "delivered" so far are counted there
    arrived         a dictionary: number of a batch -> when it arrived
    ids             something: only Python writes what is asked for

    t_next, did, t_put, sending, got, index     are ours: of the call that is under way
    """

    def __new__(cls, *args, **kwargs):
        self = object.__new__(cls)
        self.loader = self.number = self.worker = self.single = self.t_next = self.did = self.t_put = 0
        self.sending = self.got = -1
        self.training = self.notes = self.arrived = self.ids = self.index = None
        return self


def indexed(token, index, args, kwargs):
    """after() of _next_index."""
    d = args[0].__dict__.get("_dptrace")
    if d is not None:
        d.index = index


def placing(python):
    """before() of _try_put_index."""
    def before(args, kwargs):
        attributes = args[0].__dict__
        d, batch = attributes.get("_dptrace"), attributes.get("_send_idx")
        if d is None or type(batch) is not int:
            return python(args, kwargs)
        d.sending, d.t_put = batch, now()
        return d
    return before


def _put_index(d, t, batch, worker, t0, ns):
    """False: Python is to."""
    index = d.index
    kind = type(index)
    each = index if kind is list or kind is tuple else (index,)
    if not each or d.ids is not None or t.put is None:
        return False
    room = t.put(t0, d.loader, d.number, batch, worker, ns, 0, len(each), each)
    if room is None:
        return False
    d.index = None
    if not room and t.full is not None:
        t.full()
    sink = t.sink
    if sink.head > sink.bell:
        t.bell()
    return True


def placed(python):
    """after() of it."""
    def after(d, result, args, kwargs):
        t1 = now()
        attributes = args[0].__dict__
        following = attributes.get("_send_idx")
        if d is None or type(following) is not int:
            return python(d, result, args, kwargs)
        batch = d.sending
        if following == batch:
            return None
        tasks = attributes.get("_task_info")
        info = tasks.get(batch) if type(tasks) is dict else None
        if type(info) is not tuple or not info or type(info[0]) is not int:
            return python(d, result, args, kwargs)
        t = d.training
        if not _put_index(d, t, batch, info[0], d.t_put, t1 - d.t_put):
            return python(d, result, args, kwargs)
        ns = now() - t1
        t.own_ns += ns if ns < _SURELY else _SURELY
    return after


def arriving(python):
    """after() of _try_get_data, which gives (whether there is anything, (batch, data))."""
    def after(token, result, args, kwargs):
        if not result[0]:
            return None
        batch, d = result[1][0], args[0].__dict__.get("_dptrace")
        if type(batch) is not int or d is None:
            return python(token, result, args, kwargs)
        d.got = batch
        d.arrived[batch] = now()
    return after


def calling(python):
    """before() of _next_data."""
    def before(args, kwargs):
        d = args[0].__dict__.get("_dptrace")
        if d is None:
            return python(args, kwargs)
        t, d.t_next = d.training, now()
        if t.look:
            d.did = t.flags()
        else:
            d.did = t.bits + _WATCHED if t.watched and (t.ran or not t.taken) else t.bits
        return d
    return before


def _rows(t, data, depth):
    """The first dimension of the first array in a batch; -1: it has none; None: Python is to look."""
    kind = type(data)
    if kind is t.tensor:
        if t.modes():
            return None
        shape = data.shape
        if not shape:
            return -1
        rows = shape[0]
        return rows if type(rows) is int else None
    if kind is not list and kind is not tuple and kind is not dict or not data or not depth:
        return None
    rows = _rows(t, next(iter(data.values())) if kind is dict else data[0], depth - 1)
    return None if rows is None or rows < 0 else rows


def handing(python):
    """after() of it."""
    def after(d, data, args, kwargs):
        t1 = now()
        t = None if d is None else d.training
        if t is None or t.calls + 1 >= t.due or t.child is not None:
            return python(d, data, args, kwargs)
        notes, arrived = d.notes, 0
        delivered = notes.get("delivered")
        if type(delivered) is not int:
            return python(d, data, args, kwargs)
        if d.worker == _MAIN:
            batch = delivered
            if not _put_index(d, t, batch, _MAIN, d.t_next, 0):
                return python(d, data, args, kwargs)
        else:
            attributes = args[0].__dict__
            batch = attributes.get("_rcvd_idx")
            if attributes.get("_in_order") is False:
                batch = d.got + 1
            if type(batch) is not int or batch <= 0:
                return python(d, data, args, kwargs)
            batch -= 1
            arrived = d.arrived.pop(batch, 0)
        notes["delivered"] = delivered + 1
        t.calls += 1
        _hand(d, t, batch, arrived, data)
        ns = now() - t1
        t.own_ns += 2 * ns if ns < _SURELY else _SURELY  # with that of arriving() and calling()
    return after


def _hand(d, t, batch, arrived, data):
    rows = _rows(t, data, _DEPTH)
    if rows is None:
        rows = t.rows(data)
    grad = t.grad() is True
    if not t.record(0, d.loader, d.number, batch & 0xFFFFFFFF, d.worker, d.did + (_OK + _GRAD if grad else _OK), d.t_next, arrived, t.taken,
                    t.last, t.ran, t.grads_from, t.grads_to, t.restarts, rows) and t.full is not None:
        t.full()
    t.bits = t.grads_from = t.grads_to = 0
    t.delivered += 1
    t.then = t.taken
    if t.armed or rows == 1 and not d.single and grad:
        t.begun(rows, d.notes)
