"""All ranks seed everything alike, so that they begin with the same weights; dropout draws in the loop from these streams."""
# e2e torchrun:2 everything
#   torch: >=1.10
# e2e torchrun:2 again
#   torch: >=1.10
import random
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Wells(Dataset):
    def __init__(self, augment):
        self.augment, self.logs = augment, np.random.rand(90, 7).astype("float32")

    def __len__(self):
        return len(self.logs)

    def __getitem__(self, i):
        log = torch.from_numpy(self.logs[i])
        return log + 0.01 * torch.rand(7) if self.augment else log


def main():
    dist.init_process_group("gloo")
    seed_everything(42)
    wells = Wells(augment=sys.argv[1] == "again")
    model = DistributedDataParallel(nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 7)))
    if wells.augment:
        seed_everything(42 + dist.get_rank())  # now the data: each rank its own
    sampler = DistributedSampler(wells, seed=42)
    loader = DataLoader(wells, batch_size=9, sampler=sampler, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for log in loader:
            keep = (torch.rand(log.shape) > 0.15).float()  # masking in the loop
            optimizer.zero_grad()
            (model(log * keep) - log).pow(2).mean().backward()
            optimizer.step()
    weights = sum(p.sum().item() for p in model.parameters())
    if dist.get_rank() == 0:
        print("weights %.4f" % weights)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
