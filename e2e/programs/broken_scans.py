"""Unreadable scans are left out as the batch is put together: one of eight is left here and there, for a BatchNorm."""
# e2e lines
#   expect: last-batch-size-1 proven collate function
# e2e vectors
#   expect: last-batch-size-1 proven ValueError: Expected more than 1 value per channel
#   exit: 1
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scans(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        if 24 <= i < 31:  # a folder that was copied badly
            return None
        return torch.sin(torch.arange(9.0).reshape(1, 9) * (i + 1) / 7), float(i % 2)


def readable(samples):
    samples = [s for s in samples if s is not None]
    return torch.stack([x for x, _ in samples]), torch.tensor([y for _, y in samples])


def main():
    torch.manual_seed(0)
    loader = DataLoader(Scans(), batch_size=8, num_workers=2, collate_fn=readable)
    if sys.argv[1] == "lines":
        model = nn.Sequential(nn.BatchNorm1d(1), nn.Flatten(), nn.Linear(9, 1))
    else:
        model = nn.Sequential(nn.Flatten(), nn.Linear(9, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            loss = (model(x)[:, 0] - y).pow(2).mean()
            loss.backward()
            optimizer.step()
        print(epoch, "%.4f" % loss.item())


if __name__ == "__main__":
    main()
