"""Good: one worker, and a step that leaves it the processor."""
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

class Images(Dataset):
    def __len__(self):
        return 280

    def __getitem__(self, i):
        busy(0.002)
        return torch.full((16,), float(i))


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
loader = DataLoader(Images(), batch_size=4, shuffle=True, num_workers=1, persistent_workers=True)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        time.sleep(0.08)
