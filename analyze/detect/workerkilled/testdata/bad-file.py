"""Bad: a mapped file becomes shorter while a worker reads it: SIGBUS, which torch's message blames on shared memory."""
# fixture: tier kernel
import mmap
import os

import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 64

    def __getitem__(self, index):
        with open(self.path, "r+b") as f, mmap.mmap(f.fileno(), 0) as data:
            if index == 20:
                os.truncate(self.path, 4096)
            return torch.tensor(data[500_000])


if __name__ == "__main__":
    with open("points.bin", "wb") as f:
        f.write(bytes(1 << 20))
    try:
        for points in DataLoader(Points("points.bin"), batch_size=4, num_workers=2):
            pass
    except (RuntimeError, OSError, EOFError):
        pass
