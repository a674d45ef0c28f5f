"""Passes without gradients over what was, or will be, trained on, and none is a validation of it: rolling horizons, weights, statistics, next items."""
# e2e horizons
#   check: split-leak clean
# e2e weights
# e2e statistics
# e2e next_item
#   check: split-leak cannot-tell
# e2e repeated_splits
#   check: split-leak clean
# e2e side_by_side
#   check: split-leak cannot-tell
import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset, WeightedRandomSampler

random.seed(4)
torch.manual_seed(4)


def new():
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 1))
    return model, torch.optim.Adam(model.parameters(), lr=1e-3)


def train(model, optimizer, loader):
    model.train()
    for (x,) in loader:
        optimizer.zero_grad()
        loss = (model(x).squeeze(1) - x.sum(1)).pow(2).mean()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def error(model, loader):
    model.eval()
    return sum((model(x).squeeze(1) - x.sum(1)).pow(2).sum().item() for (x,) in loader)


def horizons():
    """Demand per hour: each horizon is forecast before its hours are trained on, and two horizons overlap."""
    hours, (model, optimizer), hour = TensorDataset(torch.rand(240, 4)), new(), 0
    stream = iter(DataLoader(hours, batch_size=6))
    for _ in range(8):
        model.train()
        for _ in range(3):
            (x,) = next(stream)
            hour += len(x)
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        print(hour, "error %.4f" % error(model, DataLoader(Subset(hours, range(hour, hour + 30)), batch_size=10)))


def weights():
    """The losses of a part of the training set set how often its samples are drawn."""
    claims, (model, optimizer) = TensorDataset(torch.rand(200, 4)), new()
    weight = torch.ones(200)
    for _ in range(3):
        loader = DataLoader(claims, batch_size=10, sampler=WeightedRandomSampler(weight, 120))
        print("loss %.4f" % train(model, optimizer, loader))
        some = random.sample(range(200), 80)
        weight[some] += error(model, DataLoader(Subset(claims, some), batch_size=40)) / 80


def statistics():
    """Statistics of the normalisation are taken anew from a random part of the training part, between two epochs."""
    rows, (model, optimizer) = TensorDataset(torch.rand(180, 4)), new()
    part = Subset(rows, range(150))
    loader = DataLoader(part, batch_size=10, shuffle=True)
    for _ in range(2):
        train(model, optimizer, loader)
        model.train()
        with torch.no_grad():
            for (x,) in DataLoader(Subset(part, random.sample(range(150), 70)), batch_size=35):
                model(x)
        print("held out %.4f" % error(model, DataLoader(Subset(rows, range(150, 180)), batch_size=15)))


class Listeners(Dataset):
    """What somebody listened to; the last song is for the evaluation."""

    def __init__(self):
        self.songs, self.last = torch.rand(160, 5, 2), False

    def __len__(self):
        return len(self.songs)

    def __getitem__(self, i):
        song = self.songs[i, 4 if self.last else int(torch.randint(0, 4, ()))]
        return (torch.cat([song, torch.rand(2)]),)  # and one that nobody has played to them


def next_item():
    listeners, (model, optimizer) = Listeners(), new()
    loader = DataLoader(Subset(listeners, range(120)), batch_size=8, shuffle=True, num_workers=1)
    validation = DataLoader(Subset(listeners, range(40, 160)), batch_size=30)
    for _ in range(2):
        listeners.last = False
        train(model, optimizer, loader)
        listeners.last = True
        print("error %.4f" % error(model, validation))


def repeated_splits():
    """Repeated random splits, with a model for each."""
    rows = TensorDataset(torch.rand(100, 4))
    for _ in range(4):
        order, (model, optimizer) = torch.randperm(100).tolist(), new()
        loader, validation = DataLoader(Subset(rows, order[:75]), batch_size=15, shuffle=True), DataLoader(Subset(rows, order[75:]), batch_size=25)
        train(model, optimizer, loader)
        print("error %.4f" % error(model, validation))


def side_by_side():
    """Folds, whose models are trained in turns, epoch by epoch, and then evaluated in turns."""
    rows, members = TensorDataset(torch.rand(90, 4)), [new() for _ in range(3)]
    parts = [[i for i in range(90) if i % 3 != fold] for fold in range(3)]
    loaders = [DataLoader(Subset(rows, part), batch_size=12, shuffle=True) for part in parts]
    held_out = [DataLoader(Subset(rows, range(fold, 90, 3)), batch_size=15) for fold in range(3)]
    for _ in range(2):
        for member, loader in zip(members, loaders):
            train(*member, loader)
        print(["%.3f" % error(model, validation) for (model, _), validation in zip(members, held_out)])


if __name__ == "__main__":
    globals()[sys.argv[1]]()
