"""Persistent workers that see each change: the loop sets a copy of the number for its own log, which the workers never use."""
# e2e tensor
# e2e value
# e2e array
# e2e index
# e2e stream
# e2e property
# e2e fallback
# e2e message
# e2e statistics
#   check: stale-worker-state clean
# e2e own_counter
#   check: stale-worker-state clean
import logging
import multiprocessing
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Sampler, get_worker_info

WAY = sys.argv[1] if len(sys.argv) > 1 else ""
LOG = logging.getLogger("tides")


class Schedule:
    """What all processes see."""

    def __init__(self):
        self.level = torch.zeros(1, dtype=torch.int64).share_memory_()
        self.raw = multiprocessing.Value("i", 0)
        self.table = torch.zeros(4).share_memory_().numpy()

    @property
    def stage(self):
        return {"value": self.raw.value, "array": int(self.table[2])}.get(WAY, int(self.level[0]))

    def move(self, n):
        self.level[0] = n
        self.raw.value = n
        self.table[2] = n


class Tides(Dataset):
    def __init__(self):
        self.heights = torch.randn(72, 6, generator=torch.Generator().manual_seed(3))
        self.schedule, self.stage, self.served = Schedule(), 0, 0
        self.best, self.history = None, []

    def __len__(self):
        return len(self.heights)

    def __repr__(self):
        return "Tides at stage %d" % self.stage

    def now(self):
        if WAY == "fallback":
            return self.schedule.stage if get_worker_info() is not None else self.stage
        return self.schedule.stage

    def __getitem__(self, i):
        if WAY == "index":
            i, stage = i
        else:
            stage = self.now()
        if i < 0:
            raise IndexError(f"tide {i} of stage {self.stage}")
        if WAY == "message":
            LOG.debug("tide %d, the log is at stage %d", i, self.stage)
        if WAY == "own_counter":
            self.served += 1
        return self.heights[i] * (1 + stage), stage


class Stream(IterableDataset):
    def __init__(self, tides):
        self.tides, self.stage = tides, 0

    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id, len(self.tides), info.num_workers):
            yield self.tides[i]


class Staged(Sampler):
    """Each index comes with the stage that it is drawn for."""

    def __init__(self, tides):
        self.tides = tides

    def __iter__(self):
        return iter([(int(i), self.tides.stage) for i in torch.randperm(len(self.tides))])

    def __len__(self):
        return len(self.tides)


def main():
    torch.manual_seed(6)
    tides = Tides()
    data = Stream(tides) if WAY == "stream" else tides
    order = {"sampler": Staged(tides)} if WAY == "index" else {} if WAY == "stream" else {"shuffle": True}
    loader = DataLoader(data, batch_size=6, num_workers=2, persistent_workers=True, **order)
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        if WAY not in ("statistics", "own_counter"):
            data.stage = tides.stage = epoch
            tides.schedule.move(epoch)
            print(tides)
        tides.served = 0
        for x, stage in loader:
            assert set(stage.tolist()) == {tides.stage}
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
        tides.best = min(tides.best or np.inf, float(loss))
        tides.history.append(float(loss))
    print("best %.4f" % tides.best)


if __name__ == "__main__":
    main()
