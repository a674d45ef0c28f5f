"""Bad: a stream leaves out rows, and its length counts them."""
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Rows(IterableDataset):
    def __init__(self):
        self.rows = torch.rand(100, 4, generator=torch.Generator().manual_seed(4))

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        info = get_worker_info()
        for row in self.rows[info.id::info.num_workers]:
            if row[0] > 0.3:
                yield row


def main():
    torch.manual_seed(1)
    loader = DataLoader(Rows(), batch_size=8, num_workers=2)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2 * len(loader))
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
            schedule.step()


if __name__ == "__main__":
    main()
