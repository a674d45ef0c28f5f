"""Data that come round again within a pass: concatenated, cycled, repeated, an epoch of a number of steps."""
# e2e concat
# e2e subset
# e2e wrapper
#   check: wrong-len clean
# e2e cycle
#   run: often
# e2e stream
# e2e steps
# e2e virtual
# e2e table
import itertools
import sys

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset, get_worker_info


class Clicks(Dataset):
    def __init__(self, noise=0.0):
        self.noise = noise

    def __len__(self):
        return 48

    def __getitem__(self, i):
        click = torch.tensor([i % 7 / 7, i % 5 / 5, i / 48])
        return click + self.noise * torch.randn(3) if self.noise else click


class Times(Dataset):
    """mmdetection's RepeatDataset: as if there were more of it."""

    def __init__(self, dataset, times):
        self.dataset, self.times, self.own = dataset, times, len(dataset)

    def __len__(self):
        return self.own * self.times

    def __getitem__(self, i):
        return self.dataset[i % self.own]


class Virtual(Dataset):
    """An epoch as long as one likes over crops that are new each time (nnU-Net, MONAI)."""

    def __init__(self, dataset, length):
        self.dataset, self.length = dataset, length

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        return self.dataset[i % len(self.dataset)]


class Gates(Dataset):
    """A truth table of six rows, and an epoch that is as long as one likes it to be: the example of many a lesson."""

    rows = torch.tensor([[0, 0, 1], [0, 1, 0], [1, 0, 0], [1, 1, 1], [0, 2, 0], [2, 0, 1]]).float()

    def __len__(self):
        return 500

    def __getitem__(self, i):
        return self.rows[i % len(self.rows)]


class Repeated(IterableDataset):
    """A shard for each worker, round and round; times None: for ever."""

    def __init__(self, dataset, times):
        self.dataset, self.times = dataset, times

    def __iter__(self):
        info = get_worker_info()
        for _ in itertools.count() if self.times is None else range(self.times):
            for i in range(info.id, len(self.dataset), info.num_workers):
                yield self.dataset[i]


def main():
    way = sys.argv[1]
    torch.manual_seed(6)
    clicks, limit = Clicks(), None
    data, options = clicks, dict(shuffle=True)
    if way == "concat":
        data = ConcatDataset([clicks] * 3)
    elif way == "subset":
        data = Subset(clicks, list(range(48)) * 3)
    elif way == "wrapper":
        data = Times(clicks, 3)
    elif way == "virtual":
        data = Virtual(Clicks(noise=0.1), 200)
    elif way == "table":
        data = Gates()
    elif way in ("stream", "steps"):
        data, options, limit = Repeated(clicks, 3 if way == "stream" else None), {}, None if way == "stream" else 15
    loader = DataLoader(data, batch_size=8, num_workers=2, **options)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = itertools.islice(itertools.cycle(loader), 24) if way == "cycle" else None
    for epoch in range(1 if batches else 2):
        seen = 0
        for click in batches or itertools.islice(loader, limit):
            optimizer.zero_grad()
            (model(click).squeeze(1) - click.sum(1)).pow(2).mean().backward()
            optimizer.step()
            seen += len(click)
        print("epoch", epoch, "samples", seen)


if __name__ == "__main__":
    main()
