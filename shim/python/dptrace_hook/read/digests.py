"""What samples contain, as they leave the dataset: digests of some of them (PROTOCOL.md, "Digests").

Taken between the fetch and the collate function, in the worker. Which samples, and how much of each, is a question of
time: see Budget. Contents are read by sample.py.
"""
import struct
import sys

from ..record import guard, layouts, ring
from ..record.ring import cpu, mono
from . import overlaps, sample
from .quiet import quiet

FIRST = 32  # samples of each worker and pass that are read whole
FIRST_BYTES = 32 << 20  # in all of their large leaves
SHARE = 100  # of the time of its fetches a worker spends one part here, once the first are through
EAGER_NS, LONG = 10 * 10**9, 4  # beyond so much of it one part of that: what a program does wrong, it has done by then
FREE_NS = 10 * 10**6  # a process digests all samples of a loader for so long, whatever its fetches take
EARLY, LATER = 2, 4  # of both one part, where workers start for a later pass than these: what two passes have in common, they show
FIRST_NS, FIRST_SHARE = 10 * 10**6, 4  # the first of a pass may cost so much, and one part of its fetches so far
DEBT_NS = 250 * 10**6  # by the first of all passes: beyond it they too have to fit into the share
# What digests cost is measured by the clock, as asking for CPU time costs more than a digest (7 us where it is no vDSO
# call). What is far above the usual was the neighbours' on a busy machine.
GUESS_NS = 5000  # for a sample, to begin with
SURELY_NS, SURELY_BYTE_NS = 20000, 4  # no sample, and no byte of one that is read whole, takes longer
MEASURED = 8
MAX_POWER = 40
MAX_SAMPLES = 512  # in a record
MAX_NAMES = 1 << 10  # bytes
_EVERYTHING = 1 << 62
_NONE = bytes(16)
_DIGEST = layouts.packed(layouts.DIGEST_FIELDS)

_budgets = {}  # loader -> Budget, of loaders without workers
_begun = 0  # the latest pass of this process, which its workers inherit; 0 in one that inherits nothing
_failed = False  # an error of ours: no more of it in this process


def pass_begins(number):
    """A loader begins its pass of this number, in this process, and may start workers for it."""
    global _begun
    _begun = number


def of_pass(loader, serving):
    """The Digests of one pass of one worker; None: there are none."""
    if _failed or ring.ring.dead:
        return None
    how = ring.session().get("digest")
    if how == "off":
        return None
    if serving is not None:
        budget = serving.budget
        if budget is None:
            budget = serving.budget = Budget(FREE_NS, SHARE) if _begun < EARLY else Budget(FREE_NS // LATER, SHARE * LATER)
    else:
        if len(_budgets) > 256:
            _budgets.clear()
        budget = _budgets.setdefault(loader, Budget(FREE_NS, SHARE))
    return Digests(budget, how == "full")


class Budget:
    """Of one loader in one process: how many samples are digested once the first are through. Those whose position or
    index is a multiple of 2^power: so workers and passes that know nothing of one another take the same ones."""
    __slots__ = ("free", "share", "fetched", "counts", "samples", "spent", "each", "power")

    def __init__(self, free, share):
        self.free, self.share = free, share  # ns, for which all samples are digested; as SHARE
        self.fetched = self.samples = self.spent = self.power = 0  # ns, number, ns
        self.counts = 0  # ns of fetches, those beyond EAGER_NS as one part in LONG
        self.each = GUESS_NS  # for a sample that is digested, of late

    def fetch(self, ns, samples):
        """Another fetch is over. Down by one power only where there is room to spare, so that it stays the same."""
        self.counts += ns if self.fetched < EAGER_NS else ns // LONG
        self.fetched += ns
        self.samples += samples
        cost = self.share * self.each * self.samples
        while self.counts << self.power < cost and self.power < MAX_POWER:
            self.power += 1
        if self.power and self.counts << self.power > 3 * cost:
            self.power -= 1

    def took(self, ns, samples):
        new = min(ns // samples, 4 * self.each)
        self.spent += new * samples
        self.each = max(self.each + ((new - self.each) >> 2), 1)


class Digests:
    __slots__ = ("budget", "full", "position", "room", "fetched", "spent", "windows", "named", "waiting", "looks")

    def __init__(self, budget, full):
        self.budget, self.full = budget, full
        self.position = 0  # of the next sample
        self.looks = 0
        self.room = FIRST_BYTES
        self.fetched = self.spent = 0  # ns of fetches, of digests of the first samples
        self.windows = None
        self.named = None  # names of parts; b"": they are told, or there are none
        self.waiting = None  # for the batch: samples of which its rows are to be read, too

    def look(self, fetches, data, t0, own):
        """The fetch has given `data`, at t0. own: collate is the program's, and may read by what samples hold."""
        self.guarded(fetches, self.take, fetches.asked, data, t0 - fetches.t_fetch, own)

    def collated(self, fetches, batch):
        """Collate has made `batch` of it; it is None where that failed."""
        self.guarded(fetches, self.rows, batch)

    def guarded(self, fetches, do, *args):
        global _failed
        # What digests take varies from one to the next at first; then one of so many stands for all: not by the number of the fetch,
        # which says whether there are samples to be taken. rows() is not always called, so each of the two has its own turn.
        self.looks += do != self.rows
        measured = 1 if self.looks < MEASURED else MEASURED * (not self.looks % MEASURED)
        c0 = cpu() if measured else 0
        try:
            with quiet():  # no mode or subclass of the program's is asked
                do(fetches, *args)
        except Exception as e:
            fetches.digests, _failed = None, True
            if guard.theirs(e):
                raise
        finally:
            if measured:
                ring.ring.hook_ns += measured * (cpu() - c0)

    def fetch(self, ns, samples):
        self.fetched += ns
        self.budget.fetch(ns, samples)

    def take(self, fetches, asked, data, fetching, own):
        if not fetches.batched:
            samples, asked = (data,), (asked,)
        elif type(data) is list or type(data) is tuple:
            samples = data
        else:  # a container of the program's own
            self.position += len(asked) if type(asked) is list else 1
            return
        first, n = self.position, len(samples)
        self.position += n
        indices = indices_of(asked, n)
        sample.bind()
        rows = []
        self.waiting = None
        if self.full:
            rows = [(k, sample.read(samples[k], _EVERYTHING)) for k in range(n)]
        elif first < FIRST:
            rows = self.wholes(samples, min(n, FIRST - first), fetching)
        if indices is not None and first < FIRST and len(rows) > 1:
            rows = self.marked(samples, rows[:FIRST], indices) + rows[FIRST:]
        chosen = self.chosen(first, len(rows), n, indices)
        spent = 0
        if chosen:
            t0 = mono()
            rows += [(k, sample.read(samples[k], 0)) for k in chosen]
            spent = mono() - t0
        rows = [row for row in rows if row[1][0]]
        if not rows:
            return
        if self.named is None:
            self.named = self.names(samples[rows[0][0]], rows[0][1])
        if own and rows[0][1][0] & sample.BRIEF:
            self.waiting = rows, first, indices, n, len(chosen), spent
        else:
            self.write(fetches, rows, first, indices, None, len(chosen), spent)

    def names(self, held, read):
        """Of its parts, to be told with the first of a pass."""
        found = sample.names(held)
        return ",".join(found).encode("utf-8", "replace")[:MAX_NAMES] if 8 * len(found) == len(read[4]) else b""

    def rows(self, fetches, batch):
        """Reads what those that wait have become."""
        t0, (rows, first, indices, n, chosen, spent) = mono(), self.waiting
        self.waiting, of = None, None
        if batch is not None:
            of = sample.rows(batch, n) if fetches.batched else lambda k: batch
        became = [(0, _NONE)] * len(rows)
        if of is not None:
            became = [sample.read(of(k), 0)[:2] for k, _ in rows]
        ns = mono() - t0
        if chosen:
            spent += ns
        else:
            ns = min(ns, SURELY_NS * len(rows))
            self.spent += ns
            self.budget.spent += ns
        self.write(fetches, rows, first, indices, became, chosen, spent)

    def wholes(self, samples, n, fetching):
        """The first of the pass, as long as there is time: they are only few, but may be large."""
        budget, rows, spent, t0 = self.budget, [], 0, mono()
        may = FIRST_NS + (self.fetched + fetching) // FIRST_SHARE - self.spent
        may = min(may, DEBT_NS + (budget.fetched + fetching) // budget.share - budget.spent)
        while len(rows) < n and spent < may:
            read = sample.read(samples[len(rows)], self.room)
            self.room -= read[3]
            rows.append((len(rows), read))
            t1 = mono()
            spent += min(t1 - t0, SURELY_NS + SURELY_BYTE_NS * read[3])
            t0 = t1
        self.spent += spent
        budget.spent += spent
        return rows

    def marked(self, samples, rows, indices):
        """Tells of those that go on where the sample before them in the dataset began."""
        if self.windows is None:
            self.windows = overlaps.Windows()
        t0, marked = mono(), rows[:1]
        for k, read in rows[1:]:
            if read[0] and indices[k] == indices[k - 1] + 1 and self.windows.follows(samples[k - 1], samples[k]):
                read = (read[0] | sample.FOLLOWS,) + read[1:]
            marked.append((k, read))
        self.spent += mono() - t0
        return marked

    def mask(self):
        """Of the positions or indices of samples that are read, no bit of it is set; -1: others are read, too."""
        if self.full or self.position < FIRST or self.budget.spent < self.budget.free:
            return -1
        return (1 << self.budget.power) - 1

    def chosen(self, first, at, n, indices):
        mask = 0 if self.budget.spent < self.budget.free else (1 << self.budget.power) - 1
        if indices is None:
            return range(at + (-(first + at) & mask), n, mask + 1)
        return [k for k in range(at, n) if not indices[k] & mask]

    def write(self, fetches, rows, first, indices, became, chosen, spent):
        t0 = mono()
        batch = fetches.fetch if fetches.serving is None else fetches.serving.batch
        for start in range(0, len(rows), MAX_SAMPLES):
            part = rows[start:start + MAX_SAMPLES]
            n = len(part)
            numbers = [first + k for k, _ in part]
            if indices is not None:
                numbers += [indices[k] for k, _ in part]
            names, self.named = self.named, b""
            pieces = [_DIGEST.pack(fetches.loader, fetches.number, fetches.worker, batch & 0xFFFFFFFF, fetches.fetch, n, indices is not None,
                                   became is not None, len(names)),
                      struct.pack("<%dq" % len(numbers), *numbers), bytes([d[0] for _, d in part])]
            pieces += [d[1] for _, d in part]
            pieces += [d[2] for _, d in part]
            if became is not None:
                those = became[start:start + MAX_SAMPLES]
                pieces.append(bytes([d[0] for d in those]))
                pieces += [d[1] for d in those]
            pieces.append(names)
            pieces.append(bytes([len(d[4]) >> 3 for _, d in part]))
            pieces += [d[4] for _, d in part]
            ring.put(ring.DIGEST, b"".join(pieces))
        if chosen:
            self.budget.took(spent + mono() - t0, chosen)


def own(collate):
    """It is none of torch's, which change nothing."""
    known = sys.modules.get("torch.utils.data._utils.collate")
    return known is None or (collate is not known.__dict__.get("default_collate") and collate is not known.__dict__.get("default_convert"))


def indices_of(asked, n):
    """The n integers that were asked for; None where they are something else, or of an IterableDataset."""
    if (type(asked) is not list and type(asked) is not tuple) or len(asked) != n or n == 0 or asked[0] is None:
        return None
    kinds = set(map(id, map(type, asked)))
    if kinds == {id(int)}:
        found = asked
    elif kinds <= set(sample.integers()):
        found = [i.item() for i in asked]
    else:
        return None
    return found if -2**63 <= min(found) and max(found) < 2**63 else None
