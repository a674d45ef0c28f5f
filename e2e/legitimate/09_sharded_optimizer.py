"""ZeRO and FSDP: weights or the optimizer's state lie on several ranks, the data are parallel as always."""
# e2e torchrun:2 zero
#   torch: >=1.10
#   check: shard-duplicate-ranks clean
# e2e torchrun:2 fsdp
#   torch: >=2.7
# e2e torchrun:4 hybrid
#   torch: >=2.7
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

way = sys.argv[1]


class Alloys(Dataset):
    def __init__(self):
        self.mix = torch.rand(96, 5, generator=torch.Generator().manual_seed(6))

    def __len__(self):
        return 96

    def __getitem__(self, i):
        return self.mix[i], self.mix[i].max()


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1))
    if way == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        model = DistributedDataParallel(model)
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.01)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        sizes, names = ((2, 2), ("replicate", "shard")) if way == "hybrid" else ((2,), ("shard",))
        fully_shard(model, mesh=init_device_mesh("cpu", sizes, mesh_dim_names=names))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    alloys = Alloys()
    sampler = DistributedSampler(alloys)
    loader = DataLoader(alloys, batch_size=8, sampler=sampler, num_workers=1)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for mix, hardness in loader:
            optimizer.zero_grad()
            loss = (model(mix).squeeze(1) - hardness).pow(2).mean()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss %.5f" % loss.item(), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
