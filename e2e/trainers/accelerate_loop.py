"""accelerate: the loop of its examples, with prepare, accumulate and gather_for_metrics."""
# library: accelerate
#
# case: loop
#   does: `prepare` of all, `gather_for_metrics`, an evaluation after each epoch
#   loader: prepare train
#   loader: prepare eval
#   check: order-repeats@train clean
#
# case: torchrun:2 loop
#   does: the same on two ranks; the samples that pad the evaluation are dropped by `gather_for_metrics`
#   loader: prepare train
#   loader: prepare eval
#   check: order-repeats@train clean
#   check: shard-duplicate-ranks@train clean
#
# case: torchrun:2 accumulate
#   does: `with accelerator.accumulate(model)`, four micro-batches a step
#   loader: prepare train
#   loader: prepare eval
#
# case: resume
#   does: `save_state` in mid-epoch, `load_state` and `skip_first_batches`
#   loader: prepare train
#   loader: skip train
#   loader: prepare eval
import sys
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, Dataset

HOW = sys.argv[1]


class Turbines(Dataset):
    def __init__(self, n, seed):
        self.wind = torch.randn(n, 12, generator=torch.Generator().manual_seed(seed))

    def __len__(self):
        return len(self.wind)

    def __getitem__(self, i):
        return self.wind[i], (self.wind[i].sum() > 0).long()


def get_dataloaders():
    train_dataloader = DataLoader(Turbines(120, 1), shuffle=True, batch_size=8, drop_last=True, num_workers=2)
    eval_dataloader = DataLoader(Turbines(44, 2), shuffle=False, batch_size=8, num_workers=2)
    return train_dataloader, eval_dataloader


def evaluate(accelerator, model, loader):
    model.eval()
    right = seen = 0
    for inputs, targets in loader:
        with torch.no_grad():
            outputs = model(inputs)
        predictions, references = accelerator.gather_for_metrics((outputs.argmax(dim=-1), targets))
        right += (predictions == references).sum().item()
        seen += len(references)
    assert seen == 44, seen
    accelerator.print("accuracy %.3f of %d" % (right / seen, seen))


def main():
    set_seed(3)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4 if HOW == "accumulate" else 1)
    train_dataloader, eval_dataloader = get_dataloaders()
    model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    model, optimizer, train_dataloader, eval_dataloader, scheduler = accelerator.prepare(model, optimizer, train_dataloader, eval_dataloader, scheduler)  # place: prepare
    folder, epoch, stopped, resumed = tempfile.mkdtemp(), 0, False, False
    while epoch < 2:
        model.train()
        loader = train_dataloader
        if stopped:
            accelerator.load_state(folder)
            loader = accelerator.skip_first_batches(train_dataloader, 7)  # place: skip
            stopped, resumed = False, True
        for step, (inputs, targets) in enumerate(loader):
            with accelerator.accumulate(model):
                loss = nn.functional.cross_entropy(model(inputs), targets)
                accelerator.backward(loss)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
            if HOW == "resume" and epoch == 1 and step == 6 and not resumed:
                accelerator.save_state(folder)
                stopped = True
                break
        if stopped:
            continue
        evaluate(accelerator, model, eval_dataloader)
        epoch += 1
    accelerator.end_training()


if __name__ == "__main__":
    main()
