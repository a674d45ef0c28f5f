"""How much of its parent's extents a forked worker has copied, by its own /proc/self/pagemap.

An entry has 8 bytes per page, little endian: bit 63 in memory, bit 61 of a file or shared, bit 56 mapped by this process
alone (Documentation/admin-guide/mm/pagemap.rst of Linux). Right after the fork no page is; it is again when it was copied.
"""
import mmap
import os

from ..record import guard, ring
from ..record.ring import cpu, mono
from . import addresses

_PAGEMAP = "/proc/self/pagemap"
_SHARED, _ALONE = 0x80, 0x81  # an entry's last byte: in memory, and with whom
_ENTRIES = 8 * (1 << addresses.BLOCK) // mmap.PAGESIZE  # of a block: bytes
_CHUNK = 16  # blocks read at once: a small buffer, as new memory of the worker's is what others measure
_SHARE = 333  # of its time a worker spends one part here


def of_parent(inherited):
    """A worker's Extents; None where its parent left none, or is not its parent (forkserver)."""
    return Extents(inherited) if inherited is not None and inherited.pid == os.getppid() else None


class Extents:
    def __init__(self, inherited):
        self.parent, self.numbers, self.segments = inherited.pid, inherited.numbers, inherited.segments
        self.since = mono()
        self.spent = self.last = 0  # ns, in all and by the last look
        self.next = 1  # the fetch after which to look again
        self.looked = self.asked = 0  # fetches at the last look, at the last question

    def begin(self, worker):
        """A fetcher is about to be made: persistent workers make one for each pass. The pass before it has ended."""
        if worker.passes >= 0:
            self.write(worker.passes, worker, "end")
        worker.fetches = 0
        self.next, self.looked, self.asked = 1, 0, 0
        self.write(worker.passes + 1, worker, "begin")

    def look(self, worker):
        """The worker is about to wait: after fetches 1, 2, 4, 8 and so on, and where nothing came while it waited."""
        fetches = worker.fetches
        idle, self.asked = fetches == self.asked and fetches > self.looked, fetches
        if fetches < self.next and not idle:
            return
        if (self.spent + self.last) * _SHARE > mono() - self.since:  # too soon for what it costs
            self.next = max(self.next, fetches + (fetches >> 3) + 1)
            return
        self.next = 2 * fetches
        self.write(worker.passes, worker, "window")

    def end(self, worker):
        if worker.passes >= 0:
            self.write(worker.passes, worker, "end")

    def write(self, number, worker, when, only=None):
        """only: extents that there are rows of."""
        try:
            self.rows(number, worker, when, only)
        except Exception as e:
            worker.extents = None
            # as in some sandboxes: no error of ours
            unreadable = (type(e) is FileNotFoundError or type(e) is PermissionError) and e.filename == _PAGEMAP
            if not unreadable and not guard.none_left(e) and guard.theirs(e):
                raise

    def rows(self, number, worker, when, only):
        t0, c0 = mono(), cpu()
        self.looked = worker.fetches
        found = self.read()
        self.last = mono() - t0
        self.spent += self.last
        ring.ring.hook_ns += cpu() - c0
        for extent, (present, private) in zip([0] + self.numbers, found):
            if only is not None and extent not in only:
                continue
            ring.put_json(ring.PRIVATE, {"pass": number, "worker": worker.number, "fetch": worker.fetches, "when": when, "extent": extent,
                                         "parent": self.parent, "present": present, "private": private, "dur_ns": self.last}, t0)

    def read(self):
        """[(bytes in memory, bytes of the worker alone)] of all together and of each."""
        found = [[0, 0] for _ in range(len(self.numbers) + 1)]
        fd = os.open(_PAGEMAP, os.O_RDONLY | os.O_CLOEXEC)
        try:
            for first, count, which in self.segments:
                alone = present = 0
                for at in range(first, first + count, _CHUNK):
                    top = os.pread(fd, min(_CHUNK, first + count - at) * _ENTRIES, at * _ENTRIES)[7::8]
                    pages = top.count(_ALONE)
                    alone += pages
                    present += pages + top.count(_SHARED)
                for i in (0,) + tuple(w + 1 for w in which):
                    found[i][0] += present * mmap.PAGESIZE
                    found[i][1] += alone * mmap.PAGESIZE
        finally:
            os.close(fd)
        return found
