"""accelerate: how `prepare` gives each rank its part of a loader."""
# library: accelerate
#
# case: torchrun:2 prepared
#   does: `prepare(loader)`: each rank takes its batches of one order
#   check: shard-duplicate-ranks clean
#   check: order-repeats clean
#
# case: torchrun:2 seedable
#   does: the same with `use_seedable_sampler=True`
#   check: order-repeats clean
#
# case: torchrun:2 split_batches
#   does: `split_batches=True`: each rank takes its slice of each batch
#
# case: torchrun:2 dispatched
#   does: `dispatch_batches=True`: rank 0 reads for all
#
# case: torchrun:2 unprepared
#   does: the model is prepared, the loader forgotten
#   expect: shard-duplicate-ranks proven
#
# case: torchrun:2 stream
#   does: an `IterableDataset` that splits itself by worker, `dispatch_batches=False` (`IterableDatasetShard`)
#   check: shard-duplicate-ranks clean
#   check: shard-duplicate-workers clean
#
# case: torchrun:2 stream unsplit
#   does: an `IterableDataset` that no worker splits, `dispatch_batches=False`
#   expect: shard-duplicate-workers proven
#
# case: torchrun:2 stateful
#   does: `use_stateful_dataloader=True`
import sys

import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from training import WIDTH

HOW = sys.argv[1]
CONFIGURATION = {
    "seedable": {"use_seedable_sampler": True},
    "split_batches": {"split_batches": True},
    "dispatched": {"dispatch_batches": True},
    "stream": {"dispatch_batches": False},
    "stateful": {"use_stateful_dataloader": True},
}


def readings():
    return torch.randn(96, WIDTH, generator=torch.Generator().manual_seed(9))


class Turbines(Dataset):
    def __init__(self):
        self.readings = readings()

    def __len__(self):
        return len(self.readings)

    def __getitem__(self, i):
        return self.readings[i]


class Feed(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if "unsplit" in sys.argv else (info.id, info.num_workers)
        yield from readings()[first::step]


if __name__ == "__main__":
    torch.manual_seed(2)
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**CONFIGURATION.get(HOW, {})))
    if HOW == "stream":
        loader = DataLoader(Feed(), batch_size=8, num_workers=2)
    else:
        loader = DataLoader(Turbines(), batch_size=8, shuffle=True, num_workers=2)
    model = torch.nn.Linear(WIDTH, 1)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
    if HOW != "unprepared":
        loader = accelerator.prepare(loader)
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = (model(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
        accelerator.print("epoch", epoch, "loss %.4f" % loss.item())
    accelerator.end_training()
