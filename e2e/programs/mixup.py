"""MixUp in the training loop draws in the main process, outside any fetch; two generators with one seed do not matter there."""
# e2e 0
# e2e 2
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Petals(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.rand(WIDTH) + i / 64


def mixed(batch):
    np.random.seed(5)
    share = float(np.random.beta(0.4, 0.4))
    return share * batch + (1 - share) * batch[np.random.permutation(len(batch))]


if __name__ == "__main__":
    torch.manual_seed(14)
    fit(DataLoader(Petals(), batch_size=8, num_workers=int(sys.argv[1])), mix=mixed)
