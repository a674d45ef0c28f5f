"""Differential privacy: each sample is in a batch with one probability, so batches have any size, also one or none (Opacus)."""
# e2e one
# e2e torchrun:2 ranks
#   torch: >=1.10
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, Sampler


class UniformWithReplacementSampler(Sampler):
    """Opacus's: of the samples of a rank each is drawn for each batch by itself."""

    def __init__(self, indices, rate, steps, generator):
        self.indices, self.rate, self.steps, self.generator = indices, rate, steps, generator

    def __len__(self):
        return self.steps

    def __iter__(self):
        for _ in range(self.steps):
            drawn = torch.rand(len(self.indices), generator=self.generator) < self.rate
            yield [i for i, d in zip(self.indices, drawn.tolist()) if d]


class Patients(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, i):
        return torch.tensor([i / 100, i % 7 / 7, i % 2]), torch.tensor(i % 3)


def stack(samples):
    if not samples:
        return torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)
    return torch.utils.data.dataloader.default_collate(samples)


def main():
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.manual_seed(0)
    model = nn.Linear(3, 3)
    if world > 1:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    order = torch.randperm(100, generator=torch.Generator().manual_seed(1)).tolist()
    own = torch.Generator().manual_seed(10 + rank)
    sampler = UniformWithReplacementSampler(order[rank::world], 0.05, 25, own)
    loader = DataLoader(Patients(), batch_sampler=sampler, collate_fn=stack, num_workers=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sizes = []
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y, reduction="sum").backward()
            for weight in model.parameters():
                weight.grad += 0.3 * torch.randn(weight.shape)  # the noise that keeps the secret
            optimizer.step()
            sizes.append(len(x))
    if rank == 0:
        print("batches of %d to %d" % (min(sizes), max(sizes)))
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
