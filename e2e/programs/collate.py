"""Drawn while the batch is put together."""
# e2e object
#   expect: rng-duplicate-workers proven collate_fn.cut
#   expect: rng-duplicate-epochs proven collate_fn.cut
#   fix: printed
# e2e global
#   expect: rng-duplicate-workers proven random
#   expect: rng-duplicate-epochs proven random
#   fix: printed
import random
import sys

import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Words(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((WIDTH,), i / 64)


class Mask:
    def __init__(self):
        self.cut = torch.Generator().manual_seed(13)

    def __call__(self, samples):
        batch = torch.stack(samples)
        return batch * (torch.rand(batch.shape, generator=self.cut) > 0.15)


def shuffle_words(samples):
    batch = torch.stack(samples)
    return batch * torch.tensor([random.random() for _ in range(WIDTH)])


def same_again(worker):
    random.seed(3)


# FIX
if __name__ == "__main__":
    torch.manual_seed(8)
    collate_fn, init = (Mask(), None) if sys.argv[1] == "object" else (shuffle_words, same_again)
    fit(DataLoader(Words(), batch_size=8, num_workers=2, multiprocessing_context="fork", collate_fn=collate_fn, worker_init_fn=init))
