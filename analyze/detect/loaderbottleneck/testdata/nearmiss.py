"""Near-miss: the first pass fills a cache on the disk, and waits; later ones do not."""
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __len__(self):
        return 320

    def __getitem__(self, i):
        path = "cache-%d.pt" % i
        if not os.path.exists(path):
            time.sleep(0.02)  # computes it
            torch.save(torch.full((16,), float(i)), path)
        return torch.load(path)


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for epoch in range(3):
    for x in DataLoader(Cached(), batch_size=8, shuffle=True, num_workers=1):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        time.sleep(0.08)
