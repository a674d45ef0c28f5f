"""Trains on six kinds of loaders and prints all that a recorder must not change, one JSON line each.

Printed are losses, sample order, the states of every generator in the main process after each pass and in the workers
around each sample, how many earlier samples and batches are still alive at each moment (by weakref), and whether
iterator, dataset and loader die at once when they are dropped. Arguments: the kinds of loaders; none: all.
"""
import gc
import json
import random
import sys
import warnings
import weakref
import zlib

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

warnings.filterwarnings("ignore")


def states(*own):
    """One number per generator: numpy's, Python's, torch's, and the program's own. Reading draws nothing."""
    seen = [zlib.crc32(np.random.get_state()[1].tobytes()) ^ np.random.get_state()[2], zlib.crc32(repr(random.getstate()).encode()),
            zlib.crc32(torch.get_rng_state().numpy().tobytes())]
    return seen + [zlib.crc32(repr(g.bit_generator.state).encode()) for g in own]


class Sample:
    def __init__(self, index, x, facts):
        self.index, self.x, self.facts = index, x, facts


class Maker:
    """Makes a sample with draws from four generators, and watches how long the samples before it live."""

    def __init__(self):
        self.rng, self.made = np.random.default_rng(4), []

    def __getstate__(self):
        return self.rng

    def __setstate__(self, rng):
        self.rng, self.made = rng, []

    def __call__(self, index):
        before = states(self.rng)
        x = torch.rand(4) + random.random() + torch.from_numpy(np.random.uniform(size=4)) + torch.from_numpy(self.rng.normal(size=4))
        self.made = [r for r in self.made if r() is not None]
        sample = Sample(index, x.float(), before + states(self.rng) + [len(self.made), torch.initial_seed() % 2**31])
        self.made.append(weakref.ref(sample))
        return sample


class Mapped(Dataset):
    def __init__(self):
        self.make = Maker()

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return self.make(index)


class Streamed(IterableDataset):
    def __init__(self):
        self.make = Maker()

    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id, 24, info.num_workers):
            yield self.make(index)


class Batch:
    def __init__(self, samples):
        self.x = torch.stack([s.x for s in samples])
        self.order = [s.index for s in samples]
        self.facts = [s.facts for s in samples]


def train(name, dataset, **options):
    torch.manual_seed(1)
    np.random.seed(2)
    random.seed(3)
    loader = DataLoader(dataset, batch_size=4, collate_fn=Batch, **options)
    del dataset
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        alive, batches, facts = [], [], []
        passing = iter(loader)
        for batch in passing:
            loss = model(batch.x).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            alive = [r for r in alive if r() is not None]
            batches.append([loss.item().hex(), len(alive), batch.order])
            facts += batch.facts
            alive.append(weakref.ref(batch))
        del batch
        dead = weakref.ref(passing)
        del passing
        print(json.dumps({"loader": name, "epoch": epoch, "batches": batches, "workers": facts, "main": states(),
                          "batches alive": sum(r() is not None for r in alive), "iterator dead": dead() is None}))
    watched = [weakref.ref(o) for o in (loader, loader.dataset, optimizer, model)]
    del loader, optimizer, model
    at_once = [r() is None for r in watched]
    gc.collect()
    print(json.dumps({"loader": name, "dead at once": at_once, "after gc": [r() is None for r in watched]}))


def seed_numpy(worker):
    """A process started anew has seeded NumPy from the clock, and torch < 1.9 leaves it so."""
    np.random.seed(torch.initial_seed() % 2**32)


if __name__ == "__main__":
    print(json.dumps({"loaded": sorted(m for m in sys.modules if m.startswith("numpy.random"))}))
    for name, options in [
        ("map", {"num_workers": 2, "shuffle": True, "multiprocessing_context": "fork"}),
        ("iterable", {"num_workers": 2, "multiprocessing_context": "fork"}),
        ("persistent", {"num_workers": 2, "shuffle": True, "multiprocessing_context": "fork", "persistent_workers": True}),
        ("spawn", {"num_workers": 1, "shuffle": True, "multiprocessing_context": "spawn", "worker_init_fn": seed_numpy}),
        ("forkserver", {"num_workers": 1, "multiprocessing_context": "forkserver", "worker_init_fn": seed_numpy,
                        "generator": torch.Generator().manual_seed(5)}),
        ("main process", {"num_workers": 0, "shuffle": True}),
    ]:
        if name in sys.argv[1:] or len(sys.argv) == 1:
            train(name, Streamed() if name == "iterable" else Mapped(), **options)
