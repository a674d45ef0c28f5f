"""A number of samples that the ranks do not divide: the sampler hands out some twice, so that all ranks step equally often."""
# e2e torchrun:2 95
#   torch: >=1.10
#   check: sampler-no-set-epoch clean
# e2e torchrun:4 45
#   torch: >=1.10
# e2e torchrun:2 accelerate
#   needs: accelerate
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler


class Leaves(Dataset):
    def __init__(self, n, first):
        self.n, self.first = n, first

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        width = (self.first + i) / 20
        return torch.tensor([width, width ** 2, width % 1]), (self.first + i) % 4


def main():
    with_accelerate = sys.argv[1] == "accelerate"
    torch.manual_seed(1)
    model = nn.Linear(3, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    backward, sampler = torch.Tensor.backward, None
    n = 93 if with_accelerate else int(sys.argv[1])
    leaves, held_out = Leaves(n, 0), Leaves(n // 4, 1000)
    if with_accelerate:
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True)
        loader = DataLoader(leaves, batch_size=7, shuffle=True, num_workers=1)
        model, optimizer, loader, validation = accelerator.prepare(model, optimizer, loader, DataLoader(held_out, batch_size=5))
        backward = accelerator.backward
    else:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
        sampler = DistributedSampler(leaves)
        loader = DataLoader(leaves, batch_size=7, sampler=sampler, num_workers=1)
        validation = DataLoader(held_out, batch_size=5, sampler=DistributedSampler(held_out, shuffle=False))
    for epoch in range(2):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for shape, species in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(shape), species)
            backward(loss)
            optimizer.step()
        right = torch.zeros(2)
        with torch.no_grad():
            for shape, species in validation:
                right += torch.tensor([float((model(shape).argmax(1) == species).sum()), float(len(species))])
        dist.all_reduce(right)
        if dist.get_rank() == 0:
            print("epoch", epoch, "accuracy %.3f of %d" % (right[0] / right[1], right[1]), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
