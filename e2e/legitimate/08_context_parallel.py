"""Long sequences are cut over the ranks: each reads the same samples and keeps another slice, in the loop or in the dataset."""
# e2e torchrun:2 loop
#   torch: >=1.10
# e2e torchrun:2 item
#   torch: >=1.10
# e2e torchrun:2 reduced
#   torch: >=1.10
# e2e torchrun:4 replicas
#   torch: >=1.10
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

way = sys.argv[1]
LENGTH, PARTS = 32, 2


def slice_of(sequence, part):
    return sequence.narrow(-1, part * LENGTH // PARTS, LENGTH // PARTS)


class Genome(Dataset):
    def __init__(self, part):
        self.part = part

    def __len__(self):
        return 72

    def __getitem__(self, i):
        bases = ((torch.arange(LENGTH) * (i + 5)) % 7 % 4).float()
        return slice_of(bases, self.part) if way == "item" else bases


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    part, replica = rank % PARTS, rank // PARTS
    contexts = [dist.new_group([r, r + 1]) for r in range(0, dist.get_world_size(), PARTS)]
    genome = Genome(part)
    sampler = DistributedSampler(genome, num_replicas=dist.get_world_size() // PARTS, rank=replica, seed=2)
    loader = DataLoader(genome, batch_size=6, sampler=sampler, num_workers=2)
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    if way in ("reduced", "replicas"):
        model = DistributedDataParallel(model)  # each slice gives part of the gradient, so all ranks reduce it
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for bases in loader:
            own = bases if way == "item" else slice_of(bases, part)
            content = own.mean(1)
            dist.all_reduce(content, group=contexts[replica])  # of the whole sequence
            optimizer.zero_grad()
            (model(own.unsqueeze(-1)).mean((1, 2)) - content).pow(2).mean().backward()
            if way in ("loop", "item"):
                for weight in model.parameters():
                    dist.all_reduce(weight.grad, group=contexts[replica])
            optimizer.step()
    weight = sum(w.sum().item() for w in model.parameters())
    if rank == 0:
        print("weights %.5f" % weight)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
