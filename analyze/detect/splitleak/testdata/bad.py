"""Bad: the split is drawn twice, and two draws differ."""
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split


def train(model, optimizer, loader):
    for (rows,) in loader:
        optimizer.zero_grad()
        model(rows).pow(2).mean().backward()
        optimizer.step()


def evaluate(model, loader):
    with torch.no_grad():
        for (rows,) in loader:
            model(rows)


def main():
    torch.manual_seed(3)
    glaciers = TensorDataset(torch.rand(96, 4))
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    training = DataLoader(random_split(glaciers, [64, 32])[0], batch_size=8, shuffle=True)
    validation = DataLoader(random_split(glaciers, [64, 32])[1], batch_size=16)
    for epoch in range(2):
        train(model, optimizer, training)
        evaluate(model, validation)


if __name__ == "__main__":
    main()
