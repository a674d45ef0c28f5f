"""Rows of the data that are equal: rare samples copied by hand, blank pages, paddings, a class with one icon for all, a calendar."""
# e2e map
#   run: often
#   check: shard-duplicate-workers not-applicable
# e2e stream
# e2e blank
# e2e calendar
# e2e torchrun:2 ranks
#   torch: >=1.10
import itertools
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, get_worker_info

COPIES = [n % 8 if n % 3 == 0 else n for n in range(96)]  # each third row is one of eight


def page(n, blank=False):
    if blank and n % 2:
        return torch.zeros(20)
    return torch.cos(torch.arange(20) * (COPIES[n] + 1) / 5.0)


class Pages(Dataset):
    def __len__(self):
        return len(COPIES)

    def __getitem__(self, n):
        return page(n)


class Calendar(Dataset):
    """Hours of three weeks and a bit: they come round again as weeks do."""

    def __len__(self):
        return 184

    def __getitem__(self, n):
        hour, day = n % 8, n // 8 % 7
        return torch.nn.functional.one_hot(torch.tensor([hour, day]), 10).float().flatten()


class Scans(IterableDataset):
    """Dealt out row by row; blank: every other one shows nothing."""

    def __init__(self, blank):
        self.blank = blank

    def __iter__(self):
        info = get_worker_info()
        for n in itertools.islice(range(len(COPIES)), info.id, None, info.num_workers):
            yield page(n, self.blank)


def main():
    way = sys.argv[1]
    torch.manual_seed(7)
    model, sampler, pages = nn.Sequential(nn.Linear(20, 4), nn.Linear(4, 20)), None, Pages()
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        model, sampler = DistributedDataParallel(model), DistributedSampler(pages)
        loader = DataLoader(pages, batch_size=8, sampler=sampler, num_workers=2)
    elif way in ("map", "calendar"):
        loader = DataLoader(pages if way == "map" else Calendar(), batch_size=8, shuffle=True, num_workers=2)
    else:
        loader = DataLoader(Scans(way == "blank"), batch_size=8, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for x in loader:
            optimizer.zero_grad()
            loss = (model(x) - x).pow(2).mean()
            loss.backward()
            optimizer.step()
        if sampler is None or dist.get_rank() == 0:
            print("epoch", epoch, "loss %.5f" % loss.item(), flush=True)
    if sampler is not None:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
