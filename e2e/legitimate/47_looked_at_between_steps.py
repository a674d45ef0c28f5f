"""A batch of validation is looked at between the steps of training, and attacked ones are evaluated: nothing of it is trained on."""
# e2e look
# e2e sometimes
# e2e attack
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Leaves(Dataset):
    def __init__(self, first, n, fixed):
        self.first, self.n, self.light = first, n, np.random.default_rng(5) if fixed else None

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        leaf = torch.cos(torch.arange(10.0) * (1 + (self.first + i) % 6) / 4)
        light = torch.randn(10) if self.light is None else torch.from_numpy(self.light.normal(size=10)).float()
        return leaf + 0.1 * light, i % 3


def attack(model, x, y):
    """The worst that a small change can do."""
    change = nn.Parameter(torch.zeros_like(x))
    worse = torch.optim.SGD([change], lr=0.1)
    for _ in range(2):
        worse.zero_grad()
        (-nn.functional.cross_entropy(model(x + change), y)).backward()
        worse.step()
    return (x + change).detach()


def main():
    how = sys.argv[1]
    torch.manual_seed(3)
    training = DataLoader(Leaves(0, 64, False), batch_size=8, shuffle=True, num_workers=2)
    held_out = DataLoader(Leaves(500, 33, True), batch_size=4, num_workers=2)
    model = nn.Sequential(nn.Linear(10, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        looks = iter(held_out)
        for step, (x, y) in enumerate(training):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            if how == "look" or how == "sometimes" and step % 3 == 2:
                x, y = next(looks)
                with torch.no_grad():
                    nn.functional.cross_entropy(model(x), y)
        model.eval()
        right = 0
        for x, y in held_out:
            if how == "attack":
                x = attack(model, x, y)
            with torch.no_grad():
                right += (model(x).argmax(1) == y).sum().item()
        model.train()
        print(epoch, right)


if __name__ == "__main__":
    main()
