"""Evaluated on what was trained on, the less plain ways; nothing evaluated at all; and a stream that is shuffled once too rarely."""
# e2e horizons
#   check: split-leak cannot-tell
# e2e weights
#   expect: split-leak proven
# e2e doubled
#   expect: split-leak likely are copies of samples
# e2e two_files
#   expect: split-leak likely a dataset object each
# e2e drawn_anew
#   expect: split-leak proven
# e2e nothing
#   run: often
#   expect: samples-dropped likely nothing in each of its 3 passes
# e2e stream
#   expect: order-repeats likely through the stream
# e2e parts
#   expect: order-repeats proven
# e2e sweeps
#   expect: order-repeats likely
import random
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset, WeightedRandomSampler, get_worker_info

random.seed(6)
torch.manual_seed(6)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)


def step(x):
    optimizer.zero_grad()
    (model(x).squeeze(1) - x.sum(1)).pow(2).mean().backward()
    optimizer.step()


def train(loader):
    for batch in loader:
        step(batch[0])


@torch.no_grad()
def error(loader):
    return sum((model(x).squeeze(1) - x.sum(1)).pow(2).sum().item() for (x,) in loader)


def horizons():
    """Trained month by month; the months to be forecast begin too early."""
    months = TensorDataset(torch.rand(200, 4))
    for now in range(40, 160, 40):
        train(DataLoader(Subset(months, range(now - 40, now)), batch_size=8))
        print(now, "error %.4f" % error(DataLoader(Subset(months, range(now - 10, now + 30)), batch_size=10)))


def weights():
    """Drawn by weight from the training part, and the validation part begins in it."""
    rows = TensorDataset(torch.rand(200, 4))
    part = Subset(rows, range(160))
    loader = DataLoader(part, batch_size=8, sampler=WeightedRandomSampler(torch.ones(160), 160))
    validation = DataLoader(Subset(rows, range(140, 200)), batch_size=20)
    for _ in range(2):
        train(loader)
        print("error %.4f" % error(validation))


def doubled():
    """The few rows of fraud come three times in the table, which is then divided."""
    honest, fraud = torch.rand(90, 4), torch.rand(30, 4)
    table = TensorDataset(torch.cat([honest, fraud, fraud, fraud]))
    order = torch.randperm(len(table)).tolist()
    loader, validation = DataLoader(Subset(table, order[:140]), batch_size=10, shuffle=True), DataLoader(Subset(table, order[140:]), batch_size=20)
    for _ in range(2):
        train(loader)
        print("error %.4f" % error(validation))


def two_files():
    """A test file that was cut out of the table before the table was cut."""
    table = torch.rand(150, 4)
    loader = DataLoader(TensorDataset(table[:110].clone()), batch_size=10, shuffle=True)
    validation = DataLoader(TensorDataset(table[90:].clone()), batch_size=20)
    for _ in range(2):
        train(loader)
        print("error %.4f" % error(validation))


def drawn_anew():
    """Each validation draws from all that was not the first half; training has three quarters."""
    rows = TensorDataset(torch.rand(160, 4))
    loader = DataLoader(Subset(rows, range(120)), batch_size=10, shuffle=True)
    for epoch in range(3):
        train(loader)
        some = random.sample(range(80, 120), 10) + random.sample(range(120, 160), 20)
        print("error %.4f" % error(DataLoader(Subset(rows, some), batch_size=15)))


def nothing():
    """A validation part smaller than a batch."""
    rows = TensorDataset(torch.rand(70, 4))
    loader = DataLoader(Subset(rows, range(58)), batch_size=16, shuffle=True)
    validation = DataLoader(Subset(rows, range(58, 70)), batch_size=16, drop_last=True)
    for _ in range(3):
        train(loader)
        print("error %.4f" % error(validation))


class Lines(IterableDataset):
    def __init__(self):
        self.lines = torch.rand(120, 4)

    def __iter__(self):
        worker = get_worker_info()
        mine = list(range(worker.id, 120, worker.num_workers))
        random.Random(1234).shuffle(mine)
        for i in mine:
            yield (self.lines[i],)


def stream():
    loader = DataLoader(Lines(), batch_size=10, num_workers=2)
    for _ in range(3):
        train(loader)


def parts():
    """The part that is trained on is put together anew for each epoch, with its loader, and one seed."""
    rows = TensorDataset(torch.rand(120, 4))
    for _ in range(3):
        train(DataLoader(Subset(rows, range(96)), batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(8)))


def sweeps():
    """Users and items of a factorisation in turns, each sweep of a pair in one order."""
    order = torch.Generator()
    loader = DataLoader(TensorDataset(torch.rand(96, 4)), batch_size=8, shuffle=True, generator=order)
    users, items = nn.Parameter(torch.rand(4)), nn.Parameter(torch.rand(4))
    optimizer = torch.optim.SGD([users, items], lr=1e-2)
    for epoch in range(3):
        for which in (users, items):
            order.manual_seed(100 + epoch)
            for (x,) in loader:
                optimizer.zero_grad()
                (x * users * items).sum(1).pow(2).mean().backward()
                (items if which is users else users).grad = None
                optimizer.step()
        print("epoch", epoch, "%.5f" % float(users.sum()))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
