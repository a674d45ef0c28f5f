"""Two trials with one seed in one process: equal on purpose, and never compared; within a trial all is well."""
# e2e
#   check: rng-duplicate-workers clean
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Dunes(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.from_numpy(np.random.uniform(size=WIDTH))


def seed_worker(worker):
    np.random.seed(torch.initial_seed() % 2**32)


def trial(width):
    torch.manual_seed(12)
    fit(DataLoader(Dunes(), batch_size=8, num_workers=2, worker_init_fn=seed_worker), name="trial %d " % width)


if __name__ == "__main__":
    for width in range(3):
        trial(width)
