"""A training that walks through its samples as they lie, class after class."""
# e2e default
#   expect: not-shuffled likely
#   fix: printed
# e2e chained
#   run: often
#   expect: not-shuffled likely
# e2e shuffled
#   check: not-shuffled clean
# e2e patches
import sys

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler, Subset

way = sys.argv[1]
SHUFFLE = way == "shuffled"


class Moths(Dataset):
    """Wings, sorted by species. patches: another part of the wing each time."""

    def __init__(self):
        self.wings = torch.rand(240, 20, generator=torch.Generator().manual_seed(4))

    def __len__(self):
        return len(self.wings)

    def __getitem__(self, i):
        start = int(torch.randint(0, 10, ())) if way == "patches" else 5
        return self.wings[i, start:start + 10], i // 24


def main():
    torch.manual_seed(3)
    moths = Moths()
    if way == "chained":
        part = Subset(moths, range(200))
        loader = DataLoader(part, batch_sampler=BatchSampler(SequentialSampler(part), 8, drop_last=False), num_workers=2,
                            persistent_workers=True)
    else:
        loader = DataLoader(moths, batch_size=12, shuffle=SHUFFLE, num_workers=2)  # FIX argument shuffle
    model = torch.nn.Linear(10, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        total = 0.0
        for wing, species in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(wing), species)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, "loss %.3f" % total)


if __name__ == "__main__":
    main()
