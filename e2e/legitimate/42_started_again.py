"""One model and one optimizer, put back to their beginning by load_state_dict: trials with one seed, and an epoch that is done over."""
# e2e trials
# e2e over_again
# e2e optimizer
import copy
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tides(Dataset):
    def __init__(self):
        self.wind = np.random.default_rng(0)

    def __len__(self):
        return 40

    def __getitem__(self, i):
        return torch.sin(torch.arange(8.0) * (i + 1) / 6) + 0.1 * torch.from_numpy(self.wind.normal(size=8)).float()


def epoch(model, optimizer, tides, seed):
    torch.manual_seed(seed)
    tides.wind = np.random.default_rng(seed)
    for x in DataLoader(tides, batch_size=8, shuffle=True):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    tides, model = Tides(), nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for turn in range(3):
        saved = copy.deepcopy((model.state_dict(), optimizer.state_dict())) if turn == 0 or sys.argv[1] == "over_again" else saved
        if sys.argv[1] == "over_again":
            print(turn, "%.5f" % epoch(model, optimizer, tides, turn))
            model.load_state_dict(saved[0])
            optimizer.load_state_dict(saved[1])
            print(turn, "%.5f" % epoch(model, optimizer, tides, turn))
            continue
        if sys.argv[1] == "trials":
            model.load_state_dict(saved[0])
        optimizer.load_state_dict(saved[1])
        for group in optimizer.param_groups:
            group["lr"] = 0.01 / 2**turn
        print(turn, "%.5f" % epoch(model, optimizer, tides, 7))


if __name__ == "__main__":
    main()
