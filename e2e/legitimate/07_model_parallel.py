"""Ranks that hold parts of one replica get the same batches: tensor, pipeline and expert parallel."""
# e2e torchrun:2 tensor
#   torch: >=1.10
# e2e torchrun:2 world
#   torch: >=1.10
# e2e torchrun:2 pipeline
#   torch: >=1.10
# e2e torchrun:2 experts
#   torch: >=1.10
# e2e torchrun:4 replicas
#   torch: >=1.10
# e2e torchrun:4 mesh
#   torch: >=2.3
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

way = sys.argv[1]


class Tokens(Dataset):
    """Lines of a text as token ids."""

    def __len__(self):
        return 64

    def __getitem__(self, i):
        return (torch.arange(9) * (i + 3) + i // 7) % 50


class Sum(torch.autograd.Function):
    """Adds up over the ranks of a replica; the gradient goes to each of them as it is."""

    @staticmethod
    def forward(ctx, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Copy(torch.autograd.Function):
    """The other way round."""

    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


class Split(nn.Module):
    """A hidden layer of which each rank of the group has its columns, or its experts."""

    def __init__(self, part, group):
        super().__init__()
        self.group, self.part = group, part
        self.embed = nn.Embedding(50, 8)
        torch.manual_seed(10 + part)
        self.up, self.down = nn.Linear(8, 6), nn.Linear(6, 50, bias=False)

    def forward(self, ids):
        x = Copy.apply(self.embed(ids), self.group)
        own = self.down(torch.relu(self.up(x)))
        if way == "experts":
            own = own * (ids % 2 == self.part).unsqueeze(-1).float()
        return Sum.apply(own, self.group)


def fit(step, loader, sampler=None):
    for epoch in range(2):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for ids in loader:
            loss = step(ids[:, :-1], ids[:, 1:])
        if dist.get_rank() == 0:
            print("epoch", epoch, "" if loss is None else "loss %.4f" % loss.item(), flush=True)


def trained(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(ids, following):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), following.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def pipelined(rank):
    stage = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 8)) if rank == 0 else nn.Linear(8, 50)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.1)

    def step(ids, following):
        optimizer.zero_grad()
        if rank == 0:
            out = stage(ids)
            dist.send(out.detach(), 1)
            grad = torch.empty_like(out)
            dist.recv(grad, 1)
            out.backward(grad)
            loss = None
        else:
            x = torch.empty(*ids.shape, 8)
            dist.recv(x, 0)
            x.requires_grad_()
            loss = nn.functional.cross_entropy(stage(x).flatten(0, 1), following.flatten())
            loss.backward()
            dist.send(x.grad, 0)
        optimizer.step()
        return loss

    return step


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    text = Tokens()
    torch.manual_seed(5)
    # One seed, so that the ranks of a replica shuffle alike.
    loader = DataLoader(text, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(77), num_workers=1)
    if way in ("tensor", "experts"):
        fit(trained(Split(rank, dist.new_group([0, 1]))), loader)
    elif way == "world":  # no other group than the one that there is anyway
        fit(trained(Split(rank, dist.group.WORLD)), loader)
    elif way == "pipeline":
        fit(pipelined(rank), loader)
    else:  # two replicas of two ranks each
        if way == "mesh":
            from torch.distributed.device_mesh import init_device_mesh

            mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
            tensor, data = mesh["tp"].get_group(), mesh["dp"].get_group()
        else:
            tensors = [dist.new_group([0, 1]), dist.new_group([2, 3])]
            datas = [dist.new_group([0, 2]), dist.new_group([1, 3])]
            tensor, data = tensors[rank // 2], datas[rank % 2]
        model = DistributedDataParallel(Split(rank % 2, tensor), process_group=data)
        sampler = DistributedSampler(text, num_replicas=2, rank=rank // 2)
        fit(trained(model), DataLoader(text, batch_size=8, sampler=sampler, num_workers=1), sampler)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
