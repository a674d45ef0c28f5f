"""Datasets whose workers keep something, and those that only seem to: growing.py NAME... runs them side by side for three passes.

A scene is a class of this file; its samples take 8 ms each. What is kept for one are 50 KB.
"""
import collections
import ctypes
import functools
import random
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

SAMPLES, BATCH, PASSES, WORKERS = 480, 8, 3, 2
CACHE = {}
libc = ctypes.CDLL(None)


def thing():
    return np.ones(12500, np.float32)


class Scene(Dataset):
    persistent = True

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        time.sleep(0.008)
        return float(self.keep(i).sum())


# Bugs.

class Appends(Scene):
    def __init__(self):
        self.log = []

    def keep(self, i):
        x = thing()
        self.log.append(x)
        return x


class RandomKey(Scene):
    def __init__(self):
        self.cache = {}

    def keep(self, i):
        key = i, random.random()
        if key not in self.cache:
            self.cache[key] = thing()
        return self.cache[key]


class ByLabel(Scene):
    def __init__(self):
        self.labels = ["class%d" % (i % 10) for i in range(SAMPLES)]
        self.by_label = {label: [] for label in self.labels}

    def keep(self, i):
        x = thing()
        self.by_label[self.labels[i]].append(x)
        return x


@functools.lru_cache(maxsize=None)
def load(i, angle):
    return thing()


class Cached(Scene):
    def keep(self, i):
        return load(i, random.random())


class ModulesOwn(Scene):
    def keep(self, i):
        CACHE[i, random.random()] = x = thing()
        return x


class Rebinds(Scene):
    def __init__(self):
        self.history = []

    def keep(self, i):
        self.history = self.history + [thing()]
        return self.history[0]


class Transform:
    def __init__(self):
        self.memo = collections.defaultdict(list)

    def __call__(self, x):
        self.memo["all"].append(x)
        return x


class Transformed(Scene):
    def __init__(self):
        self.transforms = [Transform()]

    def keep(self, i):
        x = thing()
        for transform in self.transforms:
            x = transform(x)
        return x


class Unreached(Scene):
    """Nothing in Python holds it."""

    def keep(self, i):
        libc.malloc.restype = ctypes.c_void_p
        ctypes.memset(libc.malloc(ctypes.c_size_t(90000)), 1, 90000)
        return thing()


class StreamAppends(IterableDataset):
    persistent = True

    def __init__(self):
        self.log = []

    def __iter__(self):
        for _ in range(SAMPLES // WORKERS):
            time.sleep(0.008)
            self.log.append(thing())
            yield 1.0


# No bugs, or nobody can tell yet.

class Bounded(Scene):
    def __init__(self):
        self.cache = {}

    def keep(self, i):
        self.cache[i] = x = thing()
        while len(self.cache) > 40:
            self.cache.pop(next(iter(self.cache)))
        return x


@functools.lru_cache(maxsize=50)
def load_some(i):
    return thing()


class CachedSome(Scene):
    def keep(self, i):
        return load_some(i)


class EachSample(Scene):
    """Each worker will hold all samples, and no more."""

    def __init__(self):
        self.cache = {}

    def keep(self, i):
        if i not in self.cache:
            self.cache[i] = thing()
        return self.cache[i]


class Mortal(Appends):
    """Workers of one pass."""
    persistent = False


class Lazy(Scene):
    """Reads 60 models of 1 MB before it gives much."""

    def __init__(self):
        self.models = []

    def keep(self, i):
        if len(self.models) < 60:
            self.models.append(np.ones(250_000, np.float32))
        return thing()


class Window(Scene):
    def __init__(self):
        self.last = collections.deque(maxlen=100)

    def keep(self, i):
        x = np.ones(random.randrange(6000, 20000), np.float32)
        self.last.append(x)
        return x


class Emptied(Scene):
    def __init__(self):
        self.pending = []

    def keep(self, i):
        x = thing()
        self.pending.append(x)
        if len(self.pending) == 60:
            self.pending.clear()
        return x


class Replay(Scene):
    """Will stop at ten thousand."""

    def __init__(self):
        self.bank, self.count = [], 0

    def keep(self, i):
        x = thing()
        if self.count < 10_000:
            self.bank.append(x)
        self.count += 1
        return x


def trim(kept):
    while len(kept) > 100_000:
        kept.pop(next(iter(kept)))


class Helped(Scene):
    """Bounded by a function of another name, which has had nothing to do yet."""

    def __init__(self):
        self.cache = {}

    def keep(self, i):
        self.cache[random.random()] = x = thing()
        trim(self.cache)
        return x


class References(Scene):
    """A long list of one thing."""

    def __init__(self):
        self.one, self.seen = np.ones(5_000_000, np.float32), []

    def keep(self, i):
        self.seen.append(self.one)
        return thing()


class Shuffled(IterableDataset):
    persistent = True

    def __iter__(self):
        buffer = []
        for _ in range(SAMPLES // WORKERS):
            time.sleep(0.008)
            buffer.append(thing())
            if len(buffer) > 60:
                yield float(buffer.pop(random.randrange(60)).sum())
        for x in buffer:
            yield float(x.sum())


def main():
    torch.set_num_threads(1)
    loaders = []
    for name in sys.argv[1:]:
        dataset = globals()[name]()
        shuffle = not isinstance(dataset, IterableDataset)
        loaders.append(DataLoader(dataset, BATCH, shuffle=shuffle, num_workers=WORKERS, persistent_workers=dataset.persistent,
                                  multiprocessing_context="fork"))
    for _ in range(PASSES):
        iterators = [iter(loader) for loader in loaders]
        while iterators:
            iterators = [it for it in iterators if next(it, None) is not None]


if __name__ == "__main__":
    main()
