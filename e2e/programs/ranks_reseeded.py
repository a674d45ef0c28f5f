"""Ranks that augment alike: with the printed fix they no longer do, and their samplers still agree."""
# e2e torchrun:2
#   run: often
#   torch: >=1.10
#   expect: rng-duplicate-ranks proven dataset.smudges
#   fix: printed
#   order: kept
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info

from engine import WIDTH, fit


class Stamps(Dataset):
    def __init__(self):
        self.smudges = np.random.default_rng(3)

    def __len__(self):
        return 96

    def __getitem__(self, i):
        return torch.from_numpy(self.smudges.normal(size=WIDTH)).float() + i / 96


class EachEpoch(DataLoader):
    passes = 0

    def __iter__(self):
        self.sampler.set_epoch(self.passes)
        self.passes += 1
        return super().__iter__()


def seed_worker(worker):
    info = get_worker_info()
    info.dataset.smudges = np.random.default_rng(info.seed)


# FIX
if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(6)
    stamps = Stamps()
    fit(EachEpoch(stamps, batch_size=8, sampler=DistributedSampler(stamps), num_workers=2, worker_init_fn=seed_worker), wrap=DistributedDataParallel)
    dist.destroy_process_group()
