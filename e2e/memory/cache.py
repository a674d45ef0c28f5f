"""Each worker fills a cache of its own: memory that is new, and not copied from the parent."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Cached(Dataset):
    def __init__(self):
        self.rows = np.arange(12000.0)
        self.cache = {}

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        if i not in self.cache:
            self.cache[i] = [float(k) for k in range(i % 7, i % 7 + 250)]  # 8 KB of objects
        return self.rows[i] + len(self.cache[i])


if __name__ == "__main__":
    torch.set_num_threads(1)
    loader = DataLoader(Cached(), batch_size=64, shuffle=True, num_workers=2, multiprocessing_context="fork", persistent_workers=True)
    for _ in range(2):
        print("%.0f" % sum(float(batch.sum()) for batch in loader))
