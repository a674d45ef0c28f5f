"""The fetch of a batch takes 400 ms, the step 5."""

import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        if i % 4 == 3:
            time.sleep(0.4)
        return torch.full((16,), float(i))


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for x in DataLoader(Rows(), batch_size=4, num_workers=2):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.005)
