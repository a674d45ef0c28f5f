"""Forecasts from windows of one series that come in the order of time; and the same rows, cut into pieces that share nothing."""
# e2e windows
#   run: often
#   check: not-shuffled cannot-tell
# e2e copies
#   check: not-shuffled cannot-tell
# e2e pieces
#   expect: not-shuffled likely
import sys

import torch
from torch.utils.data import DataLoader, Dataset

WIDTH = 12


class Tides(Dataset):
    def __init__(self, way):
        levels = torch.cumsum(torch.rand(3600, generator=torch.Generator().manual_seed(9)) - 0.5, 0)
        self.way, self.levels = way, levels if way == "pieces" else levels[:320]

    def __len__(self):
        return len(self.levels) // (WIDTH + 1) if self.way == "pieces" else len(self.levels) - WIDTH

    def __getitem__(self, i):
        first = i * (WIDTH + 1) if self.way == "pieces" else i
        past, now = self.levels[first:first + WIDTH], self.levels[first + WIDTH]
        if self.way == "copies":
            return {"now": now, "past": torch.tensor(past.tolist())}
        return past, now


def main():
    torch.manual_seed(9)
    copies = sys.argv[1] == "copies"
    loader = DataLoader(Tides(sys.argv[1]), batch_size=16, num_workers=2 if copies else 0)
    model = torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for epoch in range(3):
        loss = 0.0
        for batch in loader:
            past, now = (batch["past"], batch["now"]) if copies else batch
            optimizer.zero_grad()
            loss = (model(past).squeeze(1) - now).pow(2).mean()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.5f" % loss.item())


if __name__ == "__main__":
    main()
