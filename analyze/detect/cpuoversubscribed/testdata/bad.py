"""Bad: six workers that compute share a quota of a fifth of a processor with the training process."""
# fixture: quota 200
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 200

    def __getitem__(self, i):
        busy(0.004)
        return torch.full((16,), float(i))


def busy(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
loader = DataLoader(Images(), batch_size=4, shuffle=True, num_workers=6, persistent_workers=True)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        busy(0.005)
