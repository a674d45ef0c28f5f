"""Lightning's seed_everything(workers=True) seeds the three global generators of each worker, rank and pass."""
# e2e
#   needs: pytorch_lightning
#   check: rng-duplicate-workers clean
import logging
import random
import warnings

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH

warnings.filterwarnings("ignore")
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
import pytorch_lightning as pl


class Birds(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.rand(WIDTH) + random.random() + torch.from_numpy(np.random.uniform(size=WIDTH)).float()


class Model(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, 1)

    def training_step(self, batch, number):
        loss = self.layer(batch).pow(2).mean()
        print("loss %.6f" % loss.item())
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)


if __name__ == "__main__":
    pl.seed_everything(22, workers=True)
    trainer = pl.Trainer(max_epochs=2, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                         enable_model_summary=False, accelerator="cpu", devices=1)
    trainer.fit(Model(), DataLoader(Birds(), batch_size=8, num_workers=2))
