"""Bad: five batches of 4 MB would not fit into 16; so far the loop is faster than its workers."""
# fixture: shm 16
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        time.sleep(0.02)
        return torch.zeros(4, 256, 256)


if __name__ == "__main__":
    try:
        for images in DataLoader(Images(), batch_size=4, num_workers=2):
            pass
    except RuntimeError:
        pass
