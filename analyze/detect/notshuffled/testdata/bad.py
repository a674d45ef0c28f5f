"""shuffle=True was forgotten."""
import torch
from torch.utils.data import DataLoader, TensorDataset



def main():
    torch.manual_seed(1)
    points = TensorDataset(torch.arange(192.0).reshape(96, 2) / 192)
    loader = DataLoader(points, batch_size=8, num_workers=2)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for (batch,) in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
