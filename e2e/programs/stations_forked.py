"""Two models of the weather are fitted side by side, by processes that start_processes forks from one that has read the
observations of all stations, as a list of dicts. To look at an observation copies its page, for each process.

The process that forked them holds the list itself, in the frame of main(), until both are through.
"""
# e2e
#   expect: memory-growth-cow note 2 processes forked to run fit MB of args[0].rows
import multiprocessing

import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset

BOTH = multiprocessing.get_context("fork").Barrier(2)


class Observations(Dataset):
    def __init__(self, n):
        self.rows = [{"station": "station-%05d" % (i % 4001), "hours": i * 0.5, "celsius": 15 + i % 23 * 0.25} for i in range(n)]

    def __len__(self):
        return len(self.rows) // 50

    def __getitem__(self, i):
        day = self.rows[50 * i:50 * i + 50]
        return torch.tensor([r["hours"] % 24 for r in day]), torch.tensor([r["celsius"] for r in day])


def fit(index, observations, degrees):
    torch.manual_seed(index)
    model = torch.nn.Linear(degrees[index], 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for hours, celsius in DataLoader(observations, batch_size=64, shuffle=True):
        powers = torch.stack([(hours / 24) ** k for k in range(degrees[index])], -1)
        loss = (model(powers).squeeze(-1) - celsius).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    BOTH.wait()  # the results are read when both are there
    if index == 0:
        print("degree %d: %.2f" % (degrees[index], loss.item()))


def main():
    torch.set_num_threads(1)
    observations = Observations(200_000)
    torch.multiprocessing.start_processes(fit, args=(observations, (2, 4)), nprocs=2, start_method="fork")


if __name__ == "__main__":
    main()
