"""Two loaders over one dataset at the same time: a GAN, a teacher with its student, labelled and unlabelled batches side by side."""
# e2e gan
# e2e teacher
# e2e semi
import itertools
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Digits(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, i):
        return torch.sin(torch.arange(8) * (i + 1) / 8.0), i % 4


def gan(digits):
    make, judge = nn.Linear(3, 8), nn.Linear(8, 1)
    makes, judges = torch.optim.Adam(make.parameters(), lr=0.01), torch.optim.Adam(judge.parameters(), lr=0.01)
    for_judge = DataLoader(digits, batch_size=8, shuffle=True, num_workers=1)
    for_make = DataLoader(digits, batch_size=8, shuffle=True, num_workers=1)
    for epoch in range(2):
        for (real, _), (other, _) in zip(for_judge, for_make):
            judges.zero_grad()
            (judge(make(torch.randn(8, 3)).detach()) - judge(real)).mean().backward()
            judges.step()
            makes.zero_grad()
            made = make(torch.randn(8, 3))
            ((made.mean(0) - other.mean(0)).pow(2).sum() - judge(made).mean()).backward()
            makes.step()
        print("epoch", epoch, "score %.4f" % judge(real).mean().item())


def teacher(digits):
    """The teacher's answers come from a loader of its own, without gradients."""
    old, student = nn.Linear(8, 4), nn.Linear(8, 4)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    plain = DataLoader(digits, batch_size=16, num_workers=1)
    for epoch in range(2):
        with torch.no_grad():
            answers = torch.cat([old(x).softmax(1) for x, _ in plain])
        targets = DataLoader(list(zip((x for x, _ in (digits[i] for i in range(80))), answers)), batch_size=16, shuffle=True)
        for x, answer in targets:
            optimizer.zero_grad()
            (student(x).softmax(1) - answer).pow(2).sum().backward()
            optimizer.step()
        for x, y in DataLoader(digits, batch_size=16, shuffle=True, num_workers=1):
            with torch.no_grad():
                soft = old(x).softmax(1)
            optimizer.zero_grad()
            (nn.functional.cross_entropy(student(x), y) + (student(x).softmax(1) - soft).pow(2).sum()).backward()
            optimizer.step()
        print("epoch", epoch, "weight %.4f" % student.weight.sum().item())


def semi(digits):
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    labelled = DataLoader(Subset(digits, range(24)), batch_size=8, shuffle=True, num_workers=1)
    everything = DataLoader(digits, batch_size=16, shuffle=True, num_workers=1)
    for epoch in range(2):
        for (x, y), (u, _) in zip(itertools.cycle(labelled), everything):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y) + (model(u) - model(u + 0.01)).pow(2).mean()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.4f" % loss.item())


if __name__ == "__main__":
    torch.manual_seed(2)
    globals()[sys.argv[1]](Digits())
