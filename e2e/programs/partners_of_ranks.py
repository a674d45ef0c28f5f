"""Two ranks on one file list: each has drawn partners to mix its samples with, or the list itself is in an order of its own."""
# e2e torchrun:2 partners
#   torch: >=1.10
#   expect: ranks-disagree likely dataset.partners has the same 80 items in another order
# e2e torchrun:2 order
#   torch: >=1.10
#   expect: ranks-disagree proven names
# e2e torchrun:2 missing
#   torch: >=1.10
#   expect: ranks-disagree proven different lengths
# e2e torchrun:2 own
#   torch: >=1.10
#   expect: ranks-disagree likely different lengths
import random
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

way = sys.argv[1]


class Songs(Dataset):
    def __init__(self, rank):
        own = random.Random(rank)
        self.names = ["song-%03d" % i for i in range(80)]
        if way == "order":  # as os.listdir gives them on another machine
            own.shuffle(self.names)
        if way == "missing" and rank == 1:
            del self.names[40:46]
        if way == "own":
            self.names = ["station-%d-%03d" % (rank, i) for i in range(80 - 6 * rank)]
        self.partners = list(range(len(self.names)))
        if way == "partners":
            own.shuffle(self.partners)

    def __len__(self):
        return len(self.names)

    def read(self, i):
        name = self.names[i]
        return torch.tensor([int(name[-3:]) / 80, len(name) / 9 + (0.5 if "-1-" in name else 0.25)])

    def __getitem__(self, i):
        if way == "partners":
            return 0.7 * self.read(i) + 0.3 * self.read(self.partners[i])
        return self.read(i)


def main():
    dist.init_process_group("gloo")
    songs = Songs(dist.get_rank())
    sampler = DistributedSampler(songs, drop_last=True)
    loader = DataLoader(songs, batch_size=6, sampler=sampler, drop_last=True)
    steps = torch.tensor(len(loader))
    dist.all_reduce(steps, op=dist.ReduceOp.MIN)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for n, x in enumerate(loader):
            if n == steps:
                break
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
    dist.barrier()
    if dist.get_rank() == 0:
        print("trained", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
