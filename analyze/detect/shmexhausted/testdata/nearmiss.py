"""Near miss: a worker dies of SIGBUS in /dev/shm, in a file that became shorter. There is room."""
# fixture: tier kernel
# fixture: shm 16
import mmap
import os

import torch
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __init__(self):
        self.file = os.open("/dev/shm/samples.bin", os.O_RDWR | os.O_CREAT)
        os.ftruncate(self.file, 1 << 20)
        self.map = mmap.mmap(self.file, 1 << 20)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 41:
            os.ftruncate(self.file, 4096)  # as a program that writes the file anew would
        return torch.tensor(self.map[(index + 1) << 13])


if __name__ == "__main__":
    try:
        for samples in DataLoader(Samples(), batch_size=4, num_workers=2):
            pass
    except (RuntimeError, OSError, EOFError):
        pass
