"""Can the model learn at all? One batch, or eight samples, a hundred times."""
# e2e batch
# e2e few
# e2e first
import itertools
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def main():
    torch.manual_seed(0)
    way = sys.argv[1]
    x = torch.rand(160, 4)
    rooms = TensorDataset(x, (x.sum(1) > 2).long())
    if way == "batch":
        loader = DataLoader(rooms, batch_size=16, shuffle=True, num_workers=2)
        source = [[next(iter(loader))]] * 60
    elif way == "few":
        source = [DataLoader(Subset(rooms, range(8)), batch_size=8)] * 40
    else:  # Lightning's overfit_batches: the first ones, always the same
        loader = DataLoader(rooms, batch_size=16)
        source = [lambda: itertools.islice(loader, 2)] * 20
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batches in source:
        for size, kind in batches() if callable(batches) else batches:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(size), kind)
            loss.backward()
            optimizer.step()
    print("loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
