"""A constant seed in worker_init_fn: all workers of all passes draw the same."""
# e2e numpy
#   expect: rng-duplicate-workers proven numpy
#   expect: rng-duplicate-epochs proven numpy
#   fix: printed
# e2e random
#   expect: rng-duplicate-workers proven random
#   expect: rng-duplicate-epochs proven random
#   fix: printed
# e2e torch
#   expect: rng-duplicate-workers proven torch
#   expect: rng-duplicate-epochs proven torch
#   fix: printed
# e2e numpy persistent
#   expect: rng-duplicate-workers proven numpy
#   check: rng-duplicate-epochs clean
#   fix: printed
# e2e numpy spawn
#   expect: rng-duplicate-workers proven numpy
#   expect: rng-duplicate-epochs proven numpy
# e2e random forkserver
#   expect: rng-duplicate-workers proven random
#   expect: rng-duplicate-epochs proven random
import random
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit

kind = sys.argv[1]
how = sys.argv[2] if len(sys.argv) > 2 else "fork"


class Hail(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        if kind == "numpy":
            return torch.from_numpy(np.random.standard_normal(WIDTH))
        if kind == "random":
            return torch.tensor([random.gauss(0, 1) for _ in range(WIDTH)])
        return torch.randn(WIDTH)


def reproducible(worker):
    random.seed(7)
    np.random.seed(7)
    torch.manual_seed(7)


# FIX
if __name__ == "__main__":
    torch.manual_seed(2)
    fit(DataLoader(Hail(), batch_size=8, num_workers=2, worker_init_fn=reproducible, persistent_workers=how == "persistent",
                   multiprocessing_context=how if how in ("spawn", "forkserver") else "fork"))
