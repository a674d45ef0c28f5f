"""Lightning: fit with its sanity check, test, predict, overfit_batches, two optimizers."""
# library: pytorch_lightning
#
# case: fit
#   does: `fit` with `val_dataloaders`: sanity check, training, a validation after each epoch
#   loader: train train
#   loader: val eval
#
# case: fit test
#   does: the same, then `test` and `predict`
#   loader: train train
#   loader: val eval
#   loader: test eval
#   loader: predict eval
#
# case: module
#   does: loaders made by a DataModule, each in its method; Lightning calls them
#   loader: module-train train
#   loader: module-val eval
#
# case: overfit
#   does: `overfit_batches=2`: training and validation on the first two batches, on purpose; the shuffling is taken out by a loader of Lightning's
#   loader: fit train
#   loader: val eval
#
# case: accumulate
#   does: `accumulate_grad_batches=3`, `val_check_interval=0.5`, `limit_val_batches=2`
#   loader: train train
#   loader: val eval
#
# case: resume
#   does: `fit` for one epoch, then a new Trainer and `fit(ckpt_path=...)`
#   loader: train train
#   loader: val eval
#
# case: gan
#   does: manual optimization: a generator and a discriminator with an optimizer each
#   loader: train train
#
# case: several
#   does: a dictionary of two loaders for training, of unequal length (`CombinedLoader`, the short one is cycled), two for validation
#   loader: train train
#   loader: other train
#   loader: val eval
#   loader: val2 eval
#
# case: torchrun:2 fit
#   does: `strategy="ddp"` under torchrun; the samplers are replaced
#   loader: fit train
#   loader: fit eval
#   check: shard-duplicate-ranks@train clean
#   check: sampler-no-set-epoch@train clean
import logging
import os
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore")
import pytorch_lightning as pl
from pytorch_lightning.utilities import CombinedLoader

logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
HOW = sys.argv[1]


class Reefs(Dataset):
    def __init__(self, n, seed):
        self.light = torch.randn(n, 10, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.light)

    def __getitem__(self, i):
        return self.light[i] + 0.1 * torch.randn(10), self.light[i].sum()


class LitReef(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))

    def loss(self, batch):
        x, y = batch
        return nn.functional.mse_loss(self.net(x).squeeze(1), y)

    def training_step(self, batch, batch_idx):
        parts = batch.values() if isinstance(batch, dict) else [batch]
        loss = sum(self.loss(part) for part in parts)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        self.log("val_loss", self.loss(batch), sync_dist=True)

    def test_step(self, batch, batch_idx):
        self.log("test_loss", self.loss(batch))

    def predict_step(self, batch, batch_idx):
        return self.net(batch[0])

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


class LitGAN(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Linear(4, 10)
        self.discriminator = nn.Linear(10, 1)

    def training_step(self, batch, batch_idx):
        real, _ = batch
        optimizer_g, optimizer_d = self.optimizers()
        bce, z = nn.functional.binary_cross_entropy_with_logits, torch.randn(len(real), 4)
        self.toggle_optimizer(optimizer_g)
        g_loss = bce(self.discriminator(self.generator(z)), torch.ones(len(real), 1))
        self.manual_backward(g_loss)
        optimizer_g.step()
        optimizer_g.zero_grad()
        self.untoggle_optimizer(optimizer_g)
        self.toggle_optimizer(optimizer_d)
        d_loss = bce(self.discriminator(real), torch.ones(len(real), 1)) + bce(self.discriminator(self.generator(z).detach()), torch.zeros(len(real), 1))
        self.manual_backward(d_loss)
        optimizer_d.step()
        optimizer_d.zero_grad()
        self.untoggle_optimizer(optimizer_d)

    def configure_optimizers(self):
        return torch.optim.Adam(self.generator.parameters()), torch.optim.Adam(self.discriminator.parameters())


class ReefData(pl.LightningDataModule):
    def setup(self, stage):
        self.train, self.val = Reefs(96, 1), Reefs(32, 2)

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=8, shuffle=True, num_workers=2)  # place: module-train

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=8, num_workers=2)  # place: module-val


def trainer(**more):
    arguments = dict(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    return pl.Trainer(**{**arguments, **more})


def main():
    pl.seed_everything(7, workers=True)
    more = {"overfit": {"overfit_batches": 2}, "accumulate": {"accumulate_grad_batches": 3, "val_check_interval": 0.5, "limit_val_batches": 2}}.get(HOW, {})
    if "WORLD_SIZE" in os.environ:
        more = {"strategy": "ddp", "devices": 2}
    if HOW == "module":
        trainer().fit(LitReef(), datamodule=ReefData())
        return
    train = DataLoader(Reefs(96, 1), batch_size=8, shuffle=True, num_workers=2)  # place: train
    val = DataLoader(Reefs(32, 2), batch_size=8, num_workers=2)  # place: val
    if HOW == "gan":
        trainer(max_epochs=3).fit(LitGAN(), train)
        return
    if HOW == "several":
        other = DataLoader(Reefs(40, 3), batch_size=8, shuffle=True, num_workers=2)  # place: other
        val2 = DataLoader(Reefs(24, 4), batch_size=8, num_workers=2)  # place: val2
        trainer().fit(LitReef(), CombinedLoader({"a": train, "b": other}, "max_size_cycle"), [val, val2])
        return
    if HOW == "resume":
        first = trainer(max_epochs=1)
        first.fit(LitReef(), train, val)
        path = os.path.join(tempfile.mkdtemp(), "last.ckpt")
        first.save_checkpoint(path)
        trainer().fit(LitReef(), train, val, ckpt_path=path)
        return
    model, t = LitReef(), trainer(**more)
    t.fit(model, train, val)  # place: fit
    if "test" in sys.argv:
        held_out = DataLoader(Reefs(24, 5), batch_size=8, num_workers=2)  # place: test
        t.test(model, held_out, verbose=False)
        t.predict(model, held_out)  # place: predict


if __name__ == "__main__":
    main()
