"""Lengths that are right: one that grows with the course, rows to fill the last batch, rows with noise."""
# e2e course
#   check: wrong-len cannot-tell
# e2e course each
#   check: wrong-len clean
# e2e filled
#   check: wrong-len cannot-tell
# e2e noise
#   check: wrong-len cannot-tell
# e2e once
#   check: wrong-len cannot-tell
import sys

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

way = sys.argv[1]
READINGS = torch.randn(70, 3, generator=torch.Generator().manual_seed(6))


class Course(IterableDataset):
    """Short sentences first, longer ones later."""

    def __init__(self):
        self.upto = 20

    def __len__(self):
        return self.upto

    def __iter__(self):
        return iter(READINGS[:self.upto])


class Readings(Dataset):
    def __init__(self, per_epoch=None):
        self.rows = torch.cat([READINGS, READINGS[:10]]) if way == "filled" else READINGS
        self.per_epoch = per_epoch or len(self.rows)

    def __len__(self):
        return self.per_epoch

    def __getitem__(self, i):
        row = self.rows[i % len(self.rows)]
        return row + 0.1 * torch.randn(3) if way == "noise" else row


def main():
    torch.manual_seed(2)
    data = Course() if way == "course" else Readings(112 if way == "noise" else None)
    loader = DataLoader(data, batch_size=8, shuffle=way != "course")
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    print("steps", len(loader))
    for epoch in range(1 if way == "once" else 3):
        if way == "course":
            data.upto = 20 + 25 * epoch
            if "each" in sys.argv:
                print("steps", len(loader))
        n = 0
        for batch in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
            n += len(batch)
        print("epoch", epoch, "readings", n)


if __name__ == "__main__":
    main()
