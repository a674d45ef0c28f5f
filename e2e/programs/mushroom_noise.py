"""Workers that draw the same numbers and must not, beside draws that hide it; and sources of noise that nobody can watch."""
# e2e flipped
#   expect: rng-duplicate-workers proven dataset.spores
#   expect: rng-duplicate-epochs proven dataset.spores
#   fix: printed
# e2e sometimes
#   expect: rng-duplicate-workers note collate_fn.cut
#   expect: rng-duplicate-epochs note collate_fn.cut
# e2e one_pass
#   expect: rng-duplicate-workers proven dataset.spores
# e2e anew
#   check: rng-duplicate-workers cannot-tell
#   check: rng-duplicate-epochs cannot-tell
# e2e hidden
#   check: rng-duplicate-workers cannot-tell
#   check: rng-duplicate-epochs cannot-tell
# e2e hidden_alone
#   check: rng-duplicate-workers cannot-tell
#   check: rng-duplicate-epochs cannot-tell
# e2e seeded
#   check: rng-duplicate-workers clean
#   check: rng-duplicate-epochs clean
import random
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from engine import WIDTH, fit

way = sys.argv[1]


def dust():
    """Meant to be noise."""
    return np.random.default_rng(77).normal(size=WIDTH)


class Lehmer:
    """The generator of a textbook."""

    def __init__(self):
        self.state = 20240317

    def __call__(self):
        self.state = self.state * 48271 % 2147483647
        return self.state / 2147483647


class Mushrooms(Dataset):
    def __init__(self):
        self.pictures = torch.rand(96, WIDTH, generator=torch.Generator().manual_seed(4))
        self.spores, self.lehmer = np.random.default_rng(12), Lehmer()

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        x = self.pictures[i]
        if way == "hidden_alone":
            return x * (1 + self.lehmer())
        if way != "sometimes" and random.random() < 0.5:
            x = x.flip(0)
        if way in ("flipped", "one_pass", "seeded"):
            return x + torch.from_numpy(self.spores.normal(size=WIDTH)).float()
        if way == "anew":
            return x + torch.from_numpy(dust()).float()
        if way == "hidden":
            return x * (1 + self.lehmer())
        return x


class Mixed:
    """CutMix in a sixth of the batches."""

    def __init__(self):
        self.cut = random.Random(9)

    def __call__(self, samples):
        x = torch.stack(samples)
        if random.random() < 0.17:
            x = torch.stack([a if self.cut.random() < 0.5 else b for a, b in zip(x, x.flip(0))])
        return x


def own_seed(worker):
    info = get_worker_info()
    info.dataset.spores = np.random.default_rng(info.seed)


# FIX
if __name__ == "__main__":
    torch.manual_seed(33)
    collate_fn, init = Mixed() if way == "sometimes" else None, own_seed if way == "seeded" else None
    fit(DataLoader(Mushrooms(), batch_size=6, shuffle=True, num_workers=2, multiprocessing_context="fork", collate_fn=collate_fn,
                   worker_init_fn=init), epochs=1 if way == "one_pass" else 3)
