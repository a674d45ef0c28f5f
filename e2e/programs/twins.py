"""Two generators with one seed in one object: equal to each other (a note), told apart by worker and pass."""
# e2e
#   check: rng-duplicate-workers found
#   check: rng-duplicate-epochs clean
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from engine import WIDTH, fit


class Fields(Dataset):
    def __init__(self):
        self.image_rng = np.random.default_rng(0)
        self.mask_rng = np.random.default_rng(0)

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.from_numpy(self.image_rng.uniform(size=WIDTH) - self.mask_rng.uniform(size=WIDTH) + i)


def seed_worker(worker):
    info = get_worker_info()
    info.dataset.image_rng = np.random.default_rng(info.seed)
    info.dataset.mask_rng = np.random.default_rng(info.seed)


if __name__ == "__main__":
    torch.manual_seed(19)
    fit(DataLoader(Fields(), batch_size=8, num_workers=2, worker_init_fn=seed_worker))
