"""All generators of this process, by their types: also those that no walk from a dataset leads to.

The garbage collector is asked for them, in a process that is about to fork: what its children share does not exist yet, so
that to look at an object, which writes to it, costs nobody a page. Once, and again before later passes as far as 0.25 % of
the time allows and no child is there that would pay. A worker that inherits nothing (spawn) does it for itself, as it starts.
Bounded in objects and time; what was not looked at, is said (rng_search).
"""
import gc
import sys
from itertools import compress
from operator import not_

from ..patch.load import native
from ..record import guard, ring
from ..record.ring import mono
from . import discover, holders, insides, objects, rng
from .addresses import now

MAX_BLOCKS = 16 << 20  # of memory that Python has given out: about as many objects, tracked or not
MAX_SHARED = 1 << 20  # the same in a process whose memory is shared with its parent or with children of its own
MAX_NS = 500 * 10**6  # of this thread's time, for who holds what: torch's generators the collector does not know
MAX_FOUND = 64
PATIENCE = 400  # times as long as the last search took, until the next;
LOADERS = 4  # but the first pass of so many loaders is always searched for
_CHUNK = 1000
_MANY = 500000  # objects
_PLAIN = {id(dict), id(list), id(tuple), id(set)}
_CONTAINERS = dict, tuple
_ITEMS = 10000  # of an array
_DEEP = 4  # of such, one in another

_state = {"tried": False, "last": 0, "took": 0, "loaders": 0, "forked": False, "bare": False}
_workers = set()  # ids of loaders' workers; those that have ended too
_hidden = {}  # id -> (Found, references to it that are ours)


def hidden():
    """The Found of all generators that no walk has found, as of the last search."""
    return [found.again() for found, _ in list(_hidden.values())]


def after_fork():
    _state["forked"] = True
    _state["bare"] = False


def before_fork(bare):
    """In the parent of any fork that is no DataLoader's. bare: nor multiprocessing's."""
    if not guard.off and ring.ring.kind != "worker":  # which shares all that it has with its parent
        look((0, 0, -1))
        _state["bare"] = _state["bare"] or bare  # nobody knows whether that child still lives


def started(process):
    """A loader has started a worker."""
    _workers.add(id(process))


def look_for(loader, at):
    if at[1] == 0 and _state["loaders"] < LOADERS:
        _state["loaders"] += 1
        _state["took"] = 0
    look(at + (-1,), objects.attributes(loader).get("dataset"), objects.attributes(loader).get("collate_fn"), loader)


def look(at, dataset=None, collate=None, loader=None, here=False):
    """Searches, if it is time for it. at: (loader, pass, worker). here: in a worker that has inherited nothing."""
    t0, c0 = mono(), now()
    try:
        if here and _state["tried"]:
            return
        _prune()
        if _state["tried"] and t0 - _state["last"] < PATIENCE * _state["took"]:
            return
        why = "" if here else _obstacle()
        first, _state["tried"] = not _state["tried"], True
        if why:
            if first:
                _write(at, 0, {why: ["", 0]}, 0)
            return
        search = Search(_known(dataset, collate, loader))
        search.run(MAX_NS)
        search.name(now() + MAX_NS)
        _state["last"], _state["took"] = mono(), now() - c0
        if first or search.fresh or search.cut or at[0] and at[1] == 0:
            _write(at, search.objects, search.cut, search.fresh)
    except Exception as e:
        if guard.theirs(e):
            raise
    finally:
        ring.ring.hook_ns += now() - c0


def _write(at, n, cut, found):
    for why, (path, left) in sorted(cut.items()) or [("", ("", 0))]:
        ring.put_json(ring.SEARCH, {"loader": at[0], "pass": at[1], "worker": at[2], "way": "process", "objects": n, "found": found,
                                    "why": why, "path": path, "left": left})


def write_walk(at, fetch, walk):
    """What a walk has not looked at."""
    for why, (path, left) in sorted(walk.cut.items()) or [("", ("", 0))]:
        ring.put_json(ring.SEARCH, {"loader": at[0], "pass": at[1], "worker": at[2], "fetch": fetch, "way": "walk",
                                    "objects": discover.MAX_NODES - walk.left, "found": len(walk.found), "why": why, "path": path, "left": left})


def _obstacle():
    """Why not to search, or ''."""
    blocks = sys.getallocatedblocks()
    if blocks > MAX_BLOCKS:
        return "objects"
    if blocks > MAX_SHARED and (_state["forked"] or _state["bare"] or _children()) or _loaders_children():
        return "children"
    return ""


def _children():
    process = sys.modules.get("multiprocessing.process")
    children = process.__dict__.get("_children") if process is not None else None
    return list(children) if type(children) is set else []


def _loaders_children():
    """Reports whether workers of a loader live: of them it is counted what becomes theirs alone."""
    return any(id(p) in _workers for p in _children())


def _known(dataset, collate, loader):
    """The generators that walks find, by id: those of order too."""
    found = [] if dataset is None else discover.Walk().roots(dataset, collate)
    if loader is not None:
        found = found + discover.Walk().samplers(loader, dataset)
    return found


def _prune():
    """Forgets what only we still hold."""
    for key, (found, ours) in list(_hidden.items()):
        if sys.getrefcount(found.obj) - 1 <= ours:
            del _hidden[key]


class Search:
    def __init__(self, known):
        self.objects, self.fresh, self.cut = 0, 0, {}
        found = rng.classes()
        self.classes = {i: kind for i, (kind, _) in found.items()}  # by id
        self.generators = tuple([cls for _, cls in found.values()])
        array = getattr(sys.modules.get("numpy"), "ndarray", None)
        self.arrays = () if array is None else (array,)
        self.not_these = {rng.key(obj, self.classes.get(id(type(obj)))) for obj in rng.singletons() + [f.obj for f in known]}
        self.found = {}  # rng.key -> generator
        self.graph = holders.Graph()

    def run(self, budget):
        frozen = gc.get_freeze_count() if hasattr(gc, "get_freeze_count") else 0
        if frozen:
            self.cut["frozen"] = ["", frozen]
        everything = gc.get_objects()
        self.objects = len(everything)
        known = native.picked(everything, self.generators, ())
        for obj in sorted(known, key=lambda o: self.classes[id(type(o))] == "bits"):  # of a generator and its bit generator the first
            self.take(obj)
        if len(everything) > _MANY:  # records of a dataset, above all: they come last
            plain = list(map(_PLAIN.__contains__, map(id, map(type, everything))))
            everything = list(compress(everything, map(not_, plain))) + list(compress(everything, plain))
        deadline = now() + budget
        for i in range(0, len(everything), _CHUNK):
            if now() > deadline:
                self.cut["time"] = ["", len(everything) - i]
                break
            for chain in self.held_by(everything[i:i + _CHUNK], 0):
                if self.take(chain[0]):
                    for held, holder in zip(chain, chain[1:]):
                        self.graph.link(held, holder)

    def take(self, obj):
        """Reports whether a generator is one that is looked for."""
        if not self.sought(obj):
            return False
        key = rng.key(obj, self.classes[id(type(obj))])
        if key not in self.found:
            if len(self.found) >= MAX_FOUND:
                self.cut.setdefault("names", ["", 0])[1] += 1
                return False
            self.found[key] = obj
            self.graph.node(obj)
        return self.found[key] is obj

    def held_by(self, some, depth):
        """[generator, who holds it, who holds that, ...], up to one of the objects, through what the collector does not know."""
        chains = self.among(native.referents(some, self.generators, _CONTAINERS + self.arrays if depth < _DEEP else ()), depth)
        if not chains:
            return chains
        ends, above = {id(chain[-1]) for chain in chains}, {}
        for holder, held in holding(some, ends):
            for each in held:
                above.setdefault(each, []).append(holder)
        return [chain + [holder] for chain in {tuple(map(id, c)): c for c in chains}.values() for holder in above.get(id(chain[-1]), ())]

    def among(self, hits, depth):
        """[generator, who holds it, ...], up to one of these: generators, and containers that the collector does not track."""
        arrays = [a for a in native.picked(hits, self.arrays, ()) if a.dtype.hasobject]
        containers = native.picked(hits, _CONTAINERS, ())
        chains = [[obj] for obj in native.picked(hits, self.generators, ()) if self.sought(obj)]
        for a in arrays:
            items = native.picked(insides.items(a, _ITEMS), self.generators, _CONTAINERS + self.arrays if depth + 1 < _DEEP else ())
            chains += [chain + [a] for chain in self.among(items, depth + 1)]
        if containers:
            chains += self.held_by(containers, depth + 1)
        return chains

    def sought(self, obj):
        return rng.key(obj, self.classes[id(type(obj))]) not in self.not_these

    def name(self, deadline):
        """Finds who holds those that are new."""
        new = [self.graph.nodes[id(obj)] for obj in self.found.values() if id(obj) not in _hidden]
        self.found = {}
        self.graph.climb(new, deadline)
        taken = {found.path for found, _ in list(_hidden.values())}
        for node in new:
            before = sys.getrefcount(node.obj)
            found = holders.found(self.graph, node)
            if found is not None:
                found.path = objects.unlike(found.path, taken)
                _hidden[id(node.obj)] = (found, sys.getrefcount(node.obj) - before)
                self.fresh += 1
        self.graph.forget()


def holding(some, targets):
    """[(object, the ids of those that it holds)], by halves."""
    held = targets & set(map(id, gc.get_referents(*some)))
    if not held or len(some) == 1:
        return [(some[0], held)] if held else []
    middle = len(some) // 2
    return holding(some[:middle], held) + holding(some[middle:], held)
