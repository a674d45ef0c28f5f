"""Streams whose workers have their own: names that mean another row in each worker, ranges that meet, noise, a last row to fill up."""
# e2e keys
#   check: shard-duplicate-workers clean
# e2e keys once
#   check: shard-duplicate-workers cannot-tell
# e2e places
#   check: shard-duplicate-workers clean
# e2e ranges
#   check: shard-duplicate-workers clean
# e2e noisy
#   check: shard-duplicate-workers cannot-tell
# e2e hidden_noise
#   check: shard-duplicate-workers cannot-tell
# e2e filled
#   check: shard-duplicate-workers cannot-tell
# e2e classes
#   check: shard-duplicate-workers cannot-tell
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

way = sys.argv[1]
DRIFT = torch.randn(2, 44, 3, generator=torch.Generator().manual_seed(8))  # two buoys


class Buoys(IterableDataset):
    def __iter__(self):
        mine = get_worker_info().id
        rows = DRIFT[mine]
        if way == "filled" and mine == 1:  # each as many: the first one once more, at the end
            rows = torch.cat([rows[:-1], DRIFT[0][:1]])
        for hour, row in enumerate(rows):
            if way == "keys":
                yield "hour %d" % hour
            elif way == "places":
                yield np.array([hour, hour * 0.25])
            elif way == "noisy":
                yield {"drift": row + 0.05 * torch.randn(3), "hour": hour}
            elif way == "hidden_noise":
                yield row + torch.from_numpy(np.random.default_rng().normal(size=3)).float()
            elif way == "classes":  # the same balanced turns of classes everywhere
                yield {"drift": row + 0.05 * torch.randn(3), "kind": hour % 4}
            else:
                yield row


def read(names):
    mine = DRIFT[get_worker_info().id]
    hours = [int(n[5:]) if isinstance(n, str) else int(n[0]) for n in names]
    return mine[hours]


def main():
    torch.manual_seed(2)
    loader = DataLoader(Buoys(), batch_size=4, num_workers=2, collate_fn=read if way in ("keys", "places") else None)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(1 if "once" in sys.argv else 2):
        n = 0
        for batch in loader:
            drift = batch["drift"] if isinstance(batch, dict) else batch
            optimizer.zero_grad()
            model(drift).pow(2).mean().backward()
            optimizer.step()
            n += len(drift)
        print("epoch", epoch, "hours", n)


if __name__ == "__main__":
    main()
