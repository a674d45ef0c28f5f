"""Each rank draws with replacement by itself: the ranks share samples as often as chance gives."""
# e2e torchrun:2 weighted
#   torch: >=1.10
# e2e torchrun:2 batches
#   torch: >=1.10
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, WeightedRandomSampler


class Calls(Dataset):
    """Bird calls: few of the rare species."""

    def __init__(self, n=120):
        g = torch.Generator().manual_seed(2)
        self.spectra, self.species = torch.rand(n, 10, generator=g), torch.arange(n) % 9 // 6

    def __len__(self):
        return len(self.species)

    def __getitem__(self, i):
        return {"spectrum": self.spectra[i], "species": self.species[i]}


def main():
    dist.init_process_group("gloo")
    calls = Calls()
    own = torch.Generator().manual_seed(100 + dist.get_rank())
    if sys.argv[1] == "weighted":
        weights = [3.0 if s else 1.0 for s in calls.species.tolist()]
        loader = DataLoader(calls, batch_size=10, sampler=WeightedRandomSampler(weights, 80, generator=own), num_workers=1)
    else:
        draws = RandomSampler(calls, replacement=True, num_samples=80, generator=own)
        loader = DataLoader(calls, batch_sampler=BatchSampler(draws, 10, drop_last=True), num_workers=1)
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Linear(10, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch["spectrum"]), batch["species"])
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss %.4f" % loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
