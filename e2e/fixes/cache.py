"""Each worker keeps what it has cropped under a key that hardly ever comes again."""
import random
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.crops = {}

    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.001)
        key, crop = (index, random.random()), np.ones(12500, np.float32)
        # FIX from while len(self.crops)
        self.crops[key] = crop
        return torch.from_numpy(crop[:4])


if __name__ == "__main__":
    loader = DataLoader(Photos(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    for _ in range(10):
        for x in loader:
            pass
