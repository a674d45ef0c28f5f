"""A batch of one item, and no step on one row: it has many rows, is passed over with a step on what was accumulated, or nothing
computes anything over the rows of a batch."""
# e2e tiles
# e2e flush
# e2e layer_norm
# e2e validation
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Mosaics(Dataset):
    """An item is some tiles of one floor."""

    def __len__(self):
        return 33

    def __getitem__(self, i):
        return torch.cos(torch.arange(30.0).reshape(5, 6) * (i + 1) / 11)


def main():
    how = sys.argv[1]
    torch.manual_seed(1)
    loader = DataLoader(Mosaics(), batch_size=8, shuffle=True, collate_fn=torch.cat if how == "tiles" else None)
    model = nn.Sequential(nn.Flatten(), nn.LayerNorm(30) if how == "layer_norm" else nn.BatchNorm1d(6 if how == "tiles" else 30),
                          nn.Linear(6 if how == "tiles" else 30, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        waiting = 0
        for x in loader:
            if how in ("flush", "validation") and len(x) == 1:
                if waiting:
                    optimizer.step()
                    optimizer.zero_grad()
                continue
            model(x).pow(2).mean().backward()
            waiting = (waiting + 1) % (3 if how == "flush" else 1)
            if not waiting:
                optimizer.step()
                optimizer.zero_grad()
        if how == "validation":
            model.eval()
            print("validation %.5f" % sum(model(x).sum().item() for x in loader))
            model.train()
        print(epoch, "%.5f" % sum(p.sum().item() for p in model.parameters()))


if __name__ == "__main__":
    main()
