"""Self-supervised learning: the same sample twice or more often in a batch, each time distorted in another way."""
# e2e views
#   run: often
#   check: rng-duplicate-workers clean
# e2e multicrop
# e2e pairs
import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

WIDTH = 16


def crop(signal, size):
    start = int(torch.randint(0, len(signal) - size + 1, ()))
    return signal[start:start + size] * (0.8 + 0.4 * torch.rand(()))


class Whales(Dataset):
    """Recordings; a sample is one distorted view, two, or two large and four small crops."""

    def __init__(self, way):
        self.way, self.songs = way, torch.rand(80, 40, generator=torch.Generator().manual_seed(3))

    def __len__(self):
        return len(self.songs)

    def __getitem__(self, i):
        song = self.songs[i]
        if self.way == "views":
            return crop(song, WIDTH), crop(song, WIDTH)
        if self.way == "multicrop":
            return [crop(song, WIDTH) for _ in range(2)] + [crop(song, WIDTH // 2) for _ in range(4)]
        return crop(song, WIDTH)


class Twice(Sampler):
    """Batches in which each index stands twice, in a new order each time."""

    def __init__(self, n, size):
        self.n, self.size, self.random = n, size, random.Random(12)

    def __len__(self):
        return self.n // self.size

    def __iter__(self):
        order = list(range(self.n))
        self.random.shuffle(order)
        for b in range(len(self)):
            own = order[b * self.size:(b + 1) * self.size]
            yield own + own


def main():
    way = sys.argv[1]
    torch.manual_seed(2)
    whales = Whales(way)
    if way == "pairs":
        loader = DataLoader(whales, batch_sampler=Twice(len(whales), 8), num_workers=2)
    else:
        loader = DataLoader(whales, batch_size=8, shuffle=True, num_workers=2)
    encoder = nn.Sequential(nn.Linear(WIDTH, 12), nn.ReLU(), nn.Linear(12, 6))
    optimizer = torch.optim.Adam(encoder.parameters(), lr=0.01)
    for epoch in range(2):
        total = 0.0
        for views in loader:
            if way == "pairs":
                a, b = views.chunk(2)
            else:
                a, b = views[:2]
            a, b = nn.functional.normalize(encoder(a)), nn.functional.normalize(encoder(b))
            loss = nn.functional.cross_entropy(a @ b.t() / 0.2, torch.arange(len(a)))
            if way == "multicrop":
                for small in views[2:]:
                    loss = loss + (nn.functional.normalize(encoder(small.repeat(1, 2))) - a.detach()).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, "loss %.4f" % total)


if __name__ == "__main__":
    main()
