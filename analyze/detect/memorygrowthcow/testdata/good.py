"""Good: the records of bad.py as two arrays."""
# fixture: tier kernel
# fixture: memory 600M
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.paths = np.array(["/data/%d.jpg" % i for i in range(200000)])
        self.labels = np.arange(1000, 201000)

    def __len__(self):
        return len(self.labels) // 100

    def __getitem__(self, i):  # an album
        paths = [str(path) for path in self.paths[i::len(self)]]
        return torch.tensor([float(self.labels[i::len(self)].mean() + len(paths[0]))])


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    loader = DataLoader(Photos(), batch_size=20, shuffle=True, num_workers=2)
    for epoch in range(2):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
