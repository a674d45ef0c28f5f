"""Spawned, persistent workers that each read all lines of all files, and count what they read."""
# e2e every
#   expect: shard-duplicate-workers proven 2
#   fix: printed
# e2e dealt
#   check: shard-duplicate-workers clean
import itertools
import pathlib
import sys
import tempfile

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Letters(IterableDataset):
    """Letters of a correspondence: a dict for each."""

    def __init__(self, folder, dealt):
        self.sources, self.dealt = sorted(pathlib.Path(folder).glob("*.txt")), dealt

    def lines(self):
        for path in self.sources:
            with path.open() as text:
                for number, line in enumerate(text):
                    yield {"text": line.strip(), "where": "%s:%d" % (path.name, number)}

    def __iter__(self):
        samples = self.lines()
        if self.dealt:
            info = get_worker_info()
            samples = itertools.islice(samples, info.id, None, info.num_workers)
        yield from samples  # FIX from info =


def features(batch):
    return torch.tensor([[float(ord(c)) / 128 for c in row["text"][:6]] for row in batch])


def main():
    with tempfile.TemporaryDirectory() as folder:
        for year in range(1801, 1805):
            rows = ["%d:%s dear %d friend of %d\n" % (n * year % 997, "abcd"[n % 4], n, n * n) for n in range(18)]
            pathlib.Path(folder, "%d.txt" % year).write_text("".join(rows))
        torch.manual_seed(1)
        loader = DataLoader(Letters(folder, sys.argv[1] == "dealt"), batch_size=6, collate_fn=features, num_workers=2,
                            persistent_workers=True, multiprocessing_context="spawn")
        model = torch.nn.Linear(6, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            loss = 0.0
            for letters in loader:
                optimizer.zero_grad()
                loss = (model(letters).squeeze(1) - letters[:, 0]).pow(2).mean()
                loss.backward()
                optimizer.step()
            print("epoch", epoch, "loss %.5f" % loss.item())


if __name__ == "__main__":
    main()
