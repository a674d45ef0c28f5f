"""Ranks that go through different lists: a set of names, whose order every process has for itself; one seed per rank for the sampler."""
# e2e torchrun:2 set
#   torch: >=1.10
#   expect: ranks-disagree proven
# e2e torchrun:4 seeds
#   torch: >=1.10
#   expect: ranks-disagree proven
# e2e torchrun:2 lengths
#   torch: >=1.10
#   expect: ranks-disagree proven
# e2e torchrun:2 sorted
#   torch: >=1.10
#   check: ranks-disagree clean
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

way = sys.argv[1]


class Portraits(Dataset):
    def __init__(self, names):
        self.people = names

    def __len__(self):
        return len(self.people)

    def __getitem__(self, i):
        name = self.people[i]
        return torch.tensor([ord(c) / 128 for c in name]), len(set(name)) % 3, name


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    names = {"%05d" % (n * 7919 % 99991) for n in range(120)}
    if way == "set":
        people = list(names)  # PYTHONHASHSEED
    else:
        people = sorted(names)
    if way == "lengths" and rank == 1:
        people = people[:104]  # its disk is not complete
    portraits = Portraits(people)
    sampler = DistributedSampler(portraits, seed=rank if way == "seeds" else 0, drop_last=True)
    loader = DataLoader(portraits, batch_size=13 if way == "lengths" else 6, sampler=sampler, num_workers=1, drop_last=True)
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for face, mood, _ in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(face), mood).backward()
            optimizer.step()
        if rank == 0:
            print("epoch", epoch, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
