"""Bad: sys.exit() in a dataset. The hook tier sees it raised."""
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 20:
            sys.exit("sample 20 cannot be read")
        return torch.zeros(2)


if __name__ == "__main__":
    try:
        for points in DataLoader(Points(), batch_size=4, num_workers=2):
            pass
    except (RuntimeError, OSError, EOFError):
        pass
