"""Picks arrivals in seismograms. The traces are shifted and soiled by streams that no code of the dataset names: a registry of
augmentations filled by name, a stream per thread that is made when it is first needed, a factory that is first called in the
worker, a channel's stream in a table by (station, channel). `apart` seeds each in its worker."""
# e2e registry
#   run: often
#   expect: rng-duplicate-workers proven __main__.REGISTRY['jitter'].clock
#   expect: rng-duplicate-epochs proven __main__.REGISTRY['jitter'].clock
# e2e registry apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e thread
#   expect: rng-duplicate-workers proven rng
#   expect: rng-duplicate-epochs proven rng
# e2e thread apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e first
#   expect: rng-duplicate-workers proven lru_cache of __main__.Soiled.noise
#   expect: rng-duplicate-epochs proven lru_cache of __main__.Soiled.noise
# e2e first apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e channels
#   expect: rng-duplicate-workers proven ('KONO', 'BHZ')
#   expect: rng-duplicate-epochs proven ('KONO', 'BHZ')
# e2e channels apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
import functools
import random
import sys
import threading

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit

REGISTRY = {}
SEED = 40
SENSORS = {}


def register(cls):
    REGISTRY[cls.__name__.lower()] = cls()
    return cls


@register
class Jitter:
    __slots__ = ("clock",)

    def __init__(self):
        self.clock = random.Random(SEED)

    def __call__(self, trace):
        return np.roll(trace, self.clock.randrange(WIDTH)) + self.clock.gauss(0, 0.1)


class PerThread(threading.local):
    rng = None


local = PerThread()


@register
class Drift:
    def __call__(self, trace):
        if local.rng is None:
            local.rng = np.random.default_rng(SEED)
        return trace + local.rng.normal(size=WIDTH).cumsum()


@register
class Soiled:
    @staticmethod
    @functools.lru_cache(maxsize=8)
    def noise(station):
        return np.random.default_rng([SEED, len(station)])

    def __call__(self, trace):
        return trace + self.noise("KONO").normal(size=WIDTH)


class Sensor:
    def __init__(self, seed):
        self.rng = torch.Generator().manual_seed(seed)


@register
class Channels:
    def __call__(self, trace):
        return trace + torch.randn(WIDTH, generator=globals()["SENSORS"][("KONO", "BHZ")].rng).numpy()


class Traces(Dataset):
    def __init__(self, augmentation, n=64):
        self.augmentation, self.n = augmentation, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.from_numpy(REGISTRY[self.augmentation](np.sin(np.linspace(0, 1 + i, WIDTH))))


def apart(worker):
    global SEED
    SEED = torch.initial_seed()
    REGISTRY["jitter"].clock.seed(SEED)
    SENSORS[("KONO", "BHZ")] = Sensor(SEED)


if __name__ == "__main__":
    torch.manual_seed(40)
    SENSORS[("KONO", "BHZ")] = Sensor(SEED)
    way = {"registry": "jitter", "thread": "drift", "first": "soiled", "channels": "channels"}[sys.argv[1]]
    fit(DataLoader(Traces(way), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context="fork",
                   worker_init_fn=apart if "apart" in sys.argv else None))
