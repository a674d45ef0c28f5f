"""Two ranks with equal seeds: each sees other samples, but augments them with the same numbers."""
# e2e torchrun:2 seed
#   expect: rng-duplicate-ranks proven torch
#   torch: >=1.10
# e2e torchrun:2 generator
#   expect: rng-duplicate-ranks proven torch
#   torch: >=1.10
# e2e torchrun:2 object
#   expect: rng-duplicate-ranks proven dataset.rng
#   torch: >=1.10
# e2e torchrun:2 main
#   expect: rng-duplicate-ranks proven dataset.rng
#   torch: >=1.10
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, get_worker_info

from engine import WIDTH, fit

way = sys.argv[1]  # what the ranks have in common


class Herd(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(3)

    def __len__(self):
        return 96

    def __getitem__(self, i):
        noise = torch.from_numpy(self.rng.normal(size=WIDTH)).float() if way in ("object", "main") else torch.rand(WIDTH)
        return noise + i / 96


def own_stream(worker):
    """Differs between the workers and the passes, but not between the ranks."""
    info = get_worker_info()
    info.dataset.rng = np.random.default_rng(info.seed)


class ByEpoch(DataLoader):
    passes = 0

    def __iter__(self):
        self.sampler.set_epoch(self.passes)
        self.passes += 1
        return super().__iter__()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    herd = Herd()
    # "generator": the ranks' own seeds differ, but a shuffling generator that they must share also seeds their workers.
    torch.manual_seed(5 + dist.get_rank() if way == "generator" else 5)
    loader = ByEpoch(herd, batch_size=8, sampler=DistributedSampler(herd, shuffle=True, seed=4),
                     generator=torch.Generator().manual_seed(9) if way == "generator" else None,
                     num_workers=0 if way == "main" else 2, worker_init_fn=own_stream if way == "object" else None)
    fit(loader, wrap=DistributedDataParallel)
    dist.destroy_process_group()
