"""Near-miss: the workers of the first epoch alone make the index, the others find it."""
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 160

    def __getitem__(self, i):
        return torch.full((16,), float(i))


def opens(worker):
    if not os.path.exists("index-%d" % worker):
        time.sleep(4)  # makes it
        open("index-%d" % worker, "w").close()


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
loader = DataLoader(Rows(), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=opens)
for epoch in range(5):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        time.sleep(0.02)
