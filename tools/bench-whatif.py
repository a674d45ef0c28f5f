"""A loader whose fetches sleep or compute, and a loop that sleeps. arguments: WORKERS PREFETCH sleep|compute|uneven"""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

workers, prefetch, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Rows(Dataset):
    def __len__(self):
        return 1600

    def __getitem__(self, i):
        if kind == "compute":
            busy(0.006)
        else:
            time.sleep(0.04 if kind == "uneven" and i % 64 < 8 else 0.006)
        return torch.full((64,), float(i))


model = torch.nn.Linear(64, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
options = {"prefetch_factor": prefetch} if workers else {}
for x in DataLoader(Rows(), batch_size=8, num_workers=workers, **options):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.007)
