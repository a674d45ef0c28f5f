"""The sampler takes 100 ms for a batch, the step 5."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, i):
        return torch.full((16,), float(i))


class Slow:
    def __len__(self):
        return 30

    def __iter__(self):
        for first in range(0, 120, 4):
            time.sleep(0.1)
            yield list(range(first, first + 4))


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for x in DataLoader(Rows(), batch_sampler=Slow(), num_workers=2):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.005)
