"""Values that hang on a dataset, on what it holds, or on a collate function, as a pass begins.

Of persistent workers: what held.py finds, in the parent and in the workers, which hold copies of the objects; and, in the
parent, whether the code of a fetch reads what has changed, and what could not be compared. Of runs of several ranks: scalars
and containers of the datasets, once, by their contents. Instance dictionaries and exact builtin containers are read, nothing
else: no property, no iteration and no comparison of the user's.
"""
import functools
import os
import sys
import types
from itertools import islice

from ..record import ring
from ..record.ring import cpu
from . import contents, discover, groups, held, identity, objects, reads, short_digests

MAX_OBJECTS = 400
MAX_SCALARS = 64
MAX_OTHERS = 64  # that are told not to have been compared
MAX_SHARED = 8
MAX_ANALYSES = 8  # of the code of one loader
MAX_ITEMS = 64  # of a container
MAX_KEYS = 16  # of a dictionary whose items are told of as if they were attributes
MAX_LEAVES = 16  # datasets of a loader whose contents are told of

_ROOTS = ("dataset", "collate_fn")
_PLAIN = objects.ATOMS | objects.ids(list, tuple, dict)


class Attribute:
    __slots__ = ("path", "owner", "name", "value")

    def __init__(self, path, owner, name, value):
        self.path, self.owner, self.name, self.value = path, owner, name, value


class Walk:
    """Breadth first, paths as discover spells them. wanted: of a value, whether it is to be told of."""

    def __init__(self, wanted, most=MAX_SCALARS):
        self.wanted, self.most = wanted, most
        self.found, self.seen, self.queue = [], set(), []

    def run(self, roots):
        for path, obj in roots:
            self.add(obj, path)
        for at, (obj, path) in enumerate(self.queue):  # it grows as we go
            if at >= MAX_OBJECTS:
                break
            self.visit(obj, type(obj), path)
        return self.found

    def add(self, obj, path):
        if id(type(obj)) not in objects.ATOMS and id(obj) not in self.seen and len(self.queue) < MAX_OBJECTS:
            self.seen.add(id(obj))
            self.queue.append((obj, path))

    def tell(self, value, path, owner, name):
        if self.wanted(value) and len(self.found) < self.most:
            self.found.append(Attribute(path, owner, name, value))

    def visit(self, obj, cls, path):
        if id(cls) in objects.DICTS:
            self.items(obj, path)
        elif cls is list or cls is tuple:
            if len(obj) <= MAX_ITEMS or id(type(obj[0])) not in _PLAIN:
                for i, value in enumerate(obj[:MAX_ITEMS]):
                    self.add(value, "%s[%d]" % (path, i))
        elif cls is types.FunctionType:
            self.function(obj, path)
        elif cls is types.MethodType:
            self.add(obj.__self__, path + ".__self__")
            self.add(obj.__func__, path + ".__func__")
        elif cls is functools.partial:
            function, args, keywords = objects.partial(obj)
            self.add(function, path + ".func")
            for i, value in enumerate(tuple.__getitem__(args, slice(MAX_ITEMS))):
                self.add(value, "%s.args[%d]" % (path, i))
            self.items(keywords, path + ".keywords")
        elif not _barren(cls):
            for name, value in list(islice(objects.attributes_of(obj, cls).items(), 2 * MAX_ITEMS)):
                if type(name) is str:
                    self.tell(value, "%s.%s" % (path, name), cls, name)
                    self.add(value, "%s.%s" % (path, name))

    def items(self, obj, path):
        few = dict.__len__(obj) <= MAX_KEYS
        for key, value in list(islice(dict.items(obj), MAX_ITEMS)):
            if type(key) is str or type(key) is int:
                at = "%s[%r]" % (path, key)
                if few and type(key) is str:
                    self.tell(value, at, None, key)
                self.add(value, at)

    def function(self, f, path):
        for cell, variable in zip(f.__closure__ or (), f.__code__.co_freevars):
            try:
                value = cell.cell_contents
            except ValueError:  # empty
                continue
            self.add(value, "%s<closure %s>" % (path, variable))
        defaults, arguments = f.__defaults__ or (), f.__code__.co_varnames[:f.__code__.co_argcount]
        for variable, value in zip(arguments[len(arguments) - len(defaults):], defaults):
            self.add(value, "%s<default %s>" % (path, variable))
        for variable, value in list((f.__kwdefaults__ or {}).items()):
            self.add(value, "%s<default %s>" % (path, variable))


class Whole(Walk):
    """Containers of plain values are told of by their contents, and not gone into."""

    def visit(self, obj, cls, path):
        if id(cls) in objects.DICTS:
            plain = all(id(type(v)) in _PLAIN for v in islice(dict.values(obj), MAX_KEYS))
        else:
            plain = (cls is list or cls is tuple) and all(id(type(v)) in _PLAIN for v in obj[:MAX_KEYS])
        if not plain:
            Walk.visit(self, obj, cls, path)


def _barren(cls):
    """Objects of this class hold nothing to look at."""
    if cls is types.ModuleType or issubclass(cls, (type, sys.modules["torch"].Tensor)) or issubclass(cls, objects.CODE_FREE):
        return True
    return objects.module(cls) == "?" or objects.module(cls) == "numpy" or objects.module(cls).partition(".")[0] in objects.BARREN


class Told:
    """What this process has told of one loader's attributes."""

    def __init__(self, stream=False):
        self.looks = self.analyses = 0
        self.stream = stream
        self.values = {}  # path -> (class, text, items, digest)
        self.wholes, self.shown = {}, {}  # of the main process: path -> digest of everything; of what is shared, what it was
        self.missed = set()  # paths
        self.changed = set()  # paths
        self.paths = {}  # path -> whether the code that fetches reads it

    def changes(self, when, at, dataset, collate, worker_init=None):
        """Writes what is new since the last time; of what is no longer found, its path alone."""
        walk, write, main = held.Walk(), _Writer(when, at), when == "iter"
        walk.run(zip(_ROOTS, (dataset, collate)))
        now, rows, partly, budget = {}, [], [], short_digests.Budget()
        for place in walk.places:
            told = held.told(place.value)
            now[place.path] = told[:4]
            renewed = main and not told[4] and self.renewed(place, told, partly, budget)
            if self.values.get(place.path) != told[:4]:
                rows.append((place, told))
            elif renewed:  # not where the workers look, too
                rows.append((place, told[:3] + ("",)))
        gone = [path for path in self.values if path not in now]
        self.values = now
        if main and not self.looks:
            self.shown = {place.path: held.seen(place.value) for place in walk.shared}
            if self.stream:
                tell_held(at, dataset, collate)
        if main and self.looks:
            new = {place.path for place, _ in rows} - self.changed
            self.changed |= new
            self.look_closer(walk, (dataset, collate, worker_init), new, partly, write)
        self.looks += 1
        for place, told in rows:
            write.row(place, {"class": told[0], "value": told[1], "items": told[2], "ordered": told[3],
                              "read": self.paths.get(place.path, "")})
        for path in gone:
            write.row(held.Place(path, None, None, "", None), {"class": "", "value": ""})

    def renewed(self, place, told, partly, budget):
        """Of what the short digest does not cover: is it another than before?"""
        whole = short_digests.whole(place.value, budget) if told[3] else None
        if whole is None:
            partly.append((place, ""))
            return False
        before, self.wholes[place.path] = self.wholes.get(place.path), whole
        return before is not None and before != whole

    def look_closer(self, walk, made_of, new, partly, write):
        """From the second pass on, in the main process: what of all that do the workers read, and what was not compared?
        new: paths of what has changed for the first time."""
        missed = partly + walk.missed
        if self.looks == 1 or new and self.analyses < MAX_ANALYSES:
            self.analyses += 1
            changing = [(id(p.holder), p.name) for p in walk.places if p.path in self.changed]
            code = reads.Reads(*made_of, changing)
            for place in walk.places + walk.shared + [p for p, _ in walk.missed if p.holder is not None]:
                self.paths[place.path] = code.read(id(place.holder), place.name)
            self.paths.update(dict.fromkeys(_ROOTS, "yes"))
            missed += held.unseen(walk, code)
        self.tell_shared(walk.shared, write)
        for place, why in missed[:MAX_OTHERS]:
            read = self.paths.get(place.path, "")
            if place.path not in self.missed and read != "no":
                self.missed.add(place.path)
                cls, _, items, _, _ = held.told(place.value)
                write.row(place, {"when": "missed", "class": cls, "value": why, "items": items, "read": read})

    def tell_shared(self, places, write):
        for place in places:
            before, now = self.shown.get(place.path), held.seen(place.value)
            self.shown[place.path] = now
            if self.paths.get(place.path, "") != "no" and before is not None and (before != now or not now and self.looks == 1):
                write.row(place, {"when": "shared", "class": objects.name(type(place.value)), "value": "changed" if now else "",
                                  "read": self.paths.get(place.path, "")})


class _Writer:
    def __init__(self, when, at):
        self.when, self.at, self.sources = when, at, {}

    def row(self, a, more):
        source, first, last = self.source(a.owner)
        facts = {"loader": self.at[0], "pass": self.at[1], "worker": self.at[2], "when": self.when, "path": a.path,
                 "attr": a.name if type(a.name) is str else "", "source": source, "first": first, "last": last}
        facts.update(more)
        ring.put_json(ring.ATTRIBUTE, facts)

    def source(self, owner):
        if owner is None or objects.library(owner.__name__ if type(owner) is types.ModuleType else objects.module(owner)):
            return "", 0, 0
        known = self.sources.get(id(owner))
        if known is None:
            known = self.sources[id(owner)] = discover.source(owner) or ("", 0, 0)
        return known


def at_iter(iterator, loader, new):
    """A pass begins, in the main process. new: the loader's first."""
    c0, d, it = cpu(), objects.attributes(loader), iterator.__dict__
    at = it["_dptrace_at"] + (-1,)
    if d.get("persistent_workers") is True and it.get("_num_workers"):
        told = it.setdefault("_dptrace_told", Told(it.get("_dataset_kind") == 1))
        told.changes("iter", at, d.get("dataset"), d.get("collate_fn"), d.get("worker_init_fn"))
    elif new and it.get("_dataset_kind") == 1 and it.get("_num_workers", 0) > 1:
        tell_held(at, d.get("dataset"), d.get("collate_fn"))
    if new and _ranks() > 1:
        at_rank(loader, at)
    ring.ring.hook_ns += cpu() - c0


def tell_held(at, dataset, collate):
    """By what the workers of a stream may work for one another."""
    walk, write = held.Walk(), _Writer("held", at)
    walk.run(zip(_ROOTS, (dataset, collate)))
    cut = [place for place, _ in walk.missed if place.holder is None]
    for place in (walk.shared + cut)[:MAX_SHARED]:
        write.row(place, {"class": objects.name(type(place.value)), "value": ""})


def at_fetch(fetches, dataset, collate):
    """A worker has made the fetcher of a pass."""
    worker = fetches.serving
    if worker is None or not worker.persistent:
        return
    c0 = cpu()
    if worker.told is None:
        worker.told = Told()
    worker.told.changes("fetch", (fetches.loader, fetches.number, fetches.worker), dataset, collate)
    ring.ring.hook_ns += cpu() - c0


def _ranks():
    number = groups.world_size()
    if number:
        return number
    world = os.environ.get("WORLD_SIZE", "")
    return int(world) if world.isdigit() else 0


_digested = set()  # datasets whose contents this process has told of, by number
_left_ns = contents.PROCESS_NS


def after_fork():
    global _left_ns
    _digested.clear()
    _left_ns = contents.PROCESS_NS


def at_rank(loader, at):
    """Scalars and containers of the datasets that a loader's samples come from: are they the same on all ranks?"""
    global _left_ns
    t0 = contents.now()
    deadline = t0 + min(contents.LOADER_NS, _left_ns)
    for path, leaf in identity.paths(loader)[:MAX_LEAVES]:
        number = identity.datasets.of(leaf, loader)[0]
        if number not in _digested and contents.now() < deadline:
            _digested.add(number)
            tell_contents(path, leaf, number, _Writer("rank", at), deadline)
    _left_ns -= contents.now() - t0


def tell_contents(path, leaf, number, write, deadline):
    walk, known = Whole(lambda value: held.scalar(value) or contents.container(value)), {}
    if contents.container(leaf):
        walk.tell(leaf, path, None, "")
    walk.run([(path, leaf)])
    for a in [a for a in walk.found if held.scalar(a.value)]:
        write.row(a, {"dataset": number, "class": objects.name(type(a.value)), "value": held.text(a.value)})
    for a in sorted((a for a in walk.found if not held.scalar(a.value)), key=lambda a: contents.size(a.value)):
        facts = known.get(id(a.value))  # ImageFolder has its samples twice
        if facts is None:
            facts = known[id(a.value)] = contents.facts(a.value, deadline)
        write.row(a, dict(facts, dataset=number))


