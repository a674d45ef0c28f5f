"""Two loaders from one line, walked side by side: image and mask must get the same numbers, each epoch gets new ones."""
# e2e
#   check: rng-duplicate-workers clean
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Side(Dataset):
    """Flips of the masks must be those of the images: both are seeded from worker and epoch, which never give a sum twice."""

    epoch = 0

    def __init__(self, scale):
        self.scale = scale

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.from_numpy(np.random.uniform(size=WIDTH)) * self.scale


def seed_worker(worker):
    np.random.seed(1000 * torch.utils.data.get_worker_info().dataset.epoch + worker)


def loader(scale):
    return DataLoader(Side(scale), batch_size=8, num_workers=2, worker_init_fn=seed_worker, multiprocessing_context="fork")


class Zipped:
    def __init__(self, *loaders):
        self.loaders = loaders

    def __iter__(self):
        for each in self.loaders:
            each.dataset.epoch += 1
        return (image + mask for image, mask in zip(*self.loaders))


if __name__ == "__main__":
    torch.manual_seed(16)
    fit(Zipped(loader(1), loader(2)))
