"""Equal states that nobody draws from: the generator is made, or seeded, in the first fetch of each worker."""
# e2e replaced
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e reseeded
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e absent
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e unused
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Snow(Dataset):
    def __init__(self, way):
        self.way, self.seeded = way, False
        if way != "absent":
            self.flakes = np.random.RandomState(0)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        if self.way == "unused":
            return torch.rand(WIDTH)
        if not self.seeded:
            self.seeded = True
            if self.way == "reseeded":
                self.flakes.seed(torch.initial_seed() % 2**32)
            else:
                self.flakes = np.random.RandomState(torch.initial_seed() % 2**32)
        return torch.from_numpy(self.flakes.uniform(size=WIDTH))


if __name__ == "__main__":
    torch.manual_seed(10)
    fit(DataLoader(Snow(sys.argv[1]), batch_size=8, num_workers=2))
