"""One worker, or none: nothing to collide within a pass, but one forked copy per pass begins at the same state."""
# e2e 1
#   expect: rng-duplicate-epochs likely dataset.spin
#   fix: printed
# e2e 0
#   run: often
import sys

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH, fit


class Wheel(Dataset):
    def __init__(self):
        self.spin = np.random.default_rng(23)

    def __len__(self):
        return 48

    def __getitem__(self, i):
        return torch.from_numpy(self.spin.uniform(size=WIDTH))


# FIX
if __name__ == "__main__":
    torch.manual_seed(9)
    fit(DataLoader(Wheel(), batch_size=8, num_workers=int(sys.argv[1]), worker_init_fn=None))
