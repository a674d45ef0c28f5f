"""Generators that the code of a fetch makes anew, from the same seed in each call: default_rng(42) in __getitem__.

They live for one call, so that no look at a state finds them. The byte code tells (reads.py); nothing of the user's runs.
"""
import functools
import random
import sys

from ..record import guard, ring
from . import objects, reads
from .bytecode import Value

_NUMPY = ("default_rng", "RandomState", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
MAX_LOADERS = 8  # of a process that are looked at
_looked = set()


def constructors():
    """What makes a generator, by id: its name."""
    numpy, torch = sys.modules.get("numpy.random"), sys.modules["torch"]
    made = [random.Random, torch.Generator]
    if numpy is not None:
        made += [numpy.__dict__.get(n) for n in _NUMPY]
    return {id(f): f.__name__ for f in made if f is not None}


class Anew(reads.Reads):
    def __init__(self, dataset, collate):
        self.constructors, self.generators = constructors(), []  # [what makes it and of which seed, whether it is kept]
        self.once, self.within = set(), 0  # functions that are called once, what they give is kept; how many of them run
        reads.Reads.__init__(self, dataset, collate)
        self.seeds = {name for name, kept in self.generators if not kept}

    def bound(self, k, found, obj, name, cls=None):
        f = reads.function_of(found)[0]
        if type(found) is functools.cached_property or type(found) is functools._lru_cache_wrapper:
            self.once.add(id(f))
        return reads.Reads.bound(self, k, found, obj, name, cls)

    def of_atom(self, atom, name):
        """From NumPy 2.3 on numpy.random is imported by its first use, which may be the worker's."""
        kind, what = atom[0], atom[1]
        if kind == "object" and what is sys.modules.get("numpy") and name == "random" and name not in what.__dict__:
            return Value((("to be imported", name),), True)
        if kind == "to be imported" and name in _NUMPY:
            return Value((("constructor", name),), True)
        return reads.Reads.of_atom(self, atom, name)

    def call_atom(self, atom, args, more):
        made = self.seeded(atom[1], args) if atom[0] == "constructor" else None
        return made or reads.Reads.call_atom(self, atom, args, more)

    def call_object(self, f, args, more):
        if type(f) is functools._lru_cache_wrapper:
            self.once.add(id(f.__wrapped__))
        made = self.seeded(self.constructors[id(f)], args) if id(f) in self.constructors else None
        return made or reads.Reads.call_object(self, f, args, more)

    def run(self, f, args, more):
        kept = id(f) in self.once
        self.within += kept
        result = reads.Reads.run(self, f, args, more)
        self.within -= kept
        return result

    def seeded(self, name, args):
        """The generator that is made, if its seed is known and nobody keeps what is made here anyway."""
        seed = self.constant(args[0]) if args and not self.within else ()
        if not seed or type(seed[0]) is not int:
            return None
        self.generators.append(["%s(%d)" % (name, seed[0]), False])
        return Value((("generator", self.generators[-1]),), True)

    def follow(self, dataset, collate, worker_init):
        self.generators = []
        reads.Reads.follow(self, dataset, collate, worker_init)

    def keep(self, value, first=False):
        """As where it is made when it is first needed. What is put there in each call is made anew all the same."""
        made = [atom[1] for atom in value.atoms if atom[0] == "generator"]
        if made and (first or self.machine.skipped()):
            for each in made:
                each[1] = True


def look_for(loader, at):
    """In the main process, as a pass begins: once for each loader."""
    try:
        if id(loader) in _looked or len(_looked) >= MAX_LOADERS:
            return
        _looked.add(id(loader))
        code = Anew(objects.attributes(loader).get("dataset"), objects.attributes(loader).get("collate_fn"))
        for name in sorted(code.seeds)[:1]:
            ring.put_json(ring.SEARCH, {"loader": at[0], "pass": at[1], "worker": -1, "way": "code", "objects": len(code.calls),
                                        "found": len(code.seeds), "why": "anew", "path": name, "left": len(code.seeds)})
    except Exception as e:
        if guard.theirs(e):
            raise
