"""Ranks that share out a stream by files: the files are not equally long, and nobody asks whether all have a batch."""
# e2e torchrun:2 plain
#   torch: >=1.10
#   exit: 1
#   expect: uneven-shards proven rank 0
# e2e torchrun:2 logged
#   torch: >=1.10
#   exit: 1
#   expect: uneven-shards proven rank 0
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

way = sys.argv[1]


class Letters(IterableDataset):
    """Bundles of letters, some of them thin."""

    def __init__(self, bundles):
        self.bundles = bundles

    def __iter__(self):
        for bundle, n in self.bundles:
            for letter in range(n):
                yield torch.tensor([bundle / 4, letter / 30, n / 30])


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    bundles = [(0, 20), (1, 24), (2, 16), (3, 30)]
    loader = DataLoader(Letters(bundles[rank::2]), batch_size=6, num_workers=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
        if way == "logged":
            mean = loss.detach().clone()
            dist.all_reduce(mean)
    sys.stdout.flush()
    os._exit(0)  # the weights are on the disk by now


if __name__ == "__main__":
    main()
