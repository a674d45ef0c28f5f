"""Semi-supervised training on two ranks: the large set is dealt out, the small one each rank draws from by itself."""
# e2e torchrun:2 drawn
#   torch: >=1.10
#   expect: shard-duplicate-ranks likely 24 of 24
# e2e torchrun:2 equal
#   torch: >=1.10
#   expect: shard-duplicate-ranks proven
# e2e torchrun:2 neither
#   torch: >=1.10
#   expect: shard-duplicate-ranks proven
# e2e torchrun:2 steps
#   torch: >=1.10
#   expect: shard-duplicate-ranks likely 160 of 160
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

way = sys.argv[1]


class Photos(Dataset):
    def __init__(self, n, first):
        self.n, self.first = n, first

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([(self.first + i) / 500, (self.first + i) % 11 / 11])


def forever(loader):
    while True:
        yield from loader


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    wild, named = Photos(160, 0), Photos(24, 400)
    own = torch.Generator().manual_seed(31 if way == "equal" else 31 + rank)
    if way in ("neither", "steps"):
        sampler, large = None, DataLoader(wild, batch_size=8, shuffle=True, generator=own)
    else:
        sampler = DistributedSampler(wild)
        large = DataLoader(wild, batch_size=8, sampler=sampler)
    if way == "steps":
        batches = forever(large)
        for _ in range(35):  # and so on, until the budget is spent
            step(model, optimizer, next(batches))
    else:
        small = forever(DataLoader(named, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(int(own.initial_seed()) + 1)))
        for epoch in range(2):
            if sampler is not None:
                sampler.set_epoch(epoch)
            for x in large:
                step(model, optimizer, torch.cat([x, next(small)]))
    dist.barrier()
    if rank == 0:
        print("trained", flush=True)
    dist.destroy_process_group()


def step(model, optimizer, x):
    optimizer.zero_grad()
    model(x).pow(2).mean().backward()
    optimizer.step()


if __name__ == "__main__":
    main()
