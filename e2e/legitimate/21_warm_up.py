"""A look at the first batches before the training: shapes for lazy layers, a search for the learning rate, Lightning's sanity check."""
# e2e shapes
#   run: often
#   check: order-repeats clean
# e2e range
# e2e sanity
#   needs: pytorch_lightning
# e2e overfit
#   needs: pytorch_lightning
# e2e fast
#   needs: pytorch_lightning
import logging
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pulses(Dataset):
    def __init__(self, n, first=0):
        self.n, self.first = n, first

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        x = torch.sin(torch.arange(6) * (self.first + i + 1) / 10.0)
        return x, x.sum()


def step(model, optimizer, pulse, energy):
    optimizer.zero_grad()
    loss = (model(pulse).squeeze(1) - energy).pow(2).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


def by_hand(way):
    loader = DataLoader(Pulses(96), batch_size=8, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(1))
    if way == "shapes":
        pulse, _ = next(iter(loader))
        model = nn.Linear(pulse.shape[1], 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    else:  # a range test: the rate grows until the loss does; then all is put back, the order too
        model = nn.Linear(6, 1)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
        for n, (pulse, energy) in enumerate(loader):
            if n == 7:
                break
            optimizer.param_groups[0]["lr"] = 1e-4 * 2 ** n
            step(model, optimizer, pulse, energy)
        model.load_state_dict(before)
        optimizer.param_groups[0]["lr"] = 0.01
        loader.generator.manual_seed(1)
    for epoch in range(2):
        print("epoch", epoch, "loss %.5f" % sum(step(model, optimizer, *batch) for batch in loader))


def with_lightning(way):
    import pytorch_lightning as pl

    class Regression(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(6, 1)

        def training_step(self, batch, _):
            return (self.net(batch[0]).squeeze(1) - batch[1]).pow(2).mean()

        def validation_step(self, batch, _):
            self.training_step(batch, _)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    warnings.simplefilter("ignore")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    options = {"sanity": dict(num_sanity_val_steps=2), "overfit": dict(overfit_batches=4), "fast": dict(fast_dev_run=3)}[way]
    with tempfile.TemporaryDirectory() as folder:
        trainer = pl.Trainer(max_epochs=3, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                             enable_model_summary=False, default_root_dir=folder, **options)
        model = Regression()
        trainer.fit(model, DataLoader(Pulses(96), batch_size=8, shuffle=True, num_workers=2),
                    DataLoader(Pulses(24, 500), batch_size=8, num_workers=2))
    print("weights %.4f" % sum(p.sum().item() for p in model.parameters()))


if __name__ == "__main__":
    torch.manual_seed(1)
    by_hand(sys.argv[1]) if sys.argv[1] in ("shapes", "range") else with_lightning(sys.argv[1])
