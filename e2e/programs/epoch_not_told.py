"""The epoch goes to the sampler of the validation set, or to nobody, on two and on four ranks."""
# e2e torchrun:2 wrong
#   torch: >=1.10
#   expect: sampler-no-set-epoch proven
# e2e torchrun:4 never
#   torch: >=1.10
#   expect: sampler-no-set-epoch proven
#   fix: printed
# e2e torchrun:2 batches
#   torch: >=1.10
#   expect: sampler-no-set-epoch proven
#   fix: printed
# e2e torchrun:2 told
#   torch: >=1.10
#   check: sampler-no-set-epoch clean
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, Dataset, DistributedSampler


class Looms(Dataset):
    def __init__(self, n, first=0):
        self.n, self.first = n, first

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        return torch.tensor([(self.first + i) % 7, (self.first + i) % 11, i / self.n]) + torch.rand(3) / 100


def main():
    way, epochs = sys.argv[1], 3
    dist.init_process_group("gloo")
    torch.manual_seed(dist.get_rank())
    threads, checks = Looms(160), Looms(32, 900)
    if way == "batches":  # then loader.sampler is one that nobody uses
        loader = DataLoader(threads, batch_sampler=BatchSampler(DistributedSampler(threads), 8, drop_last=False))
    else:
        loader = DataLoader(threads, batch_size=8, sampler=DistributedSampler(threads), num_workers=1, persistent_workers=True)
    validation = DataLoader(checks, batch_size=8, sampler=DistributedSampler(checks, shuffle=False))
    model = DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(epochs):
        # FIX line set_epoch
        if way == "told":
            loader.sampler.set_epoch(epoch)
        elif way == "wrong":
            validation.sampler.set_epoch(epoch)
        for x in loader:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            error = sum(model(x).pow(2).mean().item() for x in validation)
    if dist.get_rank() == 0:
        print("validated", error > 0, flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
