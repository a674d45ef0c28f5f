"""Two loaders in one step, as implementations of FixMatch write it: few labelled samples, cycled beside many without a label."""
# library: torch
#
# case: random
#   does: `RandomSampler` for both, `iter()` made anew at `StopIteration`, `next()` of both in each of `eval_step` steps
#   loader: labelled train
#   loader: unlabelled train
#   loader: test eval
#   check: rng-duplicate-workers@train clean
#
# case: zip
#   does: `zip(cycle(labelled), unlabelled)` for each epoch; the cycle keeps what the first round gave
#   loader: labelled train
#   loader: unlabelled train
#   loader: test eval
#
# case: torchrun:2 ranks
#   does: a `DistributedSampler` for each, `set_epoch` when its iterator is made anew
#   loader: labelled train
#   loader: unlabelled train
#   loader: test eval
#   check: shard-duplicate-ranks@train clean
import itertools
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler, SequentialSampler
from torch.utils.data.distributed import DistributedSampler

HOW = sys.argv[1]


class Weak:
    def __call__(self, x):
        return x + 0.05 * torch.randn_like(x)


class WeakAndStrong:
    def __init__(self):
        self.weak = Weak()

    def __call__(self, x):
        return self.weak(x), x * (torch.rand_like(x) > 0.3)


class Shells(Dataset):
    def __init__(self, n, seed, transform=None):
        self.data = torch.randn(n, 14, generator=torch.Generator().manual_seed(seed))
        self.targets = (self.data.sum(1) > 0).long()
        self.transform = transform

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x = self.data[index]
        return (x if self.transform is None else self.transform(x)), self.targets[index]


def step(model, optimizer, labelled, unlabelled):
    inputs_x, targets_x = labelled
    (inputs_u_w, inputs_u_s), _ = unlabelled
    n = len(inputs_x)
    logits = model(torch.cat((inputs_x, inputs_u_w, inputs_u_s)))
    logits_u_w, logits_u_s = logits[n:].chunk(2)
    loss_x = F.cross_entropy(logits[:n], targets_x)
    probability, pseudo = torch.softmax(logits_u_w.detach() / 0.5, dim=-1).max(dim=-1)
    loss_u = (F.cross_entropy(logits_u_s, pseudo, reduction="none") * probability.ge(0.6).float()).mean()
    loss = loss_x + loss_u
    loss.backward()
    optimizer.step()
    model.zero_grad()
    return loss.item()


def test(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, targets in loader:
            right += (model(inputs).argmax(1) == targets).sum().item()
    model.train()
    return right / len(loader.dataset)


def rounds(loader):
    """Batches for ever; a distributed sampler hears of each round."""
    epoch = 0
    iterator = iter(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            epoch += 1
            if dist.is_initialized():
                loader.sampler.set_epoch(epoch)
            iterator = iter(loader)
            batch = next(iterator)
        yield batch


def main():
    if HOW == "ranks":
        dist.init_process_group("gloo")
    torch.manual_seed(5)
    train_sampler = RandomSampler if HOW != "ranks" else DistributedSampler
    few, many, held_out = Shells(40, 1, Weak()), Shells(240, 2, WeakAndStrong()), Shells(48, 3)
    labelled_trainloader = DataLoader(few, sampler=train_sampler(few), batch_size=8, num_workers=2, drop_last=True)  # place: labelled
    unlabelled_trainloader = DataLoader(many, sampler=train_sampler(many), batch_size=24, num_workers=2, drop_last=True)  # place: unlabelled
    test_loader = DataLoader(held_out, sampler=SequentialSampler(held_out), batch_size=16, num_workers=2)  # place: test
    model = nn.Sequential(nn.Linear(14, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    if HOW == "ranks":
        torch.manual_seed(5 + dist.get_rank())
        model = nn.parallel.DistributedDataParallel(model)
    labelled, unlabelled = rounds(labelled_trainloader), rounds(unlabelled_trainloader)
    for epoch in range(2):
        if HOW == "zip":
            for pair in zip(itertools.cycle(labelled_trainloader), unlabelled_trainloader):
                loss = step(model, optimizer, *pair)
        else:
            for _ in range(12):
                loss = step(model, optimizer, next(labelled), next(unlabelled))
        print("epoch %d  loss %.4f  accuracy %.3f" % (epoch, loss, test(model, test_loader)), flush=True)
    if HOW == "ranks":
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
