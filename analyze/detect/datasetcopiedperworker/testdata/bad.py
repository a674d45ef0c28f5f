"""Bad: an array of 8 MB that is pickled into both workers, in each pass."""
# fixture: memory 600M
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.vectors = np.zeros((50000, 20))

    def __len__(self):
        return 400

    def __getitem__(self, i):
        return torch.from_numpy(self.vectors[i, :1]).float()


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    loader = DataLoader(Photos(), batch_size=20, num_workers=2, multiprocessing_context="spawn")
    for epoch in range(2):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
