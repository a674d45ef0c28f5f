"""Four workers, each of whose fetches sleeps for 200 ms; the step for 5."""
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        if i % 4 == 3:
            time.sleep(0.2)
        return torch.full((16,), float(i))


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for x in DataLoader(Rows(), batch_size=4, num_workers=4):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    time.sleep(0.005)
