"""The file is opened in __init__, and two workers seek and read through its one position."""
import os
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self, path):
        self.file = open(path, "rb", buffering=0)  # FIX line self.file = None

    def __len__(self):
        return 160

    def __getitem__(self, i):
        # FIX from if self.file is None
        offset, size = i * 512, 512
        self.file.seek(offset)
        time.sleep(0.001)
        data = self.file.read(size)
        return torch.tensor(list(data[:4] or b"none"), dtype=torch.float32)


with open("records.bin", "wb") as f:
    f.write(os.urandom(160 * 512))
for x in DataLoader(Records(os.path.abspath("records.bin")), batch_size=4, num_workers=2):
    pass
