"""Random numbers as a function of the index: crops of the validation images, and the noise that a denoiser has to remove."""
# e2e validation
# e2e training
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Plates(Dataset):
    def __init__(self, n, fixed):
        self.n, self.fixed = n, fixed

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        clean = torch.linspace(0, 1 + i / self.n, 12)
        if self.fixed:
            noise = torch.from_numpy(np.random.default_rng(i).normal(size=12)).float()
        else:
            noise = torch.randn(12)
        return clean + 0.1 * noise, clean


def main():
    torch.manual_seed(3)
    train = DataLoader(Plates(96, sys.argv[1] == "training"), batch_size=12, shuffle=True, num_workers=2)
    held_out = DataLoader(Plates(40, True), batch_size=20, num_workers=2)
    model = nn.Linear(12, 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for noisy, clean in train:
            optimizer.zero_grad()
            (model(noisy) - clean).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            print("epoch %d error %.5f" % (epoch, sum((model(noisy) - clean).pow(2).mean().item() for noisy, clean in held_out)))


if __name__ == "__main__":
    main()
