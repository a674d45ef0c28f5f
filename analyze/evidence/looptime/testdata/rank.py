"""Rank 1 takes 200 ms to fetch a batch, rank 0 takes 40."""
# fixture: ranks 2

import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, i):
        time.sleep(0.05 if os.environ["RANK"] == "1" else 0.01)
        return torch.full((16,), float(i))


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for x in DataLoader(Rows(), batch_size=4, num_workers=2):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.005)
