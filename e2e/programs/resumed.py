"""A checkpoint is loaded once, weights of an average are put in for each evaluation and taken out again: one training, and its
order repeats because the seed is set in each epoch."""
# e2e
#   expect: order-repeats proven
import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(6)
    reefs, others = TensorDataset(torch.randn(64, 5)), TensorDataset(torch.randn(24, 5))
    model = nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    checkpoint = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    average = copy.deepcopy(model.state_dict())
    for epoch in range(3):
        torch.manual_seed(42)
        for (x,) in DataLoader(reefs, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            for name, value in model.state_dict().items():
                average[name] = 0.9 * average[name] + 0.1 * value
        mine = copy.deepcopy(model.state_dict())
        model.load_state_dict(average)
        model.eval()
        with torch.no_grad():
            print(epoch, "%.5f" % sum(model(x).pow(2).sum().item() for (x,) in DataLoader(others, batch_size=8)))
        model.load_state_dict(mine)
        model.train()


if __name__ == "__main__":
    main()
