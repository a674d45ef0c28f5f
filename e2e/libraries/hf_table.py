"""Hugging Face datasets, the map-style kind, with torch's sampler for ranks."""
# library: datasets
#
# case: torchrun:2 set_epoch
#   does: `Dataset` with `DistributedSampler` and `set_epoch`
#   check: shard-duplicate-ranks clean
#   check: sampler-no-set-epoch clean
#
# case: torchrun:2 forgotten
#   does: `Dataset` with `DistributedSampler`, `set_epoch` forgotten
#   expect: sampler-no-set-epoch proven
#   check: shard-duplicate-ranks clean
#
# case: torchrun:2 shuffled
#   does: `Dataset` with `shuffle=True` on 2 ranks and no distributed sampler
#   expect: shard-duplicate-ranks proven
#
# case: split
#   does: one process, `train_test_split`, trained and validated
#   check: order-repeats clean
import sys

import numpy as np
import torch
from datasets import Dataset
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from training import WIDTH, fit, join, leave

HOW = sys.argv[1]


def soils():
    rng = np.random.default_rng(8)
    return Dataset.from_dict({"place": ["s%03d" % i for i in range(96)],
                              "minerals": rng.normal(size=(96, WIDTH)).astype(np.float32).tolist()}).with_format("torch")


def minerals(batch):
    return batch["minerals"].float()


def validate(loader):
    with torch.no_grad():
        print("validation %.4f" % sum(minerals(batch).sum().item() for batch in loader), flush=True)


if __name__ == "__main__":
    join()
    torch.manual_seed(1)
    if HOW == "split":
        parts = soils().train_test_split(test_size=0.25, seed=1)
        train = DataLoader(parts["train"], batch_size=8, shuffle=True, num_workers=2)
        test = DataLoader(parts["test"], batch_size=8, num_workers=2)
        fit(train, minerals, before=lambda epoch: validate(test))
        validate(test)
    elif HOW == "shuffled":
        fit(DataLoader(soils(), batch_size=8, shuffle=True, num_workers=2), minerals)
    else:
        data = soils()
        sampler = DistributedSampler(data)
        fit(DataLoader(data, batch_size=8, sampler=sampler, num_workers=2), minerals,
            before=sampler.set_epoch if HOW == "set_epoch" else lambda epoch: None)
    leave()
