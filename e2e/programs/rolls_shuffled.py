"""Piano rolls that each worker reads, all of them, in an order of its own: a share of that order would be none."""
# e2e
#   expect: shard-duplicate-workers proven 2
#   fix: printed
import itertools
import random

import torch
from torch.utils.data import DataLoader, IterableDataset


class Rolls(IterableDataset):
    def __init__(self):
        self.rolls = torch.rand(12, 30, 6, generator=torch.Generator().manual_seed(3)).unbind()

    def __iter__(self):
        source = self.rolls
        share = source  # FIX from info =
        rolls = list(share)
        random.shuffle(rolls)  # PyTorch seeds it in each worker
        for roll in rolls:
            yield from roll


def main():
    torch.manual_seed(4)
    loader = DataLoader(Rolls(), batch_size=15, num_workers=2)
    model = torch.nn.Linear(6, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        seen, loss = set(), 0.0
        for x in loader:
            seen.update(map(tuple, x.tolist()))
            optimizer.zero_grad()
            loss = (model(x) - x).pow(2).mean()
            loss.backward()
            optimizer.step()
        assert len(seen) == 12 * 30
        print("epoch", epoch, "loss %.5f" % loss.item())


if __name__ == "__main__":
    main()
