"""The three global generators, untouched: current torch seeds each worker of each pass anew."""
# e2e fork
#   torch: >=1.9
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e spawn
#   torch: >=1.9
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
# e2e forkserver
#   torch: >=1.9
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
import random
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Coast(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.rand(WIDTH) + random.random() + torch.from_numpy(np.random.uniform(size=WIDTH))


if __name__ == "__main__":
    print("numpy.random is loaded:", "numpy.random" in sys.modules)  # must be the same when recorded
    torch.manual_seed(18)
    coast = DataLoader(Coast(), batch_size=8, num_workers=2, multiprocessing_context=sys.argv[1])
    print("numpy.random is loaded:", "numpy.random" in sys.modules)
    fit(coast)
    print("numpy.random is loaded:", "numpy.random" in sys.modules)
