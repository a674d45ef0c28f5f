"""The generator of the order is the same on all ranks, as it must be where each takes its share of one permutation."""
# e2e torchrun:2 slices
#   torch: >=1.10
# e2e torchrun:2 batches
#   torch: >=1.10
# e2e torchrun:2 accelerate
#   needs: accelerate
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, Sampler


class Cores(Dataset):
    """Ice cores."""

    def __init__(self):
        self.layers = torch.rand(96, 6, generator=torch.Generator().manual_seed(1))

    def __len__(self):
        return len(self.layers)

    def __getitem__(self, i):
        return self.layers[i], i


class Share(Sampler):
    """Every world-th of the indices that another sampler gives."""

    def __init__(self, of):
        self.of = of

    def __iter__(self):
        for n, item in enumerate(self.of):
            if n % dist.get_world_size() == dist.get_rank():
                yield item

    def __len__(self):
        return len(self.of) // dist.get_world_size()


def train(loader, model, optimizer, backward=torch.Tensor.backward):
    for epoch in range(3):
        for layers, _ in loader:
            optimizer.zero_grad()
            loss = (model(layers) - layers.mean(1, keepdim=True)).pow(2).mean()
            backward(loss)
            optimizer.step()
        if dist.get_rank() == 0:
            print("epoch", epoch, "loss %.5f" % loss.item(), flush=True)


def main():
    torch.manual_seed(0)
    cores, model, order = Cores(), nn.Linear(6, 1), torch.Generator().manual_seed(31)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    if sys.argv[1] == "accelerate":
        from accelerate import Accelerator

        accelerator = Accelerator(cpu=True, rng_types=["generator"])
        loader = DataLoader(cores, batch_size=8, shuffle=True, generator=order, num_workers=2)
        train(*accelerator.prepare(loader, model, optimizer), backward=accelerator.backward)
        accelerator.end_training()
        return
    dist.init_process_group("gloo")
    shuffled = RandomSampler(cores, generator=order)
    if sys.argv[1] == "slices":
        loader = DataLoader(cores, batch_size=8, sampler=Share(shuffled), num_workers=2)
    else:  # whole batches in turn, as accelerate's BatchSamplerShard
        loader = DataLoader(cores, batch_sampler=Share(BatchSampler(shuffled, 8, drop_last=False)), num_workers=2)
    train(loader, DistributedDataParallel(model), optimizer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
