"""Good: 20 rows for each rank."""
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
        self.rows = range(rank, 40, 2)

    def __iter__(self):
        for i in self.rows:
            yield torch.full((4,), float(i))


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(3)
    loader = DataLoader(Files(rank), batch_size=4)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in loader:
        dist.monitored_barrier()
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may abort a process that ends after its peer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(os.path.join(folder, "store"),), nprocs=2)
