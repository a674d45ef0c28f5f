"""A tagger of bird songs whose training makes the task harder from epoch to epoch, in all the places where people keep such a
number: the workers live on with the first one."""
# e2e list
#   run: often
#   expect: stale-worker-state proven curve [0.0, 1.0]
# e2e entry
#   expect: stale-worker-state proven plan['hop']
# e2e array
#   expect: stale-worker-state proven weights [1.0, 1.0]
# e2e rows
#   expect: stale-worker-state proven dataset.order (list of 96 items)
# e2e module
#   expect: stale-worker-state proven __main__.HARDNESS
# e2e settings
#   expect: stale-worker-state proven __main__.SETTINGS.hop
# e2e class
#   expect: stale-worker-state proven __main__.Songs.hop
# e2e closure
#   expect: stale-worker-state proven <closure cut>
# e2e slots
#   expect: stale-worker-state proven dataset.mask.width
# e2e nested
#   expect: stale-worker-state proven dataset.cfg.augment.gain
# e2e keyword
#   expect: stale-worker-state proven collate_fn.keywords['scale']
# e2e object
#   expect: stale-worker-state proven dataset.view
# e2e later
#   expect: stale-worker-state proven dataset.phase do not have it
# e2e entry spawn
#   expect: stale-worker-state proven plan['hop']
import functools
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

WAY = sys.argv[1] if len(sys.argv) > 1 else ""
HARDNESS = 0
SETTINGS = SimpleNamespace(hop=1, name="songs")


class Mask:
    __slots__ = ("width",)

    def __init__(self):
        self.width = 0

    def __call__(self, x):
        x = x.clone()
        x[:self.width] = 0
        return x


@dataclass
class Augment:
    gain: float = 1.0
    seen: int = 0


@dataclass
class Config:
    augment: Augment = field(default_factory=Augment)
    name: str = "songs"


class Halves:
    def __call__(self, x):
        return x[::2].repeat(2)


class Same:
    def __call__(self, x):
        return x


class Songs(Dataset):
    hop = 1

    def __init__(self):
        self.waves = torch.randn(96, 12, generator=torch.Generator().manual_seed(9))
        self.curve, self.plan, self.weights = [0.0, 1.0], {"hop": 1, "note": "first"}, np.ones(2)
        self.order, self.mask, self.cfg, self.view = list(range(96)), Mask(), Config(), Same()

    def __len__(self):
        return len(self.waves)

    def __getitem__(self, i):
        x = self.waves[self.order[i]] * self.curve[1] + self.curve[0]
        x = x.roll(self.plan["hop"] + self.hop + SETTINGS.hop + HARDNESS)
        x = self.mask(x * float(self.weights[0]) * self.cfg.augment.gain)
        return self.view(x) + getattr(self, "phase", 0)


def stack(samples, scale=1.0):
    return torch.stack(samples) * scale


def cutting():
    cut = 12

    def collate(samples):
        return torch.stack(samples)[:, :cut]

    def shorten(n):
        nonlocal cut
        cut = n
    return collate, shorten


def change(songs, epoch, loader, shorten):
    global HARDNESS
    if WAY == "list":
        songs.curve[0] = epoch / 2
    elif WAY == "entry":
        songs.plan["hop"] = 1 + epoch
    elif WAY == "array":
        songs.weights[0] = 1 + epoch
    elif WAY == "rows":
        songs.order.sort(key=lambda i: (i * (epoch + 1)) % 97)
    elif WAY == "module":
        HARDNESS = epoch
    elif WAY == "settings":
        SETTINGS.hop = 1 + epoch
    elif WAY == "class":
        Songs.hop = 1 + epoch
    elif WAY == "closure":
        shorten(12 - epoch)
    elif WAY == "slots":
        songs.mask.width = epoch
    elif WAY == "nested":
        songs.cfg.augment.gain = 1.0 + epoch
    elif WAY == "keyword":
        loader.collate_fn.keywords["scale"] = 1.0 / (1 + epoch)
    elif WAY == "object" and epoch:
        songs.view = Halves()
    elif WAY == "later" and epoch:
        songs.phase = epoch


def main():
    torch.manual_seed(2)
    collate, shorten = cutting()
    if WAY == "keyword":
        collate = functools.partial(stack, scale=1.0)
    elif WAY != "closure":
        collate = None
    songs = Songs()
    loader = DataLoader(songs, batch_size=8, shuffle=True, num_workers=2, persistent_workers=True, collate_fn=collate,
                        multiprocessing_context=sys.argv[2] if len(sys.argv) > 2 else "fork")
    model = torch.nn.Linear(1, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        change(songs, epoch, loader, shorten)
        for x in loader:
            optimizer.zero_grad()
            model(x.mean(1, keepdim=True)).pow(2).mean().backward()
            optimizer.step()
        print("epoch", epoch)


if __name__ == "__main__":
    main()
