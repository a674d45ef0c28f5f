"""Samples that come again on purpose: MixUp partners, rehearsal of an old task, hard examples, pseudo-labels, active learning, replay."""
# e2e partners
# e2e rehearsal
# e2e mining
# e2e pseudo
# e2e active
#   check: split-leak clean
# e2e replay
import collections
import random
import sys

import torch
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset

torch.manual_seed(5)
random.seed(5)
net = nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)


class Soils(Dataset):
    def __init__(self, n, task=0, partners=False):
        self.x = torch.rand(n, 4, generator=torch.Generator().manual_seed(task)) + task
        self.partners = partners

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x, y = self.x[i], (self.x[i] * 7).long().sum() % 3
        if self.partners:
            other = self.x[int(torch.randint(0, len(self), ()))]  # a second sample, of no batch's index
            x = 0.8 * x + 0.2 * other
        return x, y


def train(data, labels=None, size=8, **options):
    total = 0.0
    for batch in DataLoader(data, batch_size=size, num_workers=1, **(options or dict(shuffle=True))):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(batch[0]), batch[1] if labels is None else labels(batch[0]))
        loss.backward()
        optimizer.step()
        total += loss.item()
    print("loss %.4f" % total)


@torch.no_grad()
def scores(data):
    return torch.cat([nn.functional.cross_entropy(net(x), y, reduction="none") for x, y in DataLoader(data, batch_size=20)])


def partners():
    for _ in range(2):
        train(Soils(64, partners=True))


def rehearsal():
    first, second = Soils(64), Soils(64, task=1)
    for _ in range(2):
        train(first)
    memory = Subset(first, random.sample(range(64), 16))
    for _ in range(2):
        train(ConcatDataset([second, memory]))


def mining():
    soils = Soils(96)
    train(soils)
    for _ in range(2):
        hardest = scores(soils).argsort(descending=True)[:32].tolist()  # of the training set, which is looked at whole
        train(Subset(soils, hardest))
        train(soils)


def pseudo():
    """The unlabelled samples are predicted first, and those that the model is sure of are trained on."""
    labelled, unlabelled, held_out = Soils(64), Soils(60, task=2), Soils(30, task=3)
    for _ in range(3):
        train(labelled)
        with torch.no_grad():
            sure = torch.cat([net(x).softmax(1).max(1).values for x, _ in DataLoader(unlabelled, batch_size=20)])
        train(Subset(unlabelled, sure.argsort(descending=True)[:24].tolist()), labels=lambda x: net(x).argmax(1).detach())
        print("held out %.4f" % scores(held_out).mean())


def active():
    """Each round the pool is scored, and what it is least sure of goes over to the training set."""
    soils = Soils(120)
    pool, chosen = list(range(24, 120)), list(range(24))
    for _ in range(3):
        for _ in range(2):
            train(Subset(soils, chosen))
        hardest = set(scores(Subset(soils, pool)).argsort(descending=True)[:16].tolist())
        chosen += [i for n, i in enumerate(pool) if n in hardest]
        pool = [i for n, i in enumerate(pool) if n not in hardest]


class Buffer(IterableDataset):
    """What was played, drawn with replacement."""

    def __init__(self):
        self.memory = collections.deque(maxlen=200)

    def __iter__(self):
        for _ in range(96):
            yield random.choice(self.memory)


def replay():
    buffer, soils = Buffer(), Soils(90)
    for played in range(3):
        buffer.memory.extend(soils[i] for i in range(played * 30, played * 30 + 30))
        for x, y in DataLoader(buffer, batch_size=12):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
            optimizer.step()
        print("held out %.4f" % scores(Soils(20, task=4)).mean())


if __name__ == "__main__":
    globals()[sys.argv[1]]()
