"""A stream that is dealt out to the workers of a rank, but not to the ranks."""
# e2e torchrun:2 workers
#   torch: >=1.10
#   expect: shard-duplicate-ranks proven
# e2e torchrun:2 both
#   torch: >=1.10
#   check: shard-duplicate-ranks clean
#   check: shard-duplicate-workers clean
import itertools
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Quakes(IterableDataset):
    def __init__(self, ranks):
        self.ranks = ranks  # (rank, world) that it deals to

    def __iter__(self):
        info, (rank, world) = get_worker_info(), self.ranks
        for n in itertools.islice(range(96), rank * info.num_workers + info.id, None, world * info.num_workers):
            yield torch.sin(torch.arange(9) * (n + 1) / 13.0), torch.tensor(n % 10 / 10)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(9, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)))
    ranks = (0, 1) if sys.argv[1] == "workers" else (dist.get_rank(), dist.get_world_size())
    loader = DataLoader(Quakes(ranks), batch_size=8, num_workers=2, persistent_workers=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for trace, magnitude in loader:
            optimizer.zero_grad()
            loss = (model(trace).squeeze(1) - magnitude).pow(2).mean()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss %.5f" % loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
