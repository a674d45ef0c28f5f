"""An epoch of a chosen number of samples goes around the data; a torn line ends each pass, and the program goes on."""
# e2e chosen
#   expect: wrong-len likely a length of 112
# e2e torn
#   expect: swallowed-crash likely IndexError
#   check: wrong-len cannot-tell
import sys

import torch
from torch.utils.data import DataLoader, Dataset

way = sys.argv[1]


class Readings(Dataset):
    def __init__(self, per_epoch=None):
        self.rows = torch.randn(70, 3, generator=torch.Generator().manual_seed(6))
        self.per_epoch = per_epoch or len(self.rows)
        self.fields = ["1 2 3" if i != 33 else "1 2" for i in range(len(self.rows))]

    def __len__(self):
        return self.per_epoch

    def __getitem__(self, i):
        row = self.rows[i % len(self.rows)]
        return row * int(self.fields[i].split()[2]) if way == "torn" else row  # one line is short


def main():
    torch.manual_seed(2)
    loader = DataLoader(Readings(112 if way == "chosen" else None), batch_size=8, shuffle=True)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        try:
            for batch in loader:
                optimizer.zero_grad()
                model(batch).pow(2).mean().backward()
                optimizer.step()
        except IndexError as error:
            print("epoch", epoch, "ends:", error)


if __name__ == "__main__":
    main()
