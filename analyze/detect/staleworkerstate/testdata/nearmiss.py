"""Near miss: a value that the fetching code never reads, one that each worker counts by itself, one that never changes."""
import torch
from torch.utils.data import DataLoader, Dataset


class Tiles(Dataset):
    def __init__(self):
        self.pixels = torch.rand(64, 16, generator=torch.Generator().manual_seed(4))
        self.scale = 2.0
        self.served = 0
        self.best_loss = None

    def __len__(self):
        return len(self.pixels)

    def __getitem__(self, index):
        self.served += 1
        return self.pixels[index] * self.scale


def main():
    torch.manual_seed(1)
    tiles = Tiles()
    loader = DataLoader(tiles, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True)
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(3):
        tiles.scale = 2.0
        tiles.served = 0
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
        tiles.best_loss = round(float(loss), 6)


if __name__ == "__main__":
    main()
