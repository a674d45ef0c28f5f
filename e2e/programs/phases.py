"""One line makes the loaders of both phases, anew each epoch. Training's reads from one generator that each worker copies."""
# e2e
#   expect: rng-duplicate-workers proven dataset.shake
#   expect: rng-duplicate-epochs proven dataset.shake
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Seismograms(Dataset):
    def __init__(self, events, augment):
        self.events, self.shake = events, np.random.default_rng(11) if augment else None

    def __len__(self):
        return 48

    def __getitem__(self, i):
        trace = torch.sin(torch.arange(12.0) * (1 + self.events[i]) / 50)
        if self.shake is not None:
            trace = trace + torch.from_numpy(self.shake.normal(scale=0.1, size=12)).float()
        return trace, self.events[i] % 3


def main():
    torch.manual_seed(4)
    sets = {"train": Seismograms(range(48), True), "val": Seismograms(range(100, 148), False)}
    model = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        for phase in ("train", "val"):
            model.train(phase == "train")
            loader = DataLoader(sets[phase], batch_size=8, num_workers=2, shuffle=phase == "train")
            total = 0.0
            for x, y in loader:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    loss = nn.functional.cross_entropy(model(x), y)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                total += loss.item()
            print(epoch, phase, "%.4f" % total)


if __name__ == "__main__":
    main()
