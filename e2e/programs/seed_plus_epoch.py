"""seed + epoch + worker: worker 0 of pass 1 draws what worker 1 drew in pass 0."""
# e2e
#   expect: rng-duplicate-epochs proven numpy
#   check: rng-duplicate-workers clean
#   fix: printed
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Tides(Dataset):
    epoch = 0

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.from_numpy(np.random.uniform(size=WIDTH))


tides = Tides()


def seed_worker(worker):
    np.random.seed(40 + tides.epoch + worker)


class Counting(DataLoader):
    def __iter__(self):
        found = super().__iter__()
        self.dataset.epoch += 1
        return found


# FIX
if __name__ == "__main__":
    torch.manual_seed(3)
    fit(Counting(tides, batch_size=8, num_workers=3, multiprocessing_context="fork", worker_init_fn=seed_worker), epochs=3)
