"""DistributedDataParallel around the model, and the loader as it was on one GPU: each rank goes through everything."""
# e2e torchrun:2 shuffled
#   torch: >=1.10
#   expect: shard-duplicate-ranks proven
#   fix: printed
# e2e torchrun:4 indices
#   torch: >=1.10
#   expect: shard-duplicate-ranks proven
# e2e torchrun:2 constant
#   torch: >=1.10
#   expect: shard-duplicate-ranks proven
# e2e torchrun:2 shared
#   torch: >=1.10
#   check: shard-duplicate-ranks clean
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset, SubsetRandomSampler


class Fossils(Dataset):
    """Outlines, turned by chance."""

    def __init__(self):
        self.outlines = torch.rand(110, 10, generator=torch.Generator().manual_seed(7))

    def __len__(self):
        return len(self.outlines)

    def __getitem__(self, i):
        turn = int(torch.randint(0, 10, ()))
        return {"outline": self.outlines[i].roll(turn), "age": self.outlines[i].mean(), "name": "specimen %d" % i}


def main():
    way = sys.argv[1]
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(10, 1))
    torch.manual_seed(60 + dist.get_rank())  # other turns and other orders on each rank
    dataset = Subset(Fossils(), range(10, 90))
    if way == "shuffled":
        # FIX line sampler =
        loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2)  # FIX line loader =
        sampler = loader.sampler
    else:
        sampler = {
            "indices": lambda: SubsetRandomSampler(range(64)),
            "constant": lambda: DistributedSampler(dataset, num_replicas=2, rank=0, seed=3),  # left from a test
            "shared": lambda: DistributedSampler(dataset, seed=3),
        }[way]()
        loader = DataLoader(dataset, batch_size=8, sampler=sampler, num_workers=1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        if isinstance(sampler, DistributedSampler):
            sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            loss = (model(batch["outline"]).squeeze(1) - batch["age"]).pow(2).mean()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss %.6f" % loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
