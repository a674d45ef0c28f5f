"""random_split on each rank, from generators that differ: the shares of the ranks do not fit together, and what one rank holds back another trains on."""
# e2e torchrun:2 shares
#   torch: >=1.10
#   expect: ranks-disagree likely different lists of one dataset
#   expect: split-leak likely what it holds back, rank
#   check: shard-duplicate-ranks cannot-tell
#   fix: printed
# e2e torchrun:2 all
#   torch: >=1.10
#   expect: shard-duplicate-ranks likely has drawn its own part
#   expect: split-leak likely
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler, random_split

way = sys.argv[1]


class Meteors(Dataset):
    """Tracks, jittered: no sample is the same twice, so that only the indices tell."""

    def __init__(self):
        self.tracks = torch.rand(160, 6, generator=torch.Generator().manual_seed(2))

    def __len__(self):
        return len(self.tracks)

    def __getitem__(self, i):
        return self.tracks[i] + 0.01 * torch.randn(6)


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(40 + rank)  # "so that ranks augment differently"
    dataset, n_val = Meteors(), 32
    train, val = random_split(dataset, [len(dataset) - n_val, n_val])  # FIX line train, val =
    sampler = None if way == "all" else DistributedSampler(train)
    loader = DataLoader(train, batch_size=8, shuffle=sampler is None, sampler=sampler)
    validation = DataLoader(val, batch_size=16)
    model = DistributedDataParallel(torch.nn.Linear(6, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for tracks in loader:
            optimizer.zero_grad()
            model(tracks).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            for tracks in validation:
                model.module(tracks)
        if rank == 0:
            print("epoch", epoch, flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
