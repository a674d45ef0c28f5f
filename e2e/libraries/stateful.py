"""torchdata's StatefulDataLoader: distributed samplers and a resume in the midst of an epoch."""
# library: torchdata
#
# case: torchrun:2 set_epoch
#   does: `StatefulDataLoader` with `StatefulDistributedSampler` and `set_epoch`
#   check: shard-duplicate-ranks clean
#   check: sampler-no-set-epoch clean
#
# case: torchrun:2 forgotten
#   does: `set_epoch` forgotten
#   expect: sampler-no-set-epoch proven
#
# case: torchrun:2 resumed
#   does: stopped in the midst of an epoch, resumed by `load_state_dict` in a new loader
#
# case: resumed shuffle
#   does: one process, `shuffle=True`, resumed by `load_state_dict`
import itertools
import sys

import torch
from torch.utils.data import Dataset
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import StatefulDistributedSampler

from training import WIDTH, fit, join, leave

HOW = sys.argv[1]


class Dunes(Dataset):
    def __init__(self):
        self.heights = torch.randn(96, WIDTH, generator=torch.Generator().manual_seed(12))

    def __len__(self):
        return len(self.heights)

    def __getitem__(self, i):
        return self.heights[i]


def make(ranks):
    dunes = Dunes()
    sampler = StatefulDistributedSampler(dunes) if ranks > 1 else None
    return StatefulDataLoader(dunes, batch_size=8, shuffle=sampler is None, sampler=sampler, num_workers=2), sampler


def interrupted(loader, batches):
    """Some batches of an epoch, as before a preemption; the state to go on from."""
    fit(itertools.islice(loader, batches), lambda batch: batch, epochs=1)
    return loader.state_dict()


if __name__ == "__main__":
    _, ranks = join()
    torch.manual_seed(4)
    loader, sampler = make(ranks)
    if HOW == "resumed":
        state = interrupted(loader, 3)
        loader, sampler = make(ranks)
        loader.load_state_dict(state)
    fit(loader, lambda batch: batch, epochs=3,
        before=sampler.set_epoch if sampler is not None and HOW != "forgotten" else lambda epoch: None)
    leave()
