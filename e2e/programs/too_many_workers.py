"""Shares that leave nothing for the last worker: ceil(shards / workers), and files over ranks and workers."""
# e2e ceil
#   expect: idle-workers proven worker 3
# e2e torchrun:2 files
#   torch: >=1.10
#   expect: idle-workers proven
# e2e strided
#   check: idle-workers clean
import math
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SHARDS = [range(s * 20, s * 20 + 20) for s in range(6)]


class Radar(IterableDataset):
    def __init__(self, way):
        self.way = way

    def shards(self):
        info, rank, world = get_worker_info(), int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        if self.way == "ceil":
            share = math.ceil(len(SHARDS) / info.num_workers)
            return SHARDS[info.id * share:(info.id + 1) * share]
        return SHARDS[rank::world][info.id::info.num_workers]

    def __iter__(self):
        for shard in self.shards():
            for n in shard:
                yield torch.sin(torch.arange(5) * (n + 1) / 30.0)


def main():
    torch.manual_seed(9)
    model, rank = torch.nn.Linear(5, 1), 0
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
        model, rank = DistributedDataParallel(model), dist.get_rank()
    loader = DataLoader(Radar(sys.argv[1]), batch_size=5, num_workers=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for echo in loader:
            optimizer.zero_grad()
            loss = (model(echo).squeeze(1) - echo[:, 2]).pow(2).mean()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print("epoch", epoch, "loss %.5f" % loss.item(), flush=True)
    if "RANK" in os.environ:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
