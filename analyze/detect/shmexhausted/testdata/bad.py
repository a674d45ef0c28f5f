"""Bad: five batches of 4 MB are there at once while the loop stands still, where /dev/shm has 16."""
# fixture: tier kernel
# fixture: shm 16
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
        for images in DataLoader(Images(), batch_size=4, num_workers=2):
            time.sleep(1)
    except RuntimeError:
        pass
