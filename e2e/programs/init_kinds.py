"""A generator object made in __init__: each worker of each pass gets a copy in the same state."""
# e2e pcg64
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
#   fix: printed
# e2e pcg64dxsm
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
# e2e randomstate
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
#   fix: printed
# e2e mt19937
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
# e2e python
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
#   fix: printed
# e2e torch
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
#   fix: printed
# e2e philox
#   run: often
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
#   fix: printed
# e2e sfc64
#   expect: rng-duplicate-workers proven dataset.grain
#   expect: rng-duplicate-epochs proven dataset.grain
#   fix: printed
import random
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit

KINDS = {
    "pcg64": lambda: np.random.default_rng(5),
    "pcg64dxsm": lambda: np.random.Generator(np.random.PCG64DXSM(5)),
    "randomstate": lambda: np.random.RandomState(5),
    "mt19937": lambda: np.random.Generator(np.random.MT19937(5)),
    "python": lambda: random.Random(5),
    "torch": lambda: torch.Generator().manual_seed(5),
    "philox": lambda: np.random.Generator(np.random.Philox(5)),
    "sfc64": lambda: np.random.Generator(np.random.SFC64(5)),
}


class Film(Dataset):
    def __init__(self, kind):
        self.grain = KINDS[kind]()

    def __len__(self):
        return 64

    def __getitem__(self, i):
        if isinstance(self.grain, torch.Generator):
            return torch.rand(WIDTH, generator=self.grain)
        if isinstance(self.grain, random.Random):
            return torch.tensor([self.grain.random() for _ in range(WIDTH)])
        return torch.from_numpy(self.grain.normal(size=WIDTH))


# FIX
if __name__ == "__main__":
    torch.manual_seed(1)
    fit(DataLoader(Film(sys.argv[1]), batch_size=8, num_workers=2, worker_init_fn=None))
