"""The ways in which a dataset can hold a generator without an attribute of its own for it."""
# e2e transform
#   expect: rng-duplicate-workers proven dataset.transform.coin
#   expect: rng-duplicate-epochs proven dataset.transform.coin
#   fix: printed
# e2e partial
#   expect: rng-duplicate-workers proven dataset.transform coin
#   expect: rng-duplicate-epochs proven dataset.transform coin
#   fix: printed
# e2e slots
#   expect: rng-duplicate-workers proven dataset.transform.coin
#   expect: rng-duplicate-epochs proven dataset.transform.coin
#   fix: printed
# e2e closure
#   run: often
#   expect: rng-duplicate-workers proven dataset.transform coin
#   expect: rng-duplicate-epochs proven dataset.transform coin
#   fix: printed
# e2e default
#   expect: rng-duplicate-workers proven dataset.transform coin
#   expect: rng-duplicate-epochs proven dataset.transform coin
#   fix: printed
# e2e classattr
#   expect: rng-duplicate-workers proven coin
#   expect: rng-duplicate-epochs proven coin
#   fix: printed
# e2e boundmethod
#   expect: rng-duplicate-workers proven dataset.transform coin
#   expect: rng-duplicate-epochs proven dataset.transform coin
#   fix: printed
# e2e dict
#   expect: rng-duplicate-workers proven dataset.transform coin
#   expect: rng-duplicate-epochs proven dataset.transform coin
#   fix: printed
# e2e five
#   expect: rng-duplicate-workers proven dataset dataset datasets transform steps steps coin
#   expect: rng-duplicate-epochs proven dataset dataset datasets transform steps steps coin
#   fix: printed
import functools
import sys

import numpy as np
import torch
from torch.utils.data import ConcatDataset, DataLoader, Dataset, Subset

from engine import WIDTH, fit


class Flip:
    def __init__(self, coin):
        self.coin = coin

    def __call__(self, x):
        return x * self.coin.choice([-1.0, 1.0], WIDTH) + self.coin.random(WIDTH)



class Bare:
    __slots__ = ("coin", "other")

    def __init__(self, coin):
        self.coin = coin

    __call__ = Flip.__call__


class Shared:
    coin = np.random.default_rng(8)

    __call__ = Flip.__call__


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x


class Table:
    def __init__(self, coin):
        self.options = {"flip": {"p": 0.5, "coin": coin}}

    def __call__(self, x):
        return x + self.options["flip"]["coin"].random(WIDTH)


def flip(x, coin):
    return x + coin.random(WIDTH)


def closed_over(coin):
    def transform(x):
        return x + coin.random(WIDTH)
    return transform


def defaulted(x, coin=np.random.default_rng(8)):
    return x + coin.random(WIDTH)


def double(x):
    return 2 * x


class Coins(Dataset):
    def __init__(self, transform, n=64):
        self.transform, self.n = transform, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.from_numpy(self.transform(np.full(WIDTH, i / 64)))


def build(way):
    coin = np.random.default_rng(8)
    if way == "five":
        compose = Compose(double, Compose(double, Compose(Bare(coin), double)))
        return Subset(ConcatDataset([Subset(Coins(compose, 40), range(8, 40)), Coins(double, 32)]), range(0, 64))
    return Coins({"transform": Flip, "partial": lambda c: functools.partial(flip, coin=c), "slots": Bare, "closure": closed_over,
                  "default": lambda c: defaulted, "classattr": lambda c: Shared(), "boundmethod": lambda c: Flip(c).__call__,
                  "dict": Table}[way](coin))


# FIX
if __name__ == "__main__":
    torch.manual_seed(5)
    fit(DataLoader(build(sys.argv[1]), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context="fork",
                   worker_init_fn=None))
