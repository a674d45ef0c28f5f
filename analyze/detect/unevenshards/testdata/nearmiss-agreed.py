"""Near-miss: 24 rows against 16, and the ranks ask each other before each step whether all have a batch."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset


class Files(IterableDataset):
    def __init__(self, rank):
        self.rows = range(24) if rank == 0 else range(24, 40)

    def __iter__(self):
        for i in self.rows:
            yield torch.full((4,), float(i))


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(3)
    loader = DataLoader(Files(rank), batch_size=4)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = iter(loader)
    while True:
        x = next(batches, None)
        have = torch.tensor([x is not None], dtype=torch.int32)
        dist.all_reduce(have, op=dist.ReduceOp.MIN)
        if not have.item():
            break
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may abort a process that ends after its peer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(os.path.join(folder, "store"),), nprocs=2)
