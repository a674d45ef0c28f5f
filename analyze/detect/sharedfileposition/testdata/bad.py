"""Bad: the dataset opens its file in __init__, and the forked workers seek and read through one position."""
# fixture: tier kernel
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SIZE = 4096


class Records(Dataset):
    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)

    def __len__(self):
        return 96

    def __getitem__(self, i):
        rows = []
        for part in range(8):  # a record is of eight blocks, far from each other
            self.file.seek((i + 96 * part) * SIZE)
            time.sleep(0.0005)  # a disk that is slow to find it
            rows.append(np.frombuffer(self.file.read(SIZE), dtype=np.uint8)[:16])
        return torch.from_numpy(np.concatenate(rows)).float()


with open("records.bin", "wb") as f:
    for i in range(8 * 96):
        f.write(bytes([i % 256, i // 256]) * (SIZE // 2))
model = torch.nn.Linear(128, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
loader = DataLoader(Records("records.bin"), batch_size=8, shuffle=True, num_workers=2)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
