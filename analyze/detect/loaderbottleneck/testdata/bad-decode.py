"""Bad: samples are decoded in the training process itself."""
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, i):
        end = time.thread_time() + 0.01
        while time.thread_time() < end:  # decoding
            pass
        return torch.full((16,), float(i))


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
loader = DataLoader(Images(), batch_size=8, shuffle=True)
for epoch in range(5):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
