"""Gradients of four batches to a step, on two ranks, with a rest of two at the end of the epoch that is left out or kept."""
# e2e torchrun:2 left
#   torch: >=1.10
#   check: sampler-no-set-epoch clean
# e2e torchrun:2 kept
#   torch: >=1.10
# e2e one
import contextlib
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, RandomSampler

EVERY = 4


class Echoes(Dataset):
    def __len__(self):
        return 112

    def __getitem__(self, i):
        return {"x": torch.tensor([i / 112, (i % 9) / 9]), "y": torch.tensor(i % 2)}


def main():
    ranks = "RANK" in os.environ
    torch.manual_seed(4)
    model, echoes = nn.Linear(2, 2), Echoes()
    if ranks:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    sampler = DistributedSampler(echoes) if ranks else RandomSampler(echoes)
    loader = DataLoader(echoes, batch_size=4 if ranks else 8, sampler=sampler, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        if ranks:
            sampler.set_epoch(epoch)
        for n, batch in enumerate(loader, 1):
            whole = n % EVERY == 0 or sys.argv[1] == "kept" and n == len(loader)
            with model.no_sync() if ranks and not whole else contextlib.nullcontext():
                loss = nn.functional.cross_entropy(model(batch["x"]), batch["y"]) / EVERY
                loss.backward()
            if whole:
                optimizer.step()
                optimizer.zero_grad()
        if not ranks or dist.get_rank() == 0:
            print("epoch", epoch, "loss %.4f" % (loss.item() * EVERY), flush=True)
    if ranks:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
