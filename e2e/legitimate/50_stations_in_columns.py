"""Processes that start_processes forks read observations of the weather that their parent has read: its columns are NumPy
arrays, which have no object for each observation. What is inherited stays shared.
"""
# e2e
#   check: memory-growth-cow not-applicable
import numpy as np
import torch
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset


class Observations(Dataset):
    def __init__(self, n):
        i = np.arange(n)
        self.stations, self.hours, self.celsius = (i % 4001).astype(np.int32), i * 0.5, 15 + i % 23 * 0.25

    def __len__(self):
        return len(self.hours) // 50

    def __getitem__(self, i):
        day = slice(50 * i, 50 * i + 50)
        return torch.tensor(self.hours[day] % 24, dtype=torch.float32), torch.tensor(self.celsius[day], dtype=torch.float32)


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
    print("degree %d: %.2f" % (degrees[index], loss.item()))


def main():
    torch.set_num_threads(1)
    observations = Observations(400_000)
    torch.multiprocessing.start_processes(fit, args=(observations, (2, 4)), nprocs=2, start_method="fork")


if __name__ == "__main__":
    main()
