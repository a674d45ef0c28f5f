"""The generators that one fetcher can draw from, watched from fetch to fetch.

Workers read each state once per fetch, after it: nothing of the loader draws between two. The main process (num_workers=0)
also reads before it, as the training loop draws there. Those that only the search of the whole process has found (heap.py)
may be many, and most are somebody else's: they are hidden, looked at in turn, and written only once they have moved.
"""
import random
import sys

from ..patch.load import native
from ..record import guard, layouts, ring
from . import discover, heap, objects, opencv, quasi, rng, sample  # noqa: F401  two that register readers
from .quiet import Quiet

BEGIN, FOUND, BEFORE, AFTER, FORK, TASK, END = range(len(layouts.WHEN_VALUES))
# Fetches after which the walk is done again: generators made late, in __getitem__ or by __iter__.
SEARCH_AFTER = {0, 7, 255, 4095}
EACH = 2  # fetches of a pass after which all hidden generators are looked at;
TURN = 4  # then so many, in turn
EIGHTH = 8  # of fetches that Python sees all, the time of one of so many stands for all; so often it looks at what lies in no dictionary
QUIET = 32  # one of so many is seen by Python in any case

_NUMBERS = {}  # (path, kind) -> number of the slot in this process
_RAW_SEEN = set()  # blocks of Mersenne twisters whose whole state this process has written
_RAW_MAX = 1 << 14
_ready = {}  # id of a generator of a library -> its reader: it reads the same memory in a process that is forked


def after_fork():
    _NUMBERS.clear()
    _RAW_SEEN.clear()


class Slot:
    __slots__ = ("found", "obj", "reader", "number", "last", "current", "peek", "at", "place")

    def __init__(self, found, obj, reader, number, slots):
        self.found, self.current = found, found.current
        self.at = self.place = -1  # in the Peeks and Places of its Slots
        self.take(obj, reader, number, slots)

    def take(self, obj, reader, number, slots):
        """Another object, or the first, hangs in the slot's place. What its region holds is noted before its state, so that what
        is drawn in between shows."""
        self.obj, self.reader, self.number, self.peek = obj, reader, number, reader.peek
        self.hang(obj, slots)
        self.renew(slots.peeks)
        self.last = reader.peek()

    def hang(self, obj, slots):
        """It is this that hangs in its place."""
        found = self.found
        if type(found.holder) is dict and type(found.key) is str:
            place = found.holder, found.key, found.held(obj)
            if self.place < 0:
                self.place = slots.places.add(*place)
            else:
                slots.places.set(self.place, *place)

    def renew(self, peeks):
        region = self.found.through(self.reader.region, self.obj)
        if self.at >= 0:
            peeks.set(self.at, *(region or _NOWHERE))
        elif region is not None:
            self.at = peeks.add(*region)
        if region is not None and self.found.role != "order":  # of those the whole state is written
            peeks.tell(self.at, self.number, self.reader.form)

    def slow(self):
        return self.reader.region is None or self.place < 0 and self.found.holder is not None

    def elsewhere(self, changed, unseen):
        """Reports whether another object may hang in its place. changed: of Places; unseen: places of no dictionary are due."""
        return self.place in changed if self.place >= 0 and not self.unsure() else self.found.holder is not None or unseen

    def unsure(self):
        """Whether another may be put into its place of which its dictionary knows nothing."""
        return type(self.found) is Global and not self.found.known


_NOWHERE = (0, 0, 0, 0, None)  # a region in which nothing moves


class Global(discover.Found):
    """The generator behind random.random(), torch.rand() or numpy.random.rand(), looked up anew each time. It hangs in a module."""
    __slots__ = ("look", "known")

    def __init__(self, path, kind, look, module, name):
        holder = objects.plain(module.__dict__)
        discover.Found.__init__(self, path, look(), kind, "global", "", "", holder if name in holder else None, name)
        self.look, self.known = look, True

    def current(self):
        return self.look()

    def held(self, obj):
        return dict.get(self.holder, self.key)

    def through(self, region, obj):
        """NumPy's hangs in a RandomState, which may be given another one (np.random.set_bit_generator)."""
        owner = dict.get(self.holder, self.key) if self.holder is not None else None
        if owner is obj:
            return region
        place = None if owner is None else rng.place_of_bits(owner, obj)
        self.known = region is not None and len(region) == 5 and place is not None
        return region[:4] + ((region[4], owner), place, id(obj)) if self.known else region


def before_fork():
    """In the parent of workers: what each of them would do again, on pages of memory that it would have to copy."""
    sample.bind()
    discover.modules()
    known = dict(_ready)
    _ready.clear()
    for found in globals_():
        obj = found.current()
        reader = None if obj is None else known.get(id(obj)) or rng.reader(obj, found.kind)
        if reader is not None and reader.region is not None and reader.region[4] is obj:
            _ready[id(obj)] = reader


def made_before(obj):
    """A generator's reader, if the parent has left one and it still fits."""
    reader = _ready.get(id(obj))
    if reader is None or reader.region[4] is not obj:
        return None
    reader.peek()  # torch's generator may have got another state object
    return reader if reader.region is not None else None


def numpy_global():
    mtrand = rng.numpy_random()
    return None if mtrand is None else mtrand._rand._bit_generator


def globals_():
    """The process-wide generators of the libraries that are loaded."""
    torch = sys.modules["torch"]
    found = [Global("random", "random", lambda: random._inst, random, "_inst"),
             Global("torch", "torch", lambda: torch.default_generator, torch, "default_generator")]
    if numpy_global() is not None:
        found.append(Global("numpy", "bits", numpy_global, rng.numpy_random(), "_rand"))
    for _, _, others in rng.OTHERS.values():
        found += others()
    return found


class Hidden:
    """A generator that no walk leads to, as it was when it was first seen."""
    __slots__ = ("found", "obj", "reader", "last", "raw", "t")

    def __init__(self, found, obj, reader):
        self.found, self.obj, self.reader = found, obj, reader
        self.last, self.raw, self.t = reader.peek(), reader.raw(), ring.mono()


class Slots:
    def __init__(self, loader, number, worker, dataset=None, collate=None):
        self.where = (loader, number, worker)  # as in PROTOCOL.md's state record
        self.dataset, self.collate = dataset, collate
        self.slots, self.ids, self.last_ns = [], set(), ring.mono()
        self.peeks, self.places = native.Peeks(), native.Places()
        self.slow = False  # some are not to be compared by these two
        self.unseen = False  # some may be replaced without their knowing
        self.hidden, self.turn, self.begun, self.cut = [], 0, BEGIN, None

    def begin(self, when=BEGIN):
        self.begun = when
        walk = discover.Walk()
        for found in globals_() + (walk.roots(self.dataset, self.collate) if self.dataset is not None else []):
            self.watch(found, when, 0, walk)
        self.hide()
        if self.dataset is not None:
            self.cut = walk.cut
            heap.write_walk(self.where, 0, walk)

    def hide(self):
        for found in heap.hidden():
            obj = found.current()
            kind = None if obj is None else rng.kind_of(type(obj))
            reader = None if kind is None or rng.key(obj, kind) in self.ids else rng.reader(obj, kind)
            if reader is not None:
                self.ids.add(rng.key(obj, kind))
                self.hidden.append(Hidden(found, obj, reader))

    def globals_(self, when, fetch):
        """NumPy's generator, where the program has loaded numpy.random only now."""
        if len(self.slots) < 3 and numpy_global() is not None:
            for found in globals_():
                self.watch(found, when, fetch)

    def watch(self, found, when, fetch, walk=None):
        obj = found.current()
        key = None if obj is None else rng.key(obj, found.kind)
        if obj is None or key in self.ids:
            return
        reader = made_before(obj) or rng.reader(obj, found.kind)
        if reader is None:
            if walk is not None:
                walk.leave("unreadable", found.path, 1)
            return
        self.ids.add(key)
        slot = Slot(found, obj, reader, _number(found, reader, obj), self)
        self.add(slot)
        self.write(slot, when, fetch, 0)

    def add(self, slot):
        self.slots.append(slot)
        self.note(slot)

    def note(self, slot):
        self.slow = self.slow or slot.slow()
        self.unseen = self.unseen or slot.unsure() or type(slot.found) is Global and slot.place < 0

    def search(self, iterator, fetch):
        """Generators that were not there when the fetcher was made."""
        with Quiet():
            self.seek(iterator, fetch)

    def seek(self, iterator, fetch):
        walk = discover.Walk()
        walk.roots(self.dataset, self.collate)
        if iterator is not None:
            walk.iterator(iterator)
        known = {slot.found.path: slot for slot in self.slots}
        for found in globals_() + walk.found:
            slot = known.get(found.path)
            if slot is None:
                self.watch(found, FOUND, fetch, walk)
            elif slot.found.holder is None and found.obj is not slot.obj and type(found) is discover.Found and rng.key(found.obj) not in self.ids:
                slot.found, slot.current = found, found.current  # no place to look at: a local variable, say
                self.replaced(slot, found.obj, fetch)
        if walk.cut != self.cut:
            self.cut = walk.cut
            heap.write_walk(self.where, fetch + 1, walk)

    def before(self, fetch):
        self.look(BEFORE, fetch, ring.mono() - self.last_ns)

    def after(self, fetch, dur_ns):
        self.look(AFTER, fetch, dur_ns)
        self.last_ns = ring.mono()

    def look(self, when, fetch, dur_ns):
        """Writes the states that changed since the last look. The generators of the libraries are rarely put in another's place: where
        that does not show in a dictionary it is looked at in one of EIGHTH fetches."""
        moved, changed, unseen = self.peeks.moved() or (), self.places.changed() or (), not fetch % EIGHTH
        for slot in self.slots if moved or changed or unseen or self.slow else ():
            if slot.elsewhere(changed, unseen):
                obj = slot.current()
                if obj is not slot.obj:
                    self.replaced(slot, obj, fetch)
                    continue
                if slot.place in changed:
                    slot.hang(obj, self)
            if slot.reader.region is not None and slot.at not in moved:
                continue
            peeked = slot.peek()
            if slot.at in moved:
                if type(slot.found) is Global and slot.current() is not slot.obj:
                    self.replaced(slot, slot.current(), fetch)
                    continue
                slot.renew(self.peeks)  # it may lie elsewhere now
            if peeked != slot.last or (slot.at >= 0 and self.peeks.told(slot.at)):  # told: the last was written without us
                slot.last = peeked
                self.write(slot, when, fetch, dur_ns)
        if self.hidden:
            self.look_at_hidden(when, fetch)

    def look_at_hidden(self, when, fetch):
        """At all, or at a few in turn: before and after a fetch at the same."""
        if fetch >= EACH and when in (BEFORE, AFTER):
            first = self.turn % len(self.hidden)
            some = self.hidden[first:first + TURN]
            if when == AFTER:
                self.turn = first + TURN
        else:
            some = list(self.hidden)
        for h in some:
            if h.found.current() is not h.obj or h.reader.peek() != h.last:
                self.show(h, when, fetch)

    def show(self, hidden, when, fetch):
        """One that has moved: from now on it is looked at after each fetch."""
        self.hidden.remove(hidden)
        hidden.found.path = objects.unlike(hidden.found.path, {s.found.path for s in self.slots})
        slot = Slot(hidden.found, hidden.obj, hidden.reader, _number(hidden.found, hidden.reader, hidden.obj), self)
        now, slot.last = slot.last, hidden.last
        place, pos = slot.reader.place(slot.last)
        ring.pack(ring.STATE, hidden.t, slot.number, *self.where, 0, self.begun, len(place), pos, 0, place + hidden.raw)
        self.add(slot)
        if slot.current() is not slot.obj:
            self.replaced(slot, slot.current(), fetch)
        elif now != slot.last:
            slot.last = now
            self.write(slot, when, fetch, ring.mono() - hidden.t)

    def end(self, fetch):
        """The last states of a pass: also of what has not changed since its last row."""
        if fetch < 0:
            return
        if self.hidden:
            self.look_at_hidden(END, fetch)
        for slot in self.slots:
            slot.last = slot.peek()
            self.write(slot, END, fetch, 0)

    def replaced(self, slot, obj, fetch):
        """Another object hangs in the slot's place, or none."""
        kind = None if obj is None else "bits" if type(slot.found) is Global and slot.found.kind == "bits" else rng.kind_of(type(obj))
        reader = None if kind is None else rng.reader(obj, kind)
        if reader is not None:
            self.ids.discard(rng.key(slot.obj))
            self.ids.add(rng.key(obj, kind))
            slot.take(obj, reader, _number(slot.found, reader, obj), self)
            self.note(slot)
            self.write(slot, FOUND, fetch, 0)

    def write(self, slot, when, fetch, dur_ns):
        reader = slot.reader
        place, pos = reader.place(slot.last)
        raw = b""
        if not place:
            raw = reader.raw()
        elif slot.found.role == "order":  # rows that readers of the data's generators skip: no substitute for theirs
            raw = reader.raw()
        elif when == END and self.where[2] >= 0:  # it adds nothing to the row before
            pass
        elif (fetch == 0 or when not in (AFTER, BEFORE)) and place not in _RAW_SEEN:  # fetch 0: may have seeded it
            raw = reader.raw()
            if len(_RAW_SEEN) < _RAW_MAX:
                _RAW_SEEN.add(place)
        ring.pack(ring.STATE, 0, slot.number, *self.where, fetch, when, len(place), pos, dur_ns, place + raw)


def _number(found, reader, obj):
    key = (found.path, reader.kind)
    number = _NUMBERS.get(key)
    if number is None:
        number = _NUMBERS[key] = len(_NUMBERS)
        ring.put_json(ring.SLOT, {"slot": number, "path": found.path, "kind": reader.kind, "class": objects.name(type(obj)),
                                  "owner": found.owner,
                                  "role": found.role, "attr": found.attr, "source": found.source, "first": found.first, "last": found.last})
    return number


def write_order(loader, number, number_of_pass):
    """The generators of a loader's samplers as a pass begins."""
    slots = Slots(number, number_of_pass, -1)
    for found in discover.Walk().samplers(loader, objects.attributes(loader).get("dataset")):
        slots.watch(found, BEGIN, 0)


class Child:
    """The generators of a process that is no DataLoader worker: as it begins, and as it ends."""

    def __init__(self):
        self.slots = Slots(0, 0, -1)
        self.slots.begin(FORK)

    def end(self):
        try:
            for found in globals_():  # NumPy's, where it was loaded meanwhile
                self.slots.watch(found, END, 0)
            self.slots.end(0)
        except Exception as e:
            if guard.theirs(e):
                raise
