"""One rank has fewer samples than the other: it leaves out what cannot be read, or the last share is short."""
# e2e torchrun:2 unreadable
#   torch: >=1.10
#   exit: 1
#   expect: uneven-shards proven rank 1
# e2e torchrun:2 shares
#   torch: >=1.10
#   exit: 1
#   expect: uneven-shards proven rank 1
# e2e torchrun:2 even
#   torch: >=1.10
#   check: uneven-shards clean
import datetime
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

way = sys.argv[1]


class Slides(IterableDataset):
    def __init__(self, rank, world):
        self.slides = range(rank, 96, world)

    def __iter__(self):
        for n in self.slides:
            if n % 2 and n > 40:  # a folder that was copied only in part
                continue
            yield torch.tensor([n / 96, n % 5, n % 7])


class Fields(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, i):
        return torch.tensor([i / 100, i % 4, i % 9])


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if way == "unreadable":
        loader = DataLoader(Slides(rank, world), batch_size=4, num_workers=1)
    else:  # 30 samples are kept for later: rank 1 is short of them
        last = 70 if way == "shares" else 100
        share = Subset(Fields(), range(rank * 50, min(rank * 50 + 50, last)))
        loader = DataLoader(share, batch_size=5, shuffle=True, num_workers=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for step, x in enumerate(loader):
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=15))
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    if way != "even":
        sys.stdout.flush()
        os._exit(0)  # no more than that is left of this rank
    if rank == 0:
        print("steps", step + 1, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
