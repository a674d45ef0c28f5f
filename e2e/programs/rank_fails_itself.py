"""Ranks of unequal length that agree before each step, and end together: what fails then has nothing to do with it."""
# e2e torchrun:2 disk
#   torch: >=1.10
#   exit: 1
#   check: uneven-shards cannot-tell
# e2e torchrun:2 killed
#   torch: >=1.10
#   exit: 1
#   check: uneven-shards cannot-tell
# e2e torchrun:2 late
#   torch: >=1.10
#   exit: 1
#   check: uneven-shards cannot-tell
# e2e torchrun:2 counted
#   torch: >=1.10
#   exit: 1
#   check: uneven-shards cannot-tell
import datetime
import os
import signal
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

way = sys.argv[1]


def together(loader):
    """Batches as long as every rank has one."""
    batches = iter(loader)
    while True:
        batch = next(batches, None)
        everybody = [None, None]
        dist.all_gather_object(everybody, batch is not None)
        if not all(everybody):
            return
        yield batch


def counted(loader):
    """As many batches as the rank with the fewest has, which all know beforehand."""
    least = torch.tensor(len(loader))
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    for n, batch in enumerate(loader):
        if n == least:
            break
        yield batch


def save(rank):
    if rank != 0:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=20))
        return
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)  # what the kernel does to a rank that gathers all weights
    if way == "late":
        time.sleep(1)
        sys.exit(4)  # the scheduler's time is up
    with open("/dev/full", "w") as weights:
        weights.write("0.5" * 100000)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    pollen = TensorDataset(torch.rand(30 + 18 * rank, 4))
    loader = DataLoader(pollen, batch_size=6, shuffle=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (x,) in (counted if way == "counted" else together)(loader):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    save(rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
