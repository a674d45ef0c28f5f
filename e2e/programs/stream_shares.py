"""Streams whose workers do not get shares that fit together: one row too many at each end, all of it beside a worker's number, by key, under noise."""
# e2e seams
#   expect: shard-duplicate-workers proven 1 sample at the end of each worker's share
# e2e seam
#   expect: shard-duplicate-workers likely 1 sample at the end of each worker's share
# e2e stamped
#   expect: shard-duplicate-workers likely `echo`
# e2e keys
#   expect: shard-duplicate-workers proven 90 of their rows in the batches
# e2e titled
#   expect: shard-duplicate-workers proven rows of the batches
# e2e noisy
#   expect: shard-duplicate-workers likely `species`
# e2e two_sources
#   check: shard-duplicate-workers cannot-tell
import sys
import time

import torch
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, get_worker_info

way = sys.argv[1]
PINGS = torch.randn(90, 4, generator=torch.Generator().manual_seed(3))
SPECIES = torch.randint(0, 3, (90,), generator=torch.Generator().manual_seed(5))


class Sonar(IterableDataset):
    """Echoes from a survey of herring; `first` and `last` rows of a file."""

    def __init__(self, first=0, last=90, shared=True):
        self.first, self.last, self.shared = first, last, shared

    def __iter__(self):
        info = get_worker_info()
        if way in ("seams", "seam"):  # range(start, end + 1)
            n = (self.last - self.first) // info.num_workers
            start = self.first + n * info.id
            end = min(start + n, self.last - 1)
            rows = range(start, end + 1)
        elif self.shared:
            rows = range(self.first, self.last)
        else:
            rows = range(self.first + info.id, self.last, info.num_workers)
        for i in rows:
            if way == "stamped":
                yield {"echo": PINGS[i], "reader": info.id, "read_at": time.perf_counter()}
            elif way == "keys":
                yield "ping-%03d" % i
            elif way == "titled":
                yield PINGS[i], "worker %d, ping %d" % (info.id, i)
            elif way == "noisy":
                yield {"echo": PINGS[i] + 0.1 * torch.randn(4), "species": int(SPECIES[i])}
            else:
                yield PINGS[i]


def by_key(keys):
    return torch.stack([PINGS[int(k[5:])] for k in keys])


def echoes(samples):
    return torch.stack([echo for echo, _ in samples])


def main():
    torch.manual_seed(2)
    data = ChainDataset([Sonar(0, 40, shared=False), Sonar(40, 90)]) if way == "two_sources" else Sonar()
    collate = {"keys": by_key, "titled": echoes}.get(way)
    loader = DataLoader(data, batch_size=8, num_workers=3 if way == "seams" else 2, collate_fn=collate)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        n = 0
        for batch in loader:
            echo = batch["echo"] if isinstance(batch, dict) else batch
            optimizer.zero_grad()
            model(echo).pow(2).mean().backward()
            optimizer.step()
            n += len(echo)
        print("epoch", epoch, "echoes", n)


if __name__ == "__main__":
    main()
