"""Everything is seeded at the begin of each epoch, or the loader is made anew with a new generator: one order for all epochs."""
# e2e everything
#   expect: order-repeats proven torch was seeded anew before each
#   expect: rng-duplicate-epochs proven torch
#   fix: printed
# e2e anew
#   run: often
#   expect: order-repeats proven was put back to one state before each
#   fix: printed
# e2e once
#   check: order-repeats clean
import random
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

SEED, way = 2020, sys.argv[1]


class Coins(Dataset):
    """Both sides of a coin; a scratch here and there."""

    def __init__(self):
        self.relief = np.random.default_rng(1).random((84, 12), dtype=np.float32)

    def __len__(self):
        return len(self.relief)

    def __getitem__(self, i):
        face = torch.from_numpy(self.relief[i])
        return {"obverse": face * (torch.rand(12) > 0.05), "reverse": face.flip(0), "year": 1800 + i}


def main():
    random.seed(SEED)
    torch.manual_seed(SEED)
    coins, loader = Coins(), None
    model = torch.nn.Linear(12, 12)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        if way == "everything":
            random.seed(SEED)
            np.random.seed(SEED)
            torch.manual_seed(SEED)  # FIX line manual_seed
        if way == "anew":
            generator = torch.Generator().manual_seed(SEED)  # FIX line manual_seed
            loader = DataLoader(coins, batch_size=12, shuffle=True, generator=generator)
        else:
            loader = loader or DataLoader(coins, batch_size=12, shuffle=True, num_workers=2)
        for batch in loader:
            optimizer.zero_grad()
            loss = (model(batch["obverse"]) - batch["reverse"]).pow(2).mean()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.5f" % loss.item())


if __name__ == "__main__":
    main()
