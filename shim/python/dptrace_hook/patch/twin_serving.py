"""The part of the native helper's twin that counts, times and writes the fetches of a worker in which nothing happens."""
import time
from _thread import get_ident

now = time.monotonic_ns
_INT = {id(int)}  # by id: a metaclass may have a hash
_INTEGERS = 4096
_AFTER = 3  # of layouts.WHEN_VALUES
_SURELY = 20000  # ns: what of ours took longer was not the processor's, the thread had to wait for it


def multiple(integers, mask):
    """Whether one of a list's or a tuple's integers has no bit of mask; None: they are something else, too many or too large."""
    if (type(integers) is not list and type(integers) is not tuple) or len(integers) > _INTEGERS:
        return None
    if not integers:
        return False
    if set(map(id, map(type, integers))) != _INT or min(integers) < -1 << 63 or max(integers) >= 1 << 63:
        return None
    return 0 in map(mask.__and__, integers)


class Fetching:
    """One fetcher's fetches. The hook's own class derives from it, and sets:

    number, worker  of the pass and of the worker
    serving         the Serving; None in the main process
    batched         1: a fetch is of a list of samples
    due             the first fetch that entering() and leaving() call Python for; all before it are quiet, if
    peeks, places   show that nothing has moved, or
    state           a Record of a state, may say all that has: see Peeks.tell
    look, mask      look(self, data) is called with what was fetched, unless mask is not negative and none of the indices that
                    were asked for is a multiple() of it
    waiting         by look(): waiting(self, batch) is called with what collate has made of it, or None

    and reads, and sets to 0, what has come together since it last looked: calls, own_ns (of ours), fetched_ns, fetched_samples,
    skipped (samples that look() was not called for).
    """

    def __new__(cls, *args, **kwargs):
        self = object.__new__(cls)
        self.fetch = self.mask = -1
        self.batched = 1
        self.number = self.worker = self.due = self.samples = self.stage = 0
        self.t_fetch = self.t_collate = self.t_collated = self.digest_ns = self.rows_ns = 0
        self.calls = self.own_ns = self.fetched_ns = self.fetched_samples = self.skipped = 0
        self.serving = self.peeks = self.places = self.look = self.waiting = self.state = self.asked = None
        return self

    def before_collate(self, args, kwargs):
        data = args[0] if args else None
        kind = type(data)
        many = kind is list or kind is tuple
        self.samples = n = len(data) if kind is list or (many and self.batched) else 1
        self.t_collate = t = now()
        if self.look is not None:
            asked = self.asked
            try:
                if (self.mask >= 0 and self.batched and n and many and asked is not None and multiple(asked, self.mask) is False
                        and len(asked) == n):
                    self.skipped += n
                else:
                    self.look(self, data)
            finally:
                self.digest_ns = now() - t
        self.stage = 1

    def after_collate(self, token, result, args, kwargs):
        try:
            self._collated(result)
        finally:
            self.stage = 0

    def failed_collate(self, token, raised, args, kwargs):
        self._collated(None)

    def _collated(self, result):
        self.t_collated = t = now()
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            try:
                waiting(self, result)
            finally:
                self.rows_ns = now() - t


class Serving:
    """A worker. The hook's own class derives from it, and sets:

    ask, next_ask   ask(self) is called before an index is asked for, once there were next_ask fetches or none since the last time;
                    asks counts how often that was
    record          a Record of a fetch; full() is called when there was no room
    done            the Fetching of a fetch whose batch is not handed over yet, with done_t, done_fetch_ns, done_collate_ns
    """

    def __new__(cls, *args, **kwargs):
        self = object.__new__(cls)
        self.batch = self._asked_at = -1
        self.next_ask = self.fetches = self.asks = self.put_ns = self._putting_t = 0
        self.done_t = self.done_fetch_ns = self.done_collate_ns = 0
        self.t_put, self._thread = now(), get_ident()
        self.ask = self.record = self.full = self.done = None
        return self

    def asking(self, args, kwargs):
        idle, self._asked_at = self.fetches == self._asked_at, self.fetches
        self.asks += 1
        if (self.fetches >= self.next_ask or idle) and self.ask is not None:
            self.ask(self)

    def asked(self, token, got, args, kwargs):
        if type(got) is tuple and len(got) == 2 and type(got[0]) is int and 0 <= got[0] < 1 << 63:
            self.batch = got[0]

    def putting(self, args, kwargs):
        """After it, its feeder thread wants the interpreter."""
        if get_ident() != self._thread:
            return
        self._putting_t = t = now()
        f, self.done = self.done, None
        if not isinstance(f, Fetching):
            return
        if self.record is not None:
            room = self.record(self.done_t, 0, f.number, f.worker, self.batch & 0xFFFFFFFF, f.fetch, max(self.done_t - self.t_put, 0),
                               self.done_fetch_ns, self.done_collate_ns, self.put_ns, f.samples)
            if not room and self.full is not None:
                self.full()
        self._putting_t = t1 = now()
        f.own_ns += min(t1 - t, _SURELY)

    def put(self, token, result, args, kwargs):
        if get_ident() == self._thread:
            self.t_put = t = now()
            self.put_ns = t - self._putting_t


def entering(python):
    """before() of a fetch, whose fetcher has its Fetching under _dptrace in its dictionary; python is called for those of others,
    of the main process, and that are due."""
    def before(args, kwargs):
        f = args[0].__dict__.get("_dptrace") if len(args) > 1 else None
        if not isinstance(f, Fetching) or f.fetch + 1 >= f.due or not isinstance(f.serving, Serving):
            return python(args, kwargs)
        f.fetch += 1
        f.serving.fetches += 1
        f.t_collate = f.t_collated = f.digest_ns = f.rows_ns = f.stage = 0
        f.asked = args[1]
        f.t_fetch = now()
        return f
    return before


def leaving(python):
    """after() of a fetch."""
    def after(f, result, args, kwargs):
        t = now()
        if (not isinstance(f, Fetching) or f.fetch >= f.due or not isinstance(f.serving, Serving) or f.places is None
                or not f.places.quiet() or f.peeks is None):
            return python(f, result, args, kwargs)
        still = f.peeks.quiet()
        if not still and (f.state is None or not f.peeks._can_tell()):
            return python(f, result, args, kwargs)
        begin, end = f.t_collate or t, f.t_collated or t
        f.fetched_ns += t - f.t_fetch - f.digest_ns - f.rows_ns
        f.fetched_samples += f.samples
        f.calls += 1
        s = f.serving
        s.done_t, s.done_fetch_ns, s.done_collate_ns = f.t_fetch, begin - f.t_fetch, max(end - begin - f.digest_ns, 0)
        f.asked, s.done = None, f
        if not still:
            lost = f.peeks._write(f.state, f.number, f.worker, f.fetch, _AFTER, t - f.t_fetch)
            for _ in range(lost if s.full is not None else 0):
                s.full()
        ns = now() - t
        f.own_ns += 2 * ns if ns < _SURELY else _SURELY  # with that of before(), which is as long
        return None
    return after
