"""Bad: the permutation that is dealt out is another one on each rank."""
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Photos(Dataset):
    def __init__(self):
        self.names = sorted({"photo-%d" % i for i in range(64)})

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return torch.full((4,), float(self.names[index][6:]))


def train(rank, store):
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    torch.manual_seed(3)
    photos = Photos()
    sampler = DistributedSampler(photos, num_replicas=2, rank=rank, shuffle=True, seed=rank)
    loader = DataLoader(photos, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's threads may abort a process that ends after its peer


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(train, args=(os.path.join(folder, "store"),), nprocs=2)
