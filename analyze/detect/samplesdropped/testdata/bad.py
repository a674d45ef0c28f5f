"""Bad: each of three workers has 47 rows, five batches of 8 and 7 rows that it drops."""
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Rows(IterableDataset):
    def __init__(self):
        self.rows = torch.rand(141, 4, generator=torch.Generator().manual_seed(4))

    def __iter__(self):
        info = get_worker_info()
        yield from self.rows[info.id::info.num_workers]


def main():
    torch.manual_seed(1)
    loader = DataLoader(Rows(), batch_size=8, num_workers=3, drop_last=True)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
