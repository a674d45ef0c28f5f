"""Train and validation overlap as they may: the training set evaluated, or a part of it, and folds that change their parts."""
# e2e whole
# e2e part
# e2e folds
#   check: split-leak clean
# e2e restarted
# e2e nested
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, random_split


class Blood(Dataset):
    def __init__(self, n):
        self.values = torch.rand(n, 6, generator=torch.Generator().manual_seed(n))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, i):
        return self.values[i], (self.values[i, 0] > 0.5).long()


def train(model, optimizer, loader):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@torch.no_grad()
def accuracy(model, loader):
    hits = [float((model(x).argmax(1) == y).float().mean()) for x, y in loader]
    return sum(hits) / len(hits)


def new(model=None):
    model = model or nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, torch.optim.Adam(model.parameters(), lr=0.02)


def evaluated(blood, part):
    """How well does it do on what it has seen?"""
    learn, held_out = random_split(blood, [90, 30], generator=torch.Generator().manual_seed(1))
    looked_at = Subset(learn, range(0, 90, 5)) if part else learn
    model, optimizer = new()
    loader = DataLoader(learn, batch_size=10, shuffle=True, num_workers=1)
    seen, unseen = DataLoader(looked_at, batch_size=18), DataLoader(held_out, batch_size=15)
    for epoch in range(2):
        train(model, optimizer, loader)
        print("epoch %d seen %.3f unseen %.3f" % (epoch, accuracy(model, seen), accuracy(model, unseen)))


def folds(blood, restarted):
    """restarted: one model object and one optimizer, put back before each fold."""
    order = torch.randperm(120, generator=torch.Generator().manual_seed(2)).tolist()
    model, optimizer = new()
    before = [{k: v.clone() if torch.is_tensor(v) else v for k, v in model.state_dict().items()}, optimizer.state_dict()]
    for fold in range(4):
        held_out = order[fold * 30:fold * 30 + 30]
        learn = [i for i in order if i not in set(held_out)]
        if restarted:
            model.load_state_dict(before[0])
            optimizer.load_state_dict(before[1])
        else:
            model, optimizer = new()
        loader = DataLoader(Subset(blood, learn), batch_size=10, shuffle=True, num_workers=1)
        validation = DataLoader(Subset(blood, held_out), batch_size=15)
        for _ in range(2):
            train(model, optimizer, loader)
            score = accuracy(model, validation)
        print("fold %d accuracy %.3f" % (fold, score))


def nested(blood):
    """The best setting of the inner folds is trained on all of the outer training set, validation parts included."""
    learn, test = list(range(90)), list(range(90, 120))
    best = None
    for rate in (0.1, 0.01):
        scores = []
        for fold in range(3):
            model = nn.Linear(6, 2)
            optimizer = torch.optim.SGD(model.parameters(), lr=rate)
            train(model, optimizer, DataLoader(Subset(blood, [i for i in learn if i % 3 != fold]), batch_size=10, shuffle=True))
            scores.append(accuracy(model, DataLoader(Subset(blood, [i for i in learn if i % 3 == fold]), batch_size=15)))
        best = max(best or (0, 0), (sum(scores), rate))
    model = nn.Linear(6, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=best[1])
    train(model, optimizer, DataLoader(Subset(blood, learn), batch_size=10, shuffle=True))
    print("test accuracy %.3f" % accuracy(model, DataLoader(Subset(blood, test), batch_size=15)))


if __name__ == "__main__":
    torch.manual_seed(3)
    way, blood = sys.argv[1], Blood(120)
    if way in ("whole", "part"):
        evaluated(blood, way == "part")
    elif way == "nested":
        nested(blood)
    else:
        folds(blood, way == "restarted")
