"""An IterableDataset: its generators may have to agree between the workers, for all that is seen of it (likely)."""
# e2e transform
#   expect: rng-duplicate-workers likely dataset.transform.hiss
#   expect: rng-duplicate-epochs likely dataset.transform.hiss
#   fix: printed
# e2e own
#   run: often
#   expect: rng-duplicate-workers likely dataset.hiss
#   expect: rng-duplicate-epochs likely dataset.hiss
# e2e local
#   expect: rng-duplicate-workers likely hiss
#   expect: rng-duplicate-epochs likely hiss
# e2e permutation
#   expect: order-repeats likely names a shuffle
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from engine import WIDTH, fit


class Hiss:
    def __init__(self):
        self.hiss = np.random.default_rng(17)

    def __call__(self, x):
        return x + self.hiss.normal(size=WIDTH)


class Radio(IterableDataset):
    def __init__(self, way):
        self.way, self.transform = way, Hiss() if way == "transform" else None
        self.hiss = np.random.default_rng(18)

    def __iter__(self):
        hiss = np.random.default_rng(19)
        info = get_worker_info()
        minutes = range(info.id, 64, info.num_workers)
        for minute in minutes:
            x = np.full(WIDTH, minute / 64)
            if self.way == "transform":
                x = self.transform(x)
            else:
                x = x + (hiss if self.way == "local" else self.hiss).normal(size=WIDTH)
            yield torch.from_numpy(x)


class Mixed(Radio):
    def __iter__(self):  # drawn alike by all workers, so that their parts of it fit together
        info = get_worker_info()
        for minute in self.hiss.permutation(64)[info.id::info.num_workers]:
            yield torch.full((WIDTH,), minute / 64)


# FIX
if __name__ == "__main__":
    torch.manual_seed(7)
    radio = Mixed if sys.argv[1] == "permutation" else Radio
    fit(DataLoader(radio(sys.argv[1]), batch_size=8, num_workers=2, worker_init_fn=None))
