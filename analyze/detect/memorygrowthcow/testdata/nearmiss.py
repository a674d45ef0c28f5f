"""No bug: each worker's cache grows, the garbage collector runs over all that import torch left, and images as
bytes are a few large objects: one page of each is copied."""
# fixture: tier kernel
# fixture: memory 600M
import gc

import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.names = ["class %d" % i for i in range(1000)]
        self.images = [bytes([i % 251]) * 20000 for i in range(2000)]
        self.cache = {}

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        if i % 500 == 0:
            gc.collect()
        if i not in self.cache:
            self.cache[i] = torch.full((5000,), float(len(self.names[i % 1000]) + self.images[i][7]))
        return self.cache[i][:1]


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    loader = DataLoader(Photos(), batch_size=50, shuffle=True, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
