"""Batches are made inside the dataset (batch_size=None). files[id:] for files[id::workers]: later workers read a part of what the first one reads."""
# e2e slip
#   expect: shard-duplicate-workers proven
# e2e strided
#   check: shard-duplicate-workers clean
import sys

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Sonde(IterableDataset):
    """Weather balloons: one ascent is one file."""

    def __init__(self, stride):
        self.stride, self.ascents = stride, range(1, 37)

    def __iter__(self):
        info = get_worker_info()
        mine = self.ascents[info.id::info.num_workers] if self.stride else self.ascents[info.id:]
        for ascent in mine:
            height = torch.arange(48.0).reshape(6, 8)
            yield torch.exp(-height / (20 + ascent)) + torch.sin(height * ascent) / 50, torch.full((6,), ascent / 36)


def main():
    torch.manual_seed(2)
    loader = DataLoader(Sonde(sys.argv[1] == "strided"), batch_size=None, num_workers=3)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        total = 0.0
        for pressure, drift in loader:
            optimizer.zero_grad()
            loss = (model(pressure).squeeze(1) - drift).pow(2).mean()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, "loss %.4f" % total)


if __name__ == "__main__":
    main()
