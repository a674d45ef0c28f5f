"""drop_last in a stream drops the rest of every worker, not one rest in all."""
# e2e three
#   expect: samples-dropped proven 21
#   fix: printed
# e2e most
#   expect: samples-dropped proven
# e2e kept
#   run: often
#   check: samples-dropped not-applicable
# e2e one
import itertools
import sys

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

way = sys.argv[1]
DROP = way != "kept"


class Sips(IterableDataset):
    """Tasting notes: 69 of them, 23 for each of three workers."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        for n in itertools.islice(range(self.n), info.id, None, info.num_workers):
            yield {"taste": torch.cos(torch.arange(4) * (n + 2) / 11.0), "score": n % 100 / 100}


def main():
    torch.manual_seed(1)
    workers, n = {"three": (3, 69), "kept": (3, 69), "most": (4, 60), "one": (1, 69)}[way]
    loader = DataLoader(Sips(n), batch_size=8, num_workers=workers, drop_last=DROP)  # FIX argument drop_last
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        seen = 0
        for batch in loader:
            optimizer.zero_grad()
            (model(batch["taste"]).squeeze(1) - batch["score"].float()).pow(2).mean().backward()
            optimizer.step()
            seen += len(batch["score"])
        print("epoch", epoch, "samples", seen)


if __name__ == "__main__":
    main()
