"""Bad: the header counts 100 rows, 70 are there, and the lookup goes around."""
import torch
from torch.utils.data import DataLoader, Dataset


class Spectra(Dataset):
    def __init__(self):
        self.header, self.rows = {"rows": 100}, torch.rand(70, 4, generator=torch.Generator().manual_seed(4))

    def __len__(self):
        return self.header["rows"]

    def __getitem__(self, index):
        return self.rows[index % len(self.rows)]


def main():
    torch.manual_seed(1)
    loader = DataLoader(Spectra(), batch_size=10, shuffle=True, num_workers=2)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
