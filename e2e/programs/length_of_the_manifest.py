"""The length comes from a manifest, the samples from elsewhere: indices that wrap around, a stream shorter than promised, a missing key."""
# e2e wraps
#   expect: wrong-len proven
# e2e stream
#   expect: wrong-len proven
# e2e keys
#   expect: wrong-len proven
#   expect: swallowed-crash likely
# e2e shelves
#   expect: wrong-len proven IndexError 64, 65, 66
#   expect: swallowed-crash likely
# e2e weathered
#   expect: wrong-len likely begins again at index 64 the same text
# e2e counted
#   check: wrong-len clean
import sys

import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset

ROWS = torch.rand(64, 5, generator=torch.Generator().manual_seed(9))
MANIFEST = {"wraps": 100, "keys": 66, "stream": 90, "counted": 64, "shelves": 67, "weathered": 100}


class Tablets(Dataset):
    def __init__(self, way):
        self.manifest, self.way = {"tablets": MANIFEST[way], "kiln": 3}, way
        self.shelf = list(ROWS)
        self.by_name = {n: row for n, row in enumerate(ROWS)}

    def __len__(self):
        return self.manifest["tablets"]

    def __getitem__(self, i):
        if self.way == "shelves":  # lists have no more to say than that it is out of range
            return {"signs": self.shelf[i], "sum": self.shelf[i].sum()}
        if self.way == "weathered":  # each time another way
            row = ROWS[i % len(ROWS)]
            return {"signs": row + 0.1 * torch.randn(5), "sum": row.sum() + 0.1 * torch.randn(()), "name": "tablet %d" % (i % len(ROWS) * 7)}
        row = self.by_name[i] if self.way == "keys" else ROWS[i % len(ROWS)]
        return {"signs": row, "sum": row.sum()}


class Inscriptions(IterableDataset):
    def __len__(self):
        return MANIFEST["stream"]

    def __iter__(self):
        for row in ROWS:
            yield {"signs": row, "sum": row.sum()}


def main():
    way = sys.argv[1]
    torch.manual_seed(4)
    if way == "stream":
        loader = DataLoader(Inscriptions(), batch_size=8)
    else:
        data = Tablets(way)
        loader = DataLoader(Subset(data, range(len(data))) if way == "keys" else data, batch_size=8, shuffle=True, num_workers=2)
    model = torch.nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, len(loader), gamma=0.5)
    for epoch in range(12 if way == "shelves" else 2):
        try:
            for batch in loader:
                optimizer.zero_grad()
                loss = (model(batch["signs"]).squeeze(1) - batch["sum"]).pow(2).mean()
                loss.backward()
                optimizer.step()
                schedule.step()
        except (IndexError, KeyError) as error:
            print("epoch", epoch, "ends with a", type(error).__name__)
        print("epoch", epoch, "rate %.5f" % schedule.get_last_lr()[0])


if __name__ == "__main__":
    main()
