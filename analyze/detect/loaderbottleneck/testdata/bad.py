"""Bad: files are read from a slow disk, by two workers; the loop waits for them."""
import mmap
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset

FILE = "records.bin"
SIZE = 128 << 10


class Records(Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, i):
        data = mmap.mmap(-1, SIZE)
        fd = os.open(FILE, os.O_RDONLY | os.O_DIRECT)  # as if each record was read for the first time
        try:
            os.preadv(fd, [data], i % 40 * SIZE)
        finally:
            os.close(fd)
        time.sleep(0.02)  # the disk is slow
        return torch.tensor(list(data[:256]), dtype=torch.float32)


if __name__ == "__main__":
    with open(FILE, "wb") as file:
        file.write(os.urandom(40 * SIZE))
        os.fsync(file.fileno())
    model = torch.nn.Linear(256, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for epoch in range(3):
        for x in DataLoader(Records(), batch_size=8, shuffle=True, num_workers=2):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
            time.sleep(0.01)
