"""Bad: spawned workers cannot load their dataset and end before their first fetch."""
# fixture: tier kernel
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset


def load():
    if multiprocessing.current_process().name != "MainProcess":
        raise ValueError("the archive is open in another process")
    return Points()


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(2)

    def __reduce__(self):
        return load, ()


if __name__ == "__main__":
    try:
        for points in DataLoader(Points(), batch_size=4, num_workers=2, multiprocessing_context="spawn"):
            pass
    except (RuntimeError, OSError, EOFError):
        pass
