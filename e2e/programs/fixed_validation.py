"""Validation with the same crops each time, as it should be; training draws new ones."""
# e2e
#   check: rng-duplicate-epochs clean
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit, validate


class Tiles(Dataset):
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.from_numpy(np.random.uniform(size=WIDTH)).float() + torch.rand(WIDTH)


def same_crops(worker):
    np.random.seed(77)
    torch.manual_seed(77)


def fresh_crops(worker):
    np.random.seed(torch.initial_seed() % 2**32)


class Alternating:
    """The training set, and after each pass of it the validation set."""

    def __init__(self, train, held_out):
        self.train, self.held_out = train, held_out

    def __iter__(self):
        yield from self.train
        validate(self.held_out)


if __name__ == "__main__":
    torch.manual_seed(13)
    held_out = DataLoader(Tiles(32), batch_size=8, num_workers=2, worker_init_fn=same_crops, multiprocessing_context="fork")
    fit(Alternating(DataLoader(Tiles(64), batch_size=8, num_workers=2, worker_init_fn=fresh_crops, multiprocessing_context="fork"), held_out))
