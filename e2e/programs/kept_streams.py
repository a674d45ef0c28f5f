"""Tide gauges with noise from a stream that a function with a cache has made: before the workers were, or in each of them
from its number; or from a stream on a shelf, made when a worker first asks for it."""
# e2e before
#   expect: rng-duplicate-workers proven lru_cache of __main__.waves()
#   expect: rng-duplicate-epochs proven lru_cache of __main__.waves()
#   fix: printed
# e2e later
#   expect: rng-duplicate-epochs proven lru_cache of __main__.waves()
# e2e shelf
#   expect: rng-duplicate-epochs proven dataset.shelf[0]
import functools
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from engine import WIDTH, fit


@functools.lru_cache(maxsize=None)
def waves(worker):
    return (
        np.random.default_rng(41 + worker)  # FIX line default_rng
    )


class Gauges(Dataset):
    def __init__(self, how):
        self.how, self.shelf = how, {}

    def __len__(self):
        return 64

    def noise(self):
        worker = get_worker_info().id
        if self.how == "before":
            return waves(0)
        if self.how == "later":
            return waves(worker)
        if worker not in self.shelf:
            self.shelf[worker] = np.random.default_rng(41 + worker)
        return self.shelf[worker]

    def __getitem__(self, i):
        return torch.from_numpy(np.sin(np.linspace(0, 1 + i, WIDTH)) + self.noise().normal(size=WIDTH))


# FIX from def seed_worker
if __name__ == "__main__":
    torch.manual_seed(4)
    if sys.argv[1] == "before":
        waves(0)
    fit(DataLoader(Gauges(sys.argv[1]), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=None))  # FIX argument worker_init_fn
