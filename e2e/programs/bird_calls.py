"""A classifier of bird calls. What augments the recordings draws from streams that hang where nobody looks for them: behind
a cached factory, in the settings, in an enumeration, in a context variable, in a table of arrays, in a quasi-random engine.
`apart` seeds each in its worker, as it should be."""
# e2e factory
#   run: often
#   expect: rng-duplicate-workers proven lru_cache of __main__.gain
#   expect: rng-duplicate-epochs proven lru_cache of __main__.gain
# e2e factory apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e settings
#   expect: rng-duplicate-workers proven __main__.SETTINGS.augment.rng
#   expect: rng-duplicate-epochs proven __main__.SETTINGS.augment.rng
# e2e settings apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e member
#   expect: rng-duplicate-workers proven __main__.Stream.GAIN.value
#   expect: rng-duplicate-epochs proven __main__.Stream.GAIN.value
# e2e member apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e context
#   expect: rng-duplicate-workers proven __main__.CURRENT
#   expect: rng-duplicate-epochs proven __main__.CURRENT
# e2e context apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e bands
#   expect: rng-duplicate-workers proven __main__.BANDS[0]
#   expect: rng-duplicate-workers proven __main__.BANDS[1]
#   expect: rng-duplicate-epochs proven __main__.BANDS[0]
#   expect: rng-duplicate-epochs proven __main__.BANDS[1]
# e2e bands apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e points
#   expect: rng-duplicate-workers proven __main__.POINTS
#   expect: rng-duplicate-epochs proven __main__.POINTS
# e2e points apart
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
import contextvars
import enum
import functools
import random
import sys
from types import SimpleNamespace

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit

SEED = {"gain": 17}
SETTINGS = SimpleNamespace(rate=32000, augment=SimpleNamespace(p=0.5, rng=np.random.default_rng(17)))
CURRENT = contextvars.ContextVar("augmentation")
CURRENT.set(random.Random(17))
BANDS = np.array([np.random.RandomState(17), np.random.RandomState(18)], dtype=object)
POINTS = torch.quasirandom.SobolEngine(4, scramble=True, seed=17)


class Stream(enum.Enum):
    GAIN = random.Random(17)


@functools.lru_cache(maxsize=None)
def gain():
    return np.random.default_rng(SEED["gain"])


def by_bands(x):
    half = WIDTH // 2
    return np.concatenate([x[:half] * BANDS[0].uniform(0.5, 2, half), x[half:] * BANDS[1].uniform(0.5, 2, WIDTH - half)])


def by_points(x):
    at, width, rise, gain = POINTS.draw(1)[0].tolist()
    return x * (gain + np.exp(-(np.linspace(0, 1, WIDTH) - at) ** 2 / (0.1 + width)) * rise)


def louder(x, rng):
    return x * (1 + rng.random()) + 0.1 * rng.random()


WAYS = {"factory": lambda x: x * gain().uniform(0.5, 2, WIDTH), "settings": lambda x: x + SETTINGS.augment.rng.normal(size=WIDTH),
        "member": lambda x: louder(x, Stream.GAIN.value), "context": lambda x: louder(x, CURRENT.get()),
        "bands": by_bands, "points": by_points}


class Calls(Dataset):
    def __init__(self, augment, n=64):
        self.augment, self.n = augment, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        call = np.sin(np.linspace(0, 1 + i, WIDTH))
        return torch.from_numpy(self.augment(call))


def apart(worker):
    seed = torch.initial_seed() % 2**32
    SEED["gain"] = seed
    gain.cache_clear()
    SETTINGS.augment.rng = np.random.default_rng(seed)
    Stream.GAIN.value.seed(seed)
    CURRENT.set(random.Random(seed))
    BANDS[0], BANDS[1] = np.random.RandomState(seed), np.random.RandomState((seed + 1) % 2**32)
    globals()["POINTS"] = torch.quasirandom.SobolEngine(4, scramble=True, seed=seed)


if __name__ == "__main__":
    torch.manual_seed(17)
    gain()  # listened to once, by ear
    fit(DataLoader(Calls(WAYS[sys.argv[1]]), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context="fork",
                   worker_init_fn=apart if "apart" in sys.argv else None))
