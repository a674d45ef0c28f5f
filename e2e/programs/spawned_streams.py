"""Streams told apart properly: SeedSequence.spawn, jumped generators, Philox keys."""
# e2e spawned
#   check: rng-duplicate-workers clean
# e2e jumped
#   check: rng-duplicate-workers clean
# e2e philox
#   check: rng-duplicate-workers clean
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from engine import WIDTH, fit

way = sys.argv[1]


class Rain(Dataset):
    drops = None

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.from_numpy(self.drops.uniform(size=WIDTH))


def seed_worker(worker):
    if way == "spawned":
        bits = np.random.PCG64(np.random.SeedSequence(2).spawn(4)[worker])
    elif way == "jumped":
        bits = np.random.PCG64(2).jumped(worker + 1)
    else:
        bits = np.random.Philox(key=2 + worker)
    get_worker_info().dataset.drops = np.random.Generator(bits)


if __name__ == "__main__":
    torch.manual_seed(20)
    fit(DataLoader(Rain(), batch_size=8, num_workers=3, worker_init_fn=seed_worker), epochs=1)
