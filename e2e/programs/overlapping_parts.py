"""Validation on what was trained on: ranges that overlap, a sampler over everything, a split that each rank draws for itself."""
# e2e ranges
#   expect: split-leak proven 20
# e2e sampler
#   expect: split-leak proven
# e2e torchrun:2 ranks
#   torch: >=1.10
#   expect: split-leak proven
#   expect: ranks-disagree proven
#   fix: printed
# e2e apart
#   run: often
#   check: split-leak clean
# e2e torchrun:2 agreed
#   torch: >=1.10
#   check: split-leak clean
import os
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset, SubsetRandomSampler, random_split

way = sys.argv[1]


class Cells(Dataset):
    """Counts of blood cells, with an id."""

    def __init__(self):
        self.counts = torch.rand(120, 6, generator=torch.Generator().manual_seed(12))

    def __len__(self):
        return len(self.counts)

    def __getitem__(self, i):
        return {"counts": self.counts[i], "ill": float(self.counts[i, 2] > 0.6), "id": "patient %d" % (1000 + i * 7)}


def loaders(dataset):
    if way == "ranges":
        return DataLoader(Subset(dataset, range(100)), batch_size=10, shuffle=True, num_workers=2), DataLoader(Subset(dataset, range(80, 120)), batch_size=20)
    if way == "apart":
        return DataLoader(Subset(dataset, range(80)), batch_size=10, shuffle=True, num_workers=2), DataLoader(Subset(dataset, range(80, 120)), batch_size=20)
    if way == "sampler":
        chosen = SubsetRandomSampler(range(0, 120, 4))
        return DataLoader(dataset, batch_size=12, sampler=SubsetRandomSampler(range(10, 120))), DataLoader(dataset, batch_size=10, sampler=chosen)
    n_val = 40
    if way == "agreed":
        train, val = random_split(dataset, [80, n_val], generator=torch.Generator().manual_seed(0))
    else:
        train, val = random_split(dataset, [80, n_val])  # FIX line random_split(dataset
    return (DataLoader(train, batch_size=10, sampler=DistributedSampler(train), num_workers=1),
            DataLoader(val, batch_size=20, sampler=DistributedSampler(val, shuffle=False)))


def main():
    ranks = "RANK" in os.environ
    if ranks:
        dist.init_process_group("gloo")
    torch.manual_seed(3 + (dist.get_rank() if ranks else 0))  # augmentations must differ
    train, validation = loaders(Cells())
    model = torch.nn.Linear(6, 1)
    model = DistributedDataParallel(model) if ranks else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        if ranks:
            train.sampler.set_epoch(epoch)
        for batch in train:
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(batch["counts"]).squeeze(1), batch["ill"].float()).backward()
            optimizer.step()
        with torch.no_grad():
            right = sum(float(((model(b["counts"]).squeeze(1) > 0) == (b["ill"] > 0)).sum()) for b in validation)
    if not ranks or dist.get_rank() == 0:
        print("right", right, flush=True)
    if ranks:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
