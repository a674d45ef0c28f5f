"""Near miss: folds, with one optimizer; what one fold is evaluated on another one has trained on."""
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset


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
    for fold in range(3):
        held = set(range(32 * fold, 32 * fold + 32))
        training = DataLoader(Subset(glaciers, [i for i in range(96) if i not in held]), batch_size=8, shuffle=True)
        validation = DataLoader(Subset(glaciers, sorted(held)), batch_size=16)
        for epoch in range(2):
            train(model, optimizer, training)
            evaluate(model, validation)


if __name__ == "__main__":
    main()
