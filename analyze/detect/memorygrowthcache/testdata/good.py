"""The same with a cache that ends at 100 crops."""
# fixture: memory 600M
import random
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.crops = {}

    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.01)
        if len(self.crops) >= 100:
            self.crops.pop(next(iter(self.crops)))
        self.crops[index, random.random()] = crop = np.ones(12500, np.float32)
        return torch.from_numpy(crop[:4])


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    loader = DataLoader(Photos(), batch_size=8, shuffle=True, num_workers=2, persistent_workers=True, multiprocessing_context="fork")
    for _ in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
