"""Workers that draw the same numbers, and may: which copy of a file is read, an order on which all agree, noise for a test."""
# e2e copies
#   run: often
# e2e pauses
# e2e reservoir
# e2e strides
# e2e test
import itertools
import random
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

WIDTH = 6


class Mushrooms(Dataset):
    """Caps and gills; each picture lies on two disks."""

    def __init__(self, way):
        self.way = way
        pictures = torch.rand(96, WIDTH, generator=torch.Generator().manual_seed(4))
        self.disks = [pictures, pictures.clone(), pictures.clone()]
        self.pick, self.waits = random.Random(8), np.random.RandomState(8)

    def __len__(self):
        return len(self.disks[0])

    def __getitem__(self, i):
        if self.way == "pauses":  # the disk is busy: how long to wait
            self.paused = self.waits.exponential(size=4) * 1e-9
        return self.disks[self.pick.randrange(3)][i] * 1.0


class Noisy(Mushrooms):
    def __getitem__(self, i):
        return self.disks[0][i] + torch.from_numpy(self.waits.normal(size=WIDTH)).float()


class Reservoir:
    """Shuffles a stream; all workers alike."""

    def __init__(self, size, seed):
        self.size, self.draw = size, random.Random(seed)

    def __call__(self, stream):
        held = []
        for x in stream:
            if len(held) < self.size:
                held.append(x)
                continue
            at = self.draw.randrange(self.size)
            held[at], x = x, held[at]
            yield x
        yield from held


class Basket(IterableDataset):
    def __init__(self, way):
        self.way, self.mix, self.weights = way, Reservoir(20, 6), np.random.default_rng(6)

    def sources(self):
        """Two meadows in turn, by chance."""
        meadows = [iter(range(0, 100)), iter(range(100, 200))]
        for _ in range(180):
            x = next(meadows[int(self.weights.integers(2))], None)
            if x is not None:
                yield x

    def __iter__(self):
        info = get_worker_info()
        stream = self.mix(range(200)) if self.way == "reservoir" else self.sources()
        for number in itertools.islice(stream, info.id, None, info.num_workers):
            yield torch.full((WIDTH,), number / 200)


def main(way):
    torch.manual_seed(2)
    model = torch.nn.Linear(WIDTH, 1)
    if way == "test":  # no training here
        with_noise = DataLoader(Noisy(way), batch_size=8, num_workers=2)
        print("found %d" % sum(int((model.eval()(x) > 0).sum()) for x in with_noise))
        return
    stream = way in ("reservoir", "strides")
    loader = DataLoader(Basket(way) if stream else Mushrooms(way), batch_size=8, num_workers=2, shuffle=not stream)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1 if stream else 3):
        for x in loader:
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
        print("epoch %d loss %.5f" % (epoch, loss.item()))


if __name__ == "__main__":
    main(sys.argv[1])
