"""Two ranks that agree on the order and on MixUp in the loop, as they may; what their workers draw differs."""
# e2e torchrun:2 order
#   torch: >=1.10
#   check: rng-duplicate-ranks clean
# e2e torchrun:2 mixup
#   torch: >=1.10
#   check: rng-duplicate-ranks clean
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler, get_worker_info

from engine import WIDTH, fit


class Shoal(Dataset):
    def __len__(self):
        return 96

    def __getitem__(self, i):
        return torch.rand(WIDTH) + i / 96


class Slice(Sampler):
    """Each rank takes its part of one permutation, drawn on every rank from the generator that the loader has too."""

    def __init__(self, n, generator):
        self.n, self.generator = n, generator

    def __iter__(self):
        return iter(torch.randperm(self.n, generator=self.generator).tolist()[dist.get_rank()::dist.get_world_size()])

    def __len__(self):
        return self.n // dist.get_world_size()


def apart(worker):
    torch.manual_seed(get_worker_info().seed * 2 + dist_rank)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    dist_rank = dist.get_rank()
    torch.manual_seed(5)
    shared = torch.Generator().manual_seed(9)
    shoal = Shoal()
    loader = DataLoader(shoal, batch_size=8, sampler=Slice(len(shoal), shared), generator=shared, num_workers=2,
                        multiprocessing_context="fork", worker_init_fn=apart)
    beta = np.random.default_rng(6)
    mix = None
    if sys.argv[1] == "mixup":
        np.random.seed(8)
        mix = lambda batch: batch + float(beta.beta(0.4, 0.4)) * batch.flip(0) + np.random.rand() * 0.1
    fit(loader, wrap=DistributedDataParallel, mix=mix)
    dist.destroy_process_group()
