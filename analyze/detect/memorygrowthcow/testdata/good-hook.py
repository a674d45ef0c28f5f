"""Good: the strings of bad-hook.py as an array of fixed width."""
# fixture: memory 600M
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.paths = np.array([b"/data/train/%07d.jpg" % i for i in range(300000)])

    def __len__(self):
        return len(self.paths) // 100

    def __getitem__(self, i):  # an album
        return torch.tensor([float(len(path)) for path in self.paths[i::len(self)]]).mean(0, keepdim=True)


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    loader = DataLoader(Photos(), batch_size=20, shuffle=True, num_workers=4, persistent_workers=True)
    for epoch in range(2):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
