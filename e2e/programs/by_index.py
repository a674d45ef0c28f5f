"""Seeded anew for each sample from its index: the same sample looks the same in each epoch, on purpose."""
# e2e object
# e2e numpy
#   run: often
# e2e torch
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Molecules(Dataset):
    def __init__(self, way):
        self.way, self.pose = way, None

    def __len__(self):
        return 64

    def __getitem__(self, i):
        if self.way == "numpy":
            np.random.seed(1000 + i)
            return torch.from_numpy(np.random.uniform(size=WIDTH))
        if self.way == "torch":
            torch.manual_seed(1000 + i)
            return torch.rand(WIDTH)
        self.pose = np.random.default_rng((1000, i))
        return torch.from_numpy(self.pose.uniform(size=WIDTH))


if __name__ == "__main__":
    torch.manual_seed(11)
    fit(DataLoader(Molecules(sys.argv[1]), batch_size=8, shuffle=True, num_workers=2))
