"""Five batches of 4 MB are there at once while the loop stands still; /dev/shm has 16."""
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(4, 256, 256)


if __name__ == "__main__":
    try:
        loader = DataLoader(
            Images(), batch_size=4,
            num_workers=2,  # FIX argument num_workers
            prefetch_factor=2)  # FIX argument prefetch_factor
        for images in loader:
            time.sleep(0.4)
    except RuntimeError:
        pass
