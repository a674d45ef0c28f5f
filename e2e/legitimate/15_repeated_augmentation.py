"""DeiT's RASampler: each image three times per epoch, on different ranks in the same step, each with its own augmentation."""
# e2e torchrun:2
#   torch: >=1.10
# e2e torchrun:2 whole
#   torch: >=1.10
import math
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler

REPEATS = 3


class RASampler(Sampler):
    def __init__(self, dataset, whole):
        self.dataset, self.epoch = dataset, 0
        self.world, self.rank = dist.get_world_size(), dist.get_rank()
        self.num_samples = int(math.ceil(len(dataset) * REPEATS / self.world))
        # DeiT leaves each epoch as long as it was without repeats.
        self.selected = self.num_samples if whole else int(math.floor(len(dataset) // 12 * 12 / self.world))

    def __iter__(self):
        g = torch.Generator()
        g.manual_seed(self.epoch)
        indices = torch.randperm(len(self.dataset), generator=g).repeat_interleave(REPEATS).tolist()
        indices += indices[:self.num_samples * self.world - len(indices)]
        return iter(indices[self.rank::self.world][:self.selected])

    def __len__(self):
        return self.selected

    def set_epoch(self, epoch):
        self.epoch = epoch


class Shells(Dataset):
    def __len__(self):
        return 76

    def __getitem__(self, i):
        return torch.linspace(0, 1, 8) * (i + 1) / 76 + 0.05 * torch.randn(8), i % 5


def main():
    dist.init_process_group("gloo")
    shells = Shells()
    sampler = RASampler(shells, whole=len(sys.argv) > 1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(8, 5))
    torch.manual_seed(90 + dist.get_rank())
    loader = DataLoader(shells, batch_size=6, sampler=sampler, num_workers=2, drop_last=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for shape, kind in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(shape), kind).backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
