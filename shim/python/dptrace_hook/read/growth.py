"""Containers that grow as samples are served: of what a dataset, its collate function, its sampler and the training loop reach.

A look walks as discover.Walk does and notes how long each container is; of those that have grown since the first look it
estimates what was added. Looks take so small a share of the time as SHARE says, the first comes late: a short pass has none.
What a look has not reached, it says.
"""
import gc
import os
import re
import sys
import types
from itertools import islice

from ..record import guard, ring
from ..record.ring import cpu, mono
from . import addresses, bounds, discover, insides, objects, sizes
from .quiet import Quiet

FIRST_NS = 500 * 10**6  # of its time a process serves before it looks
APART = 3  # looks are 2^-APART of its time so far apart, at least
SHARE = 500  # of its time one part goes into looks
MAX_NS = 30 * 10**6  # of a look
MAX_NODES = 2000  # of a walk
MAX_TOLD = 12  # containers in a look, those that have grown most
MAX_KNOWN = 4096
MAX_FRAMES = 24
MIN_ITEMS = 16  # that a container has grown by, to be told of,
MIN_BYTES = 64 << 10  # and so many bytes
MIN_TEXT = 16 << 10  # of a str or bytes that is looked at
MANY = 4  # containers side by side that grow become one
MAX_THROUGH = 20000  # items of a table that is gone through for the lengths of what it holds
_open, _read, _close, _stats = os.open, os.read, os.close, gc.get_stats  # the program may put others in their places
_OPTIMIZED = 1  # inspect.CO_OPTIMIZED: the frame of a function
# With these a function may keep the dictionary that f_locals is up to 3.12.
_SNAPSHOTS = {"locals", "vars", "dir", "eval", "exec", "f_locals"}
_PLACE = re.compile(r"\[(?:\d+|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\([^\]]*\))\]$")
_NAME = re.compile(r"([A-Za-z_]\w*)[^A-Za-z_]*$")


class Container:
    __slots__ = ("path", "function", "cls", "items", "added", "shared", "graph", "cap", "obj")

    def __init__(self, path, function, cls, items, obj):
        self.path, self.function, self.cls, self.items, self.obj = path, function, cls, items, obj
        self.added, self.shared, self.graph, self.cap = 0.0, 0.0, False, -1


class Walk(discover.Walk):
    """Notes containers and does not go into large ones. first: (path, function) -> (items and served at the first look), of the looks
    before. function: whose variables the roots are."""

    def __init__(self, first, seen=(), function=""):
        discover.Walk.__init__(self)
        self.left, self.first, self.within = MAX_NODES, first, function
        self.seen.update(seen)
        self.all, self.codes = [], []

    def add(self, obj, path, role, owner, attr="", holder=None, key=None):
        cls = type(obj)
        if sizes.text(cls):
            if len(obj) >= MIN_TEXT:
                self.note(path, cls, len(obj), obj)
            return
        discover.Walk.add(self, obj, path, role, owner, attr, holder, key)

    def note(self, path, cls, n, obj):
        self.all.append(Container(path, self.within, cls, n, obj))

    def visit(self, obj, path, role):
        cls = type(obj)
        if objects.module(cls).startswith(("torch.optim.", "torch.utils.data.dataloader")):
            return
        n = sizes.length(obj, cls)
        if issubclass(cls, insides.Cached):
            wrapped = insides.function_of(obj)
            if wrapped is not None:
                self.function(wrapped, path, role)
        if n >= 0:
            self.note(path, cls, n, obj)
            if id(cls) in addresses.EXACT and self.large(path, n):
                self.members_of(obj, cls, n, path)
                return
        if objects.derives(cls, sys.modules["torch"].nn.Module):
            self.module(obj, cls, path, role)
        else:
            discover.Walk.visit(self, obj, path, role)

    def items(self, obj, cls, path, role):
        """Of a container of a class of the program's own."""
        n = sizes.length(obj, cls)
        if not self.large(path, n):
            discover.Walk.items(self, obj, cls, path, role)
        elif issubclass(cls, (list, tuple, dict)):
            self.members_of(obj, cls, n, path)

    def large(self, path, n):
        """Whether it has many items, or has grown since it was first looked at: what was added is what it grew by. Of one that was not
        there then (see grown), nobody knows what was added."""
        first = self.first.get((path, self.within))
        return n > discover.MAX_ITEMS or first is not None and first != (0, 0) and n - first[0] >= MIN_ITEMS

    def members_of(self, obj, cls, n, path):
        """Of a large container, how long what it holds is, by some items that are spread evenly over it."""
        if n > MAX_THROUGH and not issubclass(cls, (list, tuple)):
            return
        found = [sizes.length(m, type(m)) for m in addresses.members(obj, cls, n, discover.MAX_ITEMS)
                 if id(type(m)) in addresses.EXACT and type(m) is not tuple]
        if 2 * len(found) >= min(n, discover.MAX_ITEMS):
            self.note(path + "[*]", list, n * sum(found) // len(found), None)

    def module(self, obj, cls, path, role):
        """Of a torch.nn.Module what the program hangs on it, and not what torch does."""
        for name, value in list(islice(objects.attributes_of(obj, cls).items(), 2 * discover.MAX_ITEMS)):
            if type(name) is str and not name.startswith("_"):
                self.add(value, "%s.%s" % (path, name), role, obj)

    def function(self, f, path, role):
        if not objects.library(f.__module__):
            self.codes.append(f.__code__)
        discover.Walk.function(self, f, path, role)


def generalised(path):
    """dataset.rows['cat'] is one of dataset.rows[*]."""
    return _PLACE.sub("[*]", path)


def together(grown):
    """Where many containers side by side have grown, one for all of them: [(Container, first, items)]"""
    groups = {}
    for each in grown:
        groups.setdefault((generalised(each[0].path), each[0].function), []).append(each)
    found = []
    for (path, function), group in groups.items():
        if len(group) <= MANY:
            found += group
            continue
        one = Container(path, function, group[0][0].cls, sum(c.items for c, _ in group), None)
        one.added, one.shared = sum(c.added for c, _ in group), sum(c.shared for c, _ in group)
        one.graph = any(c.graph for c, _ in group)
        found.append((one, (sum(f[0] for _, f in group), min(f[1] for _, f in group))))
    return found


class Growth:
    """What is known of the containers of one process."""

    def __init__(self, number=-1):
        self.pid, self.number = os.getpid(), number
        self.since, self.spent, self.last, self.looked = mono(), 0, 0, 0  # ns
        self.served, self.before = 0, 0  # fetches of a worker's pass, of those before; batches delivered to a loop
        self.base, self.next = 0, 1  # a worker's count of fetches as its pass began, and from which on to look again
        self.first = {}  # (path, function) -> (items, served) at the first look that found it
        self.told = set()
        self.bounds = {}  # (path, function) -> bounds.of

    def due(self, late=False):
        """late: a pass ends, and a look is worth more."""
        now = mono()
        if now - self.since < FIRST_NS or guard.off:
            return False
        share = SHARE // 2 if late else SHARE
        gap = max(FIRST_NS // 2, (now - self.since) >> APART)
        return (self.spent + self.last) * share <= now - self.since and now - self.looked >= gap

    def after(self, worker):
        """A worker is about to wait for an index."""
        self.served = worker.fetches - self.base
        self.next = worker.fetches + (self.served >> 3) + 1
        if self.due():
            self.look((0, worker.passes), "window", worker.roots)

    def begin(self, worker, roots):
        """A worker makes a fetcher. The pass before it has ended."""
        self.end(worker)
        self.before, self.served, self.next = self.before + self.served, 0, 0
        worker.roots = roots

    def end(self, worker):
        if worker.passes >= 0:
            self.served = worker.fetches - self.base
            if self.due(late=True):
                self.look((0, worker.passes), "end", worker.roots)

    def look(self, at, when, roots, frame=None):
        """at: (loader, pass). roots: [(object, path, role)]. frame: the training loop's, from which on variables are looked at."""
        t0, c0, full = mono(), cpu(), collections()
        try:
            with Quiet():
                self.write(at, when, roots, frame, t0)
        except Exception as e:
            self.since = 1 << 62  # not again
            if guard.theirs(e):
                raise
        finally:
            cost, self.looked = cpu() - c0, mono()
            if collections() == full:
                self.last = cost
            self.spent += self.last
            ring.ring.hook_ns += cost

    def write(self, at, when, roots, frame, t0):
        walks = [Walk(self.first)]
        for obj, path, role in roots:
            walks[0].add(obj, path, role, None)
        walks[0].run()
        deadline = addresses.now() + MAX_NS
        walks += variables(frame, self.first, walks[0].seen, deadline)
        total = self.before + self.served
        found, cut = self.grown(walks, total, deadline)
        codes = [code for walk in walks for code in walk.codes]
        where = {"loader": at[0], "pass": at[1], "worker": self.number, "served": total}
        named = {}  # what bounds what a name is of: many paths end in the same one
        for c, (first, since) in found:
            key = c.path, c.function
            if key not in self.bounds and len(self.bounds) < MAX_KNOWN:
                name = _NAME.search(re.sub(r"\[[^\]]*\]", "", c.path))
                name = name.group(1) if name else ""
                if name not in named:
                    named[name] = bounds.of(name, codes) if name else "unknown"
                self.bounds[key] = named[name]
            ring.put_json(ring.CONTAINER, dict(where, path=c.path, function=c.function, **{
                "class": objects.qualname(c.cls) if objects.module(c.cls) == "builtins" else objects.name(c.cls), "items": c.items,
                "first_items": first, "first_served": since, "added_bytes": int(c.added), "shared_bytes": int(c.shared), "graph": c.graph,
                "cap": c.cap, "bound": self.bounds.get(key, "unknown")}), t0)
        ring.put_json(ring.FOOTPRINT, dict(where, when=when, containers=sum(len(w.all) for w in walks), cut=cut, **memory()), t0)

    def grown(self, walks, total, deadline):
        """([(Container, (items and served at the first look))] of those that have grown most, why some were not looked at)"""
        cut, grown = "", []
        for walk in walks:
            if "nodes" in walk.cut:
                cut = "objects"
            for c in walk.all:
                key = c.path, c.function
                first = self.first.get(key)
                if first is None:
                    if len(self.first) >= MAX_KNOWN:
                        cut = "containers"
                        continue
                    # Of one that was not there at the first look, all that it holds is new; the others began with what they had.
                    first = self.first[key] = (0, 0) if self.looked and c.obj is not None else (c.items, total)
                if c.items > first[0] or key in self.told:
                    grown.append((c, first))
        for c, first in grown:
            if addresses.now() > deadline:
                cut = "time"
                break
            if c.obj is not None:
                more, c.cap = max(c.items - first[0], 0), sizes.cap(c.obj, c.cls)
                weight = sizes.grown(c.obj, c.cls, c.items, more)
                c.added, c.shared, c.graph = weight.bytes, weight.shared, weight.graph
        found = [(c, f) for c, f in together(grown) if (c.path, c.function) in self.told or c.items - f[0] >= MIN_ITEMS and (
            c.cap >= 0 or c.added + c.shared >= MIN_BYTES or c.graph or c.obj is None)]
        found.sort(key=lambda each: -each[0].added - each[0].shared)
        self.told.update((c.path, c.function) for c, _ in found[:MAX_TOLD])
        return found[:MAX_TOLD], cut


def collections():
    """How often the garbage collector has gone through all objects. When it is due is the program's doing, also where it comes in a
    look: its 50 ms would be those of as many looks."""
    return _stats()[-1]["collections"]


def roots(dataset, collate, iterator=None):
    return (dataset, "dataset", "dataset"), (collate, "collate_fn", "collate"), (iterator, "iterator", "iterator")


def variables(frame, first, seen, deadline):
    """A Walk for each function of the program's that the training loop runs in, from the innermost on, and for their modules."""
    walks, modules = [], set()
    for _ in range(MAX_FRAMES):
        if frame is None or addresses.now() > deadline:
            break
        namespace, code = objects.plain(frame.f_globals), frame.f_code
        module = namespace.get("__name__")
        if type(module) is str and not objects.library(module) and not module.startswith("dptrace_hook"):
            name = objects.main(module)
            if code.co_flags & _OPTIMIZED and (sys.version_info >= (3, 13) or _SNAPSHOTS.isdisjoint(code.co_names)):
                walks.append(_of(objects.locals_of(frame), "", "%s.%s" % (name, code.co_name), first, seen, [code]))
                seen = walks[-1].seen
            if module not in modules:
                modules.add(module)
                walks.append(_of(dict(namespace), name + ".", "", first, seen, [] if code.co_flags & _OPTIMIZED else [code]))
                seen = walks[-1].seen
        frame = frame.f_back
    return walks


def _of(names, prefix, function, first, seen, codes):
    walk = Walk(first, seen, function)
    walk.codes += codes
    for name, value in list(names.items())[:4 * discover.MAX_ITEMS]:
        if type(name) is str and not name.startswith("__") and type(value) is not types.ModuleType and not issubclass(type(value), type) \
                and type(value) is not types.FunctionType:
            walk.add(value, prefix + name, "loop", None)
    walk.run()
    return walk


def memory():
    """Bytes of this process by /proc/self/status: anonymous, of files, shared, swapped out. -1: the kernel does not say."""
    found = {"anon": -1, "file": -1, "shm": -1, "swap": -1}
    names = {b"RssAnon:": "anon", b"RssFile:": "file", b"RssShmem:": "shm", b"VmSwap:": "swap"}
    try:
        fd = _open("/proc/self/status", os.O_RDONLY | os.O_CLOEXEC)
        try:
            for line in _read(fd, 8192).splitlines():
                words = line.split()
                if len(words) > 1 and words[0] in names:
                    found[names[words[0]]] = int(words[1]) << 10
        finally:
            _close(fd)
    except (OSError, ValueError) as e:
        hidden = type(e) is FileNotFoundError or type(e) is PermissionError  # as in some sandboxes: no error of ours
        if not hidden and not guard.none_left(e) and guard.theirs(e):
            raise
    return found
