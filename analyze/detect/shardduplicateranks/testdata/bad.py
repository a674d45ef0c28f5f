"""Bad: both ranks go through all crystals, in one order."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Crystals(Dataset):
    def __init__(self):
        self.cells = torch.rand(48, 4, generator=torch.Generator().manual_seed(40))

    def __len__(self):
        return len(self.cells)

    def __getitem__(self, i):
        return self.cells[i]


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(14)
    crystals = Crystals()
    loader = DataLoader(crystals, batch_size=8, shuffle=True)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for cells in loader:
            optimizer.zero_grad()
            model(cells).pow(2).mean().backward()
            optimizer.step()
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may abort a process that ends after its peer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(os.path.join(folder, "store"),), nprocs=2)
