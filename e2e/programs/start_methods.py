"""Started anew or forked: the pickled copies of a generator are as equal as the forked ones."""
# e2e spawn
#   expect: rng-duplicate-workers proven dataset.clouds
#   expect: rng-duplicate-epochs proven dataset.clouds
#   fix: printed
# e2e forkserver
#   run: often
#   expect: rng-duplicate-workers proven dataset.clouds
#   expect: rng-duplicate-epochs proven dataset.clouds
# e2e default
#   expect: rng-duplicate-workers proven dataset.clouds
#   expect: rng-duplicate-epochs proven dataset.clouds
# e2e spawn seeded
#   run: often
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e forkserver seeded
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from engine import WIDTH, fit


class Sky(Dataset):
    def __init__(self):
        self.clouds = np.random.RandomState(21)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.from_numpy(self.clouds.gamma(2.0, size=WIDTH))


def seeded(worker):
    get_worker_info().dataset.clouds = np.random.RandomState(get_worker_info().seed % 2**32)


# FIX
if __name__ == "__main__":
    torch.manual_seed(6)
    way = seeded if sys.argv[2:] == ["seeded"] else None
    fit(DataLoader(Sky(), batch_size=8, num_workers=2, worker_init_fn=way,
                   multiprocessing_context=None if sys.argv[1] == "default" else sys.argv[1]))
