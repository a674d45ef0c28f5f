"""Drawn now and then only: the wait before a second try to read a file, in one fetch of many."""
# e2e
import random

import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Archive(Dataset):
    def __init__(self):
        self.waits = random.Random(3)

    def __len__(self):
        return 96

    def __getitem__(self, i):
        if i % 48 in (0, 8):  # one of the six fetches of each worker
            self.pauses = [self.waits.uniform(0, 1e-6) for _ in range(8)]
        return torch.rand(WIDTH)


if __name__ == "__main__":
    torch.manual_seed(15)
    fit(DataLoader(Archive(), batch_size=8, num_workers=2))
