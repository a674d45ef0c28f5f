"""The article's own example (torch < 1.9): numpy in __getitem__, and the workers inherit the parent's state."""
# e2e
#   run: often
#   expect[torch<1.9]: rng-duplicate-workers note numpy
#   expect[torch<1.9]: rng-duplicate-epochs note numpy
#   check[torch>=1.9]: rng-duplicate-workers clean
#   check[torch>=1.9]: rng-duplicate-epochs clean
import numpy as np
import torch
from torch.utils.data import Dataset, DataLoader


class RandomDataset(Dataset):
    def __getitem__(self, index):
        return np.random.randint(0, 1000, 3)

    def __len__(self):
        return 8


# FIX
torch.manual_seed(0)
np.random.seed(0)
dataset = RandomDataset()
dataloader = DataLoader(dataset, batch_size=2, num_workers=2, worker_init_fn=None)
for epoch in range(2):
    for batch in dataloader:
        print(batch)
