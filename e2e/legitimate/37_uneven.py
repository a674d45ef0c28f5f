"""Ranks of unequal length that nobody waits for: evaluation that is gathered as objects, training within a Join context."""
# e2e torchrun:2 gather
#   torch: >=1.10
# e2e torchrun:2 join
#   torch: >=1.10
# e2e torchrun:2 agreed
#   torch: >=1.10
import contextlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, Subset

way = sys.argv[1]


class Streets(Dataset):
    def __init__(self, n, first=0):
        self.n, self.first = n, first

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([(self.first + i) / 100, (self.first + i) % 9 / 9])


class Districts(IterableDataset):
    """Each rank has districts of its own, of other sizes."""

    def __init__(self, rank):
        self.districts = [(0, 30), (30, 17)] if rank == 0 else [(60, 26)]

    def __iter__(self):
        for first, n in self.districts:
            for street in range(n):
                yield torch.tensor([(first + street) / 100, street % 9 / 9])


def agreed(loader):
    """Batches as long as every rank has one."""
    batches = iter(loader)
    while True:
        batch = next(batches, None)
        have = torch.tensor([0.0 if batch is None else 1.0])
        dist.all_reduce(have, op=dist.ReduceOp.MIN)
        if not have:
            return
        yield batch


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if way == "gather":
        sampler = DistributedSampler(Streets(64))
        loader = DataLoader(Streets(64), batch_size=8, sampler=sampler, num_workers=1)
    else:
        sampler, loader = None, DataLoader(Districts(rank), batch_size=6, num_workers=1)
    tests = Streets(31, first=200)
    held_out = DataLoader(Subset(tests, range(rank, 31, 2) if rank else range(0, 31, 2)), batch_size=3)
    if rank == 1:
        held_out = DataLoader(Subset(tests, range(1, 31, 5)), batch_size=3)
    for epoch in range(2):
        # Up to Python 3.11 a child hangs in its own fork if a thread of its parent, here gloo's, makes or deletes its state in that
        # moment (gh-112275): the workers of the second epoch, recorded or not, in 1 run of 200.
        time.sleep(0.2)
        if sampler is not None:
            sampler.set_epoch(epoch)
        batches = agreed(loader) if way == "agreed" else loader
        if way == "join":
            from torch.distributed.algorithms.join import Join

            context = Join([model])
        else:
            context = contextlib.nullcontext()
        with context:
            for x in batches:
                optimizer.zero_grad()
                (model(x).squeeze(1) - x.sum(1)).pow(2).mean().backward()
                optimizer.step()
        with torch.no_grad():  # each rank its own part, and no collective in the loop
            own = [round(error, 4) for x in held_out for error in (model.module(x).squeeze(1) - x.sum(1)).abs().tolist()]
        everywhere = [None, None]
        dist.all_gather_object(everywhere, own)
        if rank == 0:
            print("epoch", epoch, "tested", len(everywhere[0]), "and", len(everywhere[1]), flush=True)
    dist.barrier()  # gloo may hang where one rank is gone before the other has its last object
    # Up to torch 1.13 DDP's end joins gloo's threads with the interpreter's lock held, for which one of them may be waiting to let go
    # of a tensor: then the program hangs, recorded or not (1 of 43 plain runs on a busy machine).
    time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
