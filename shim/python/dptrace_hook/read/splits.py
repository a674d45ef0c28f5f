"""Where the time of a fetch goes, of some of them: on the processor, waiting for one, or blocked (PROTOCOL.md, "Splits").

The kernel counts that for each thread: its clock of CPU time, /proc/thread-self/schedstat and /proc/thread-self/io. They are looked at
before a fetch and after it, ahead of collate. What is opened here is closed at once: a descriptor that stays would be the program's to
close, and its number somebody else's then. Looking costs tens of us, hence a share of the fetches' time, and never two in a row.
"""
import os
import struct
import time

from ..patch.load import native
from ..record import guard, layouts, ring
from ..record.ring import cpu, mono
from . import chains

SHARE = 1000  # of the time of its fetches one part is spent here
FIRST = 1  # the fetch that is looked at first: the one before it pays for what is made once
LEAST, MOST = 2, 1 << 20  # fetches from one that is looked at to the next
GUESS_NS = 200000  # what looking costs, to begin with, and hardly more
_SPLIT = layouts.packed(layouts.SPLIT_FIELDS)
_open, _read, _close, _all_cpu = os.open, os.read, os.close, time.process_time_ns  # the program may put others in their places
_SCHEDSTAT, _IO = "/proc/thread-self/schedstat", "/proc/thread-self/io"
_missing = set()  # of these two, where the kernel or a sandbox has none


class Split:
    """What is known of one fetcher's fetches."""
    __slots__ = ("next", "running", "look", "mask", "before", "row", "cost", "took", "each", "full", "chains")

    def __init__(self, full):
        self.next, self.running = 1 << 62 if ring.ring.dead else FIRST, False
        self.look = self.mask = self.before = self.row = None
        # ns, by the clock: to look at this fetch, of late; in the fetch, at transforms. What takes far longer than it should was the
        # neighbours' on a busy machine.
        self.cost, self.each, self.took = 0, GUESS_NS, 0
        self.full = full  # every second fetch, whatever that costs
        self.chains = None  # chains.Chains, once one is looked at; False: there are none to be looked at

    def begin(self, fetches):
        """A fetch is about to begin."""
        if self.chains is None:
            self.guarded(self.find, fetches)
        t = mono()
        self.running, self.row = True, None
        self.guarded(self.watch)
        (disk, calls, read, text), queue = _io(), _queue()
        if calls >= 0:
            calls, read = calls + 2, read + text + queue[1]  # this reading itself, which is counted once it is over
        self.look, self.mask = fetches.look, fetches.mask
        fetches.look, fetches.mask = collating, -1  # called whatever was asked for
        every, own = _all_cpu(), cpu()  # last, and first in stop(): what comes between them and the fetch counts as the fetch's
        self.cost = mono() - t
        self.before = own, every, queue[0], read, calls, disk

    def stop(self, fetches):
        """The samples are there."""
        now, every, t, (queue1, text) = cpu(), _all_cpu(), mono(), _queue()
        disk1, calls1, read1, _ = _io()
        self.back(fetches)
        spent, took = self.guarded(self.watched) or ({}, 0)
        own, every0, queue, read, calls, disk = self.before
        if calls1 >= 0:
            calls1, read1 = calls1 - 1, read1 - text
        self.row = (fetches.t_collate - fetches.t_fetch, now - own, max(every - every0 - (now - own), 0), _since(queue, queue1),
                    _since(read, read1), _since(calls, calls1), _since(disk, disk1), took, len(spent)), spent
        self.cost += mono() - t
        self.took = took

    def back(self, fetches):
        fetches.look, fetches.mask, self.look = self.look, self.mask, None

    def end(self, fetches, batch, took):
        """The fetch is over, after so many ns. It is written where it has come to collate and no error has ended it (batch is None)."""
        row, self.row, self.running = self.row, None, False
        if row is None:
            self.back(fetches)
            self.guarded(self.watched)
        ring.ring.hook_ns += min(self.cost, GUESS_NS) + self.took
        self.each = min(max(self.cost, self.each - (self.each >> 2)), 4 * self.each)
        self.next = fetches.fetch + (LEAST if self.full else min(max(LEAST, SHARE * (self.each + self.took) // max(took, 1)), MOST))
        self.took = 0
        if row is not None and batch is not None:
            numbers, spent = row
            tail = [n for number, each in spent.items() for n in (number, *each)]
            ring.put(ring.SPLIT, _SPLIT.pack(fetches.loader, fetches.number, fetches.worker, batch, fetches.fetch, fetches.samples, *numbers)
                     + struct.pack("<%dq" % len(tail), *tail), fetches.t_fetch)

    def find(self, fetches):
        self.chains = chains.of(fetches.slots.dataset, (fetches.loader, fetches.number, fetches.worker))

    def watch(self):
        self.chains.begin()

    def watched(self):
        return self.chains.end() if self.chains else None

    def guarded(self, do, *args):
        """An error of ours in what looks at chains ends that alone."""
        if self.chains is False:
            return None
        try:
            return do(*args)
        except Exception as e:
            self.chains = False
            chains.stop()
            if guard.theirs(e):
                raise
            return None


def collating(fetches, data):
    """In the place of look(), between such a fetch and collate: then as it would have been without."""
    split = fetches.split
    split.stop(fetches)
    look, asked = fetches.look, fetches.asked
    if look is None:
        return
    many = type(data) is list or type(data) is tuple
    if (fetches.mask >= 0 and fetches.batched and fetches.samples and many and asked is not None
            and native.multiple(asked, fetches.mask) is False and len(asked) == fetches.samples):
        fetches.skipped += fetches.samples
    else:
        look(fetches, data)


def _since(before, after):
    return after - before if before >= 0 and after >= before else -1


def _queue():
    """(ns that this thread was ready to run and had to wait for a processor, ever, or -1: the kernel does not say; bytes that this
    took to read)"""
    text = _text(_SCHEDSTAT)
    parts = text.split()
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else -1, len(text)


def _io():
    """(bytes read from disks, calls, bytes read by them), ever, by this thread, -1 as above; bytes that this took to read."""
    found, text = {}, _text(_IO)
    for line in text.splitlines():
        name, _, value = line.partition(b":")
        value = value.strip()
        if value.isdigit():
            found[name] = int(value)
    return found.get(b"read_bytes", -1), found.get(b"syscr", -1), found.get(b"rchar", -1), len(text)


def _text(path):
    if path in _missing:
        return b""
    try:
        fd = _open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return _read(fd, 4096)
        finally:
            _close(fd)
    except OSError as e:
        _missing.add(path)
        if e.filename != path and guard.theirs(e):  # by its name: it cannot be opened here, which is no error of ours
            raise
    return b""
