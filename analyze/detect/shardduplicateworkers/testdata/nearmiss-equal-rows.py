"""Near miss: a share each, and some rows are equal in the data."""
import itertools

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Tracks(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        info = get_worker_info()
        rows = torch.cat([self.rows, self.rows[:6]])
        return itertools.islice(iter(rows), 27 * info.id, 27 * (info.id + 1))


def main():
    torch.manual_seed(3)
    loader = DataLoader(Tracks(torch.rand(48, 4)), batch_size=8, num_workers=2)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for rows in loader:
            optimizer.zero_grad()
            model(rows).pow(2).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
