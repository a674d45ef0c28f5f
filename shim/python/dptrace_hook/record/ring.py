"""The record file of this process: a ring in shared memory that `dptrace record` drains (PROTOCOL.md).

It is a file on disk, not a socket or a pipe: a store into a mapping neither blocks nor gives up the GIL, and it
survives the death of this process. The file is fully allocated when it is made, so a full disk is an error then and
never a SIGBUS later. Nothing here waits for the recorder: what finds no room is dropped and counted.
"""
import os
import sys
import time
import _thread

from ..patch.load import native
from . import guard, layouts, mapping
from .layouts import (ACT, ATTRIBUTE, BATCH_BYTES, CALL_SITE, CONTAINER, COPY, DATASET, DIGEST, DIST, ERRORS, EXCEPTION, EXTENT, FETCH, FOOTPRINT,  # noqa: F401
                      LEFTOVER, LOADER, NEXT, OPENED, OPTIMIZER, PAD, PASS, PIN, PRIVATE, PROCESS, PUT, SEARCH, SET_EPOCH, SLOT, SPLIT,
                      STATE, TRANSFORM, WORKER)

mono = time.monotonic_ns
cpu = native.cpu  # ns of CPU time of this thread, by which our own cost is counted: the clock's would be the neighbours' too
_touch = os.utime  # the program may put something else in its place

SMALL = 64 << 10  # bytes of a ring when many processes share the spool
GONE_NS = 10 * 10**9  # a recorder that has not looked for so long stands still, or has died
_HEADER, _AFTER = layouts.packed(layouts.HEADER_FIELDS), layouts.HEADER_BYTES
_FORMS = {kind: "".join([form for _, form in fields]) for kind, fields in (
    (PUT, layouts.PUT_FIELDS), (FETCH, layouts.FETCH_FIELDS), (NEXT, layouts.NEXT_FIELDS), (STATE, layouts.STATE_FIELDS), (COPY, layouts.COPY_FIELDS))}
_AT = layouts.offsets(layouts.HEADER_FIELDS)
# indices of the header's u64 words
_HEAD, _TAIL, _DROPPED, _BEAT, _HOOK_NS, _CALLS, _RECORDS, _BELL = [
    _AT[name] // 8 for name in ("head", "tail", "dropped", "beat", "hook_ns", "calls", "records", "bell")]

_session = None


def session():
    """What `dptrace record` left beside this package for us; read once."""
    global _session
    if _session is None:
        import json
        here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(here, "session.json")) as f:
            _session = json.load(f)
    return _session


class Ring:
    def __init__(self):
        self.pid = os.getpid()
        self.open = False
        self.dead = False
        self.closed = False
        self.kind = "python"
        self.copies = ""
        self.dropped = self.hook_ns = self.calls = 0

    def make(self):
        """Makes and maps the file. A failure leaves the ring dead: nothing is recorded, the program does not notice."""
        self.open = self.dead = True
        self.pid = os.getpid()  # a fork server has loaded this for its children, and not torch, which would have told of the fork
        try:
            spool = session()["spool"]
            size = session()["ring"] if len(os.listdir(spool)) < session()["rings"] else SMALL
            path = os.path.join(spool, "%d.%d.ring" % (self.pid, mono()))
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(fd, 0, _AFTER + size)
                self.map = mapping.of(fd, _AFTER + size)
            except OSError as e:  # an empty file needs no room: by its name the recorder knows of us nevertheless
                os.ftruncate(fd, 0)
                os.rename(path, "%s.%d.none" % (path[:-len(".ring")], e.errno or 0))
                raise
            finally:
                os.close(fd)
        except (OSError, ValueError, KeyError, TypeError) as e:  # no room, no spool, no session.json, or not ours
            if guard.theirs(e):
                raise
            return
        now, self.quarter = mono(), size // 4
        _HEADER.pack_into(self.map, 0, b"", 1, 0, 0, size, self.pid, os.getppid(), 0, now, 0, now, 0, 0, 0, self.quarter)
        self.map[:4] = b"DPR1"  # last: the recorder may look at any time
        # Items of a cast memoryview are stored whole, which struct's little-endian formats do byte by byte.
        self.words = self.map[:_AFTER].cast("Q")
        self.flags = self.map[_AT["flags"]:_AT["flags"] + 4].cast("I")
        self.sink = native.Sink(self.map, size, _AFTER, _HEAD, _TAIL)
        self.packers = {kind: native.Record(self.sink, kind, form) for kind, form in _FORMS.items()}
        self.lists = {PUT: native.Integers(self.sink, PUT, _FORMS[PUT])}
        self.path, self.sink.bell = path, self.quarter
        self.dead = False
        self.put(PROCESS, _json(_describe(self.kind, self.copies)))

    def put(self, kind, payload, t=0):
        if not self.open:
            self.make()
        if not self.dead and not guard.off:
            if not self.sink.put(kind, payload, t):
                self.full()
            self.bell()

    def pack(self, kind, t, *values):
        """A record of one of the binary layouts, whose payload may end with bytes of any number."""
        if not self.open:
            self.make()
        if not self.dead and not guard.off and not self.packers[kind](t, *values):
            self.full()

    def integers(self, kind, t, *values):
        """The same, of values with a list or two of integers behind them. False: they are something else, or too large."""
        if not self.open:
            self.make()
        if self.dead or guard.off:
            return True
        done = self.lists[kind](t, *values)
        if done is False:
            self.full()
        self.bell()
        return done is not None

    def bell(self):
        """Wakes the recorder, which looks twice a second only, with each quarter of the ring that was written."""
        if self.sink.head > self.sink.bell:
            self.sink.bell = self.sink.head + self.quarter
            try:
                _touch(self.path)
            except OSError as e:  # in another root, or the recorder has gone: let it look by the clock
                self.words[_BELL] = 0
                if guard.theirs(e):
                    raise

    def full(self):
        """There was no room: the record is dropped. A recorder that stands still may go on again, so nothing ends here."""
        if self.dead:
            return
        self.drop()
        if mono() - self.words[_BEAT] > GONE_NS:
            self.flags[0] |= layouts.FLAG_UNREAD

    def drop(self):
        """Counts a record that is not written; the recorder sees it at its next look."""
        self.dropped += 1
        self.words[_DROPPED] = self.dropped

    def give_up(self, why):
        """Nothing more is written; the recorder is told why, by a bit of the flags."""
        if self.open and not self.dead:
            self.dead = True
            self.sink.close()  # also for those who have its packers
            self.flags[0] |= why

    def cost(self, ns, calls=8):
        """Adds what one of eight calls was measured to cost, for all eight."""
        self.hook_ns += calls * ns
        if not self.dead and self.open:
            self.count()
            self.bell()

    def close(self):
        """The process ends in good order: no record follows."""
        self.closed = True
        if self.open and not self.dead:
            guard.tell()
            self.count()
            self.flags[0] |= layouts.FLAG_ENDED

    def count(self):
        self.words[_HOOK_NS], self.words[_CALLS], self.words[_RECORDS] = self.hook_ns, self.calls, self.sink.number


ring = Ring()


def _report(facts):
    if not ring.dead:
        put_json(ERRORS, facts)


guard.report, guard.stop = _report, lambda: ring.give_up(layouts.FLAG_ERRORS)


def put(kind, payload, t=0):
    ring.put(kind, payload, t)


def pack(kind, t, *values):
    ring.pack(kind, t, *values)


def integers(kind, t, *values):
    return ring.integers(kind, t, *values)


def packer(kind):
    """What pack() calls for records of a kind; None: nothing is written."""
    return ring.packers[kind] if ring.open and not ring.dead and not guard.off else None


def lister(kind):
    """The same of integers()."""
    return ring.lists[kind] if ring.open and not ring.dead and not guard.off else None


def sink():
    return ring.sink if ring.open and not ring.dead else None


def full():
    ring.full()


def bell():
    ring.bell()


def put_json(kind, facts, t=0):
    ring.put(kind, _json(facts), t)


def after_fork(kind="fork"):
    """In the child: the parent's ring is the parent's; ours is made with our first record."""
    global ring
    ring = Ring()
    ring.kind = kind


def _json(facts):
    import json
    return json.dumps(facts).encode("utf-8", "replace")


def _describe(kind, copies):
    """Facts about this process. Versions are read from modules that are loaded; nothing is imported for it."""
    def version(name):
        v = vars(sys.modules[name]).get("__version__") if name in sys.modules else None
        return str.__str__(v) if isinstance(v, str) else ""  # torch's is a subclass of str

    def number(name):
        v = os.environ.get(name, "")
        return int(v) if v.isdigit() else -1

    try:
        cwd = os.getcwd()
    except OSError as e:  # removed, as far as Python knows
        if guard.theirs(e):
            raise
        cwd = ""
    first = getattr(_thread, "get_native_id", int)() == os.getpid()
    argv = getattr(sys, "orig_argv", None) or [sys.executable] + list(getattr(sys, "argv", []))
    return {"pid": os.getpid(), "ppid": os.getppid(), "kind": kind, "python": "%d.%d.%d" % sys.version_info[:3],
            "torch": version("torch"), "numpy": version("numpy"), "exe": sys.executable or "", "cwd": cwd,
            "cmdline": "\0".join(a for a in argv if type(a) is str)[:4096], "rank": number("RANK"), "local_rank": number("LOCAL_RANK"),
            "world_size": number("WORLD_SIZE") if number("WORLD_SIZE") > 0 else 0, "thread_state": native.thread_state() if first else 0,
            "copies": copies}
