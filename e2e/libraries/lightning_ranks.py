"""Lightning: the sampler that it puts in, and what happens when it must not."""
# library: pytorch_lightning
#
# case: torchrun:2 replaced
#   does: `Trainer(strategy="ddp")` puts a `DistributedSampler` in and calls `set_epoch`
#   check: shard-duplicate-ranks clean
#   check: sampler-no-set-epoch clean
#
# case: torchrun:2 replaced persistent
#   does: the same with persistent workers
#   check: shard-duplicate-ranks clean
#   check: sampler-no-set-epoch clean
#
# case: torchrun:2 kept
#   does: `use_distributed_sampler=False` and `shuffle=True`
#   expect: shard-duplicate-ranks proven
#
# case: torchrun:2 own
#   does: `use_distributed_sampler=False` with a `DistributedSampler` of the program's; Lightning calls its `set_epoch`
#   check: shard-duplicate-ranks clean
#   check: sampler-no-set-epoch clean
#
# case: torchrun:2 weighted
#   does: `WeightedRandomSampler`, wrapped by Lightning's `DistributedSamplerWrapper`
#
# case: torchrun:2 lengths
#   does: a sampler of the program's, wrapped by `DistributedSamplerWrapper`
import logging
import sys
import warnings

import torch
from torch.utils.data import DataLoader, Dataset, Sampler, WeightedRandomSampler
from torch.utils.data.distributed import DistributedSampler

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
import pytorch_lightning as pl

from training import WIDTH

HOW = sys.argv[1]


class Reefs(Dataset):
    def __init__(self, seed, n):
        self.light = torch.randn(n, WIDTH, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.light)

    def __getitem__(self, i):
        return self.light[i], self.light[i].sum()


class ByBrightness(Sampler):
    """Groups of alike brightness, in a new order each epoch."""

    def __init__(self, data):
        self.order = data.light.mean(1).argsort()

    def __len__(self):
        return len(self.order)

    def __iter__(self):
        groups = self.order.view(-1, 8)
        return iter(groups[torch.randperm(len(groups))].flatten().tolist())


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 1)

    def training_step(self, batch, number):
        return (self.layer(batch[0]).squeeze(1) - batch[1]).pow(2).mean()

    def validation_step(self, batch, number):
        self.log("distance", (self.layer(batch[0]).squeeze(1) - batch[1]).abs().mean(), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


class Data(pl.LightningDataModule):
    def train_dataloader(self):
        reefs = Reefs(4, 96)
        order = {"shuffle": True}
        if HOW == "own":
            order = {"sampler": DistributedSampler(reefs)}
        elif HOW == "weighted":
            order = {"sampler": WeightedRandomSampler([1.0 + i % 3 for i in range(96)], 96)}
        elif HOW == "lengths":
            order = {"sampler": ByBrightness(reefs)}
        return DataLoader(reefs, batch_size=8, num_workers=2, persistent_workers="persistent" in sys.argv, **order)

    def val_dataloader(self):
        return DataLoader(Reefs(5, 32), batch_size=8, num_workers=2)


if __name__ == "__main__":
    pl.seed_everything(22, workers=True)
    trainer = pl.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                         accelerator="cpu", devices=2, strategy="ddp", use_distributed_sampler=HOW not in ("kept", "own"))
    trainer.fit(Model(), datamodule=Data())
