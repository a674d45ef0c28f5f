"""Bad: one generator made in __init__, copied into both workers."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng(7)

    def __len__(self):
        return 24

    def __getitem__(self, i):
        return torch.tensor(self.rng.normal(i, 1.0, 4)).float()


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in DataLoader(Noisy(), batch_size=4, num_workers=2):
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
