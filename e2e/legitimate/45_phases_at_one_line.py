"""One line makes the loaders of both phases. The evaluation has its noise fixed on purpose; training's is torch's."""
# e2e anew
# e2e kept
# e2e renewed
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Kilns(Dataset):
    """Temperature curves with the noise of the thermometer."""

    def __init__(self, curves, fixed):
        self.curves, self.noise = curves, np.random.RandomState(3) if fixed else None

    def __len__(self):
        return len(self.curves)

    def __getitem__(self, i):
        noise = torch.randn(6) if self.noise is None else torch.from_numpy(self.noise.normal(size=6)).float()
        return self.curves[i] + 0.05 * noise


def main():
    how = sys.argv[1]
    torch.manual_seed(8)
    curves = {"fit": torch.rand(40, 6), "test": torch.rand(40, 6)}
    sets = {phase: Kilns(x, phase == "test") for phase, x in curves.items()}
    if how == "kept":
        loaders = {phase: DataLoader(d, batch_size=8, shuffle=phase == "fit", num_workers=2) for phase, d in sets.items()}
    model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        for phase in ("fit", "test"):
            if how == "renewed":  # read from the disk again, say
                sets = {phase: Kilns(x, phase == "test") for phase, x in curves.items()}
            if how != "kept":
                loaders = {phase: DataLoader(d, batch_size=8, shuffle=phase == "fit", num_workers=2) for phase, d in sets.items()}
            if phase == "fit":
                model.train()
            else:
                model.eval()
            total = 0.0
            for x in loaders[phase]:
                loss = model(x).pow(2).mean()
                total += loss.item()
                if phase == "fit":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            print(epoch, phase, "%.5f" % total)


if __name__ == "__main__":
    main()
