"""Worker 1 of three takes 300 ms for a batch, the others 40."""

import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Rows(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, i):
        time.sleep(0.075 if get_worker_info().id == 1 else 0.01)
        return torch.full((16,), float(i))


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for x in DataLoader(Rows(), batch_size=4, num_workers=3):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.005)
