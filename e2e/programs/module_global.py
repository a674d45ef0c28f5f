"""A generator in a module: of the script itself, or in another module of the dataset's package."""
# e2e script
#   expect: rng-duplicate-workers proven DICE
#   expect: rng-duplicate-epochs proven DICE
#   fix: printed
# e2e package
#   expect: rng-duplicate-workers proven herbarium.light.LAMP
#   expect: rng-duplicate-epochs proven herbarium.light.LAMP
#   fix: printed
import random
import sys

import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit
from herbarium.leaves import Leaves

DICE = random.Random(99)


class Throws(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.tensor([DICE.random() for _ in range(WIDTH)])


# FIX
if __name__ == "__main__":
    torch.manual_seed(4)
    data = Throws() if sys.argv[1] == "script" else Leaves()
    fit(DataLoader(data, batch_size=8, num_workers=2, worker_init_fn=None))
