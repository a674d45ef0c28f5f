"""One rank reads for all: it cuts each batch into parts and sends them to the others, which have no loader of their own."""
# e2e torchrun:2 scatter
#   torch: >=1.10
# e2e torchrun:2 broadcast
#   torch: >=1.10
# e2e torchrun:2 accelerate
#   needs: accelerate
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

way = sys.argv[1]


class Meteors(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for n in range(info.id if info else 0, 80, info.num_workers if info else 1):
            yield torch.sin(torch.arange(6) * (n + 1) / 9.0)


def received(rank, world):
    """The parts of this rank."""
    batches = iter(DataLoader(Meteors(), batch_size=8, num_workers=2)) if rank == 0 else None
    while True:
        batch = next(batches, None) if rank == 0 else None
        more = torch.tensor([0 if batch is None else 1])
        dist.broadcast(more, 0)
        if not more:
            return
        if way == "broadcast":
            batch = batch if rank == 0 else torch.empty(8, 6)
            dist.broadcast(batch, 0)
            yield batch.chunk(world)[rank]
        else:
            part = torch.empty(8 // world, 6)
            dist.scatter(part, list(batch.contiguous().chunk(world)) if rank == 0 else None, 0)
            yield part


def main():
    torch.manual_seed(0)
    model = nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    backward = torch.Tensor.backward
    if way == "accelerate":
        from accelerate import Accelerator
        from accelerate.utils import DataLoaderConfiguration

        accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(dispatch_batches=True))
        loader = DataLoader(Meteors(), batch_size=8, num_workers=2)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        backward = accelerator.backward
    else:
        dist.init_process_group("gloo")
        model = DistributedDataParallel(model)
    rank, world = dist.get_rank(), dist.get_world_size()
    for epoch in range(2):
        total = 0
        for light in loader if way == "accelerate" else received(rank, world):
            optimizer.zero_grad()
            backward((model(light).squeeze(1) - light[:, 0]).pow(2).mean())
            optimizer.step()
            total += len(light)
        if rank == 0:
            print("epoch", epoch, "samples of this rank", total, flush=True)
    dist.barrier()
    # Up to torch 1.13 DDP's end joins gloo's threads with the interpreter's lock held, for which one of them may be waiting to let go
    # of a tensor: then the program hangs, recorded or not (1 of 43 plain runs on a busy machine).
    time.sleep(0.2)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
