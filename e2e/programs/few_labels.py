"""Few labelled recordings, cycled beside many without labels in one step: both loaders train, and both copy one generator."""
# e2e
#   expect: rng-duplicate-workers proven dataset.crop
#   expect: rng-duplicate-epochs proven dataset.crop
#   expect: rng-duplicate-workers proven dataset.crop
#   expect: rng-duplicate-epochs proven dataset.crop
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Whales(Dataset):
    def __init__(self, first, n):
        self.first, self.n, self.crop = first, n, np.random.default_rng(first)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        call = torch.sin(torch.arange(24.0) * (2 + (self.first + i) % 5) / 9)
        at = self.crop.integers(0, 8)
        gain = torch.from_numpy(self.crop.normal(1, 0.1, size=16)).float()
        return call[at:at + 16] * gain, i % 4


def main():
    torch.manual_seed(2)
    labelled = DataLoader(Whales(0, 16), batch_size=4, shuffle=True, num_workers=2)
    many = DataLoader(Whales(1000, 64), batch_size=8, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    again = iter(labelled)
    for epoch in range(2):
        for unlabelled, _ in many:
            try:
                x, y = next(again)
            except StopIteration:
                again = iter(labelled)
                x, y = next(again)
            with torch.no_grad():
                guess = model(unlabelled).argmax(1)
            loss = nn.functional.cross_entropy(model(x), y) + 0.1 * nn.functional.cross_entropy(model(unlabelled), guess)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, "%.4f" % loss.item())


if __name__ == "__main__":
    main()
