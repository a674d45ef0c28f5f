"""A pipeline whose first stage alone reads data; the last one is sent activations and labels and has no loader, or an idle one."""
# e2e torchrun:2 none
#   torch: >=1.10
# e2e torchrun:2 idle
#   torch: >=1.10
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Grains(Dataset):
    def __len__(self):
        return 90

    def __getitem__(self, i):
        return torch.linspace(0, 1, 6) * (i * i + 1) / 90, torch.tensor(i % 3)


def main():
    dist.init_process_group("gloo")
    rank, epochs, steps = dist.get_rank(), 2, 9
    torch.manual_seed(rank)
    stage = nn.Sequential(nn.Linear(6, 8), nn.Tanh()) if rank == 0 else nn.Linear(8, 3)
    optimizer = torch.optim.SGD(stage.parameters(), lr=0.05)
    loader = None
    if rank == 0 or sys.argv[1] == "idle":
        loader = DataLoader(Grains(), batch_size=10, shuffle=True, num_workers=2)
    for epoch in range(epochs):
        if rank == 0:
            for shape, kind in loader:
                optimizer.zero_grad()
                out = stage(shape)
                dist.send(out.detach(), 1)
                dist.send(kind, 1)
                grad = torch.empty_like(out)
                dist.recv(grad, 1)
                out.backward(grad)
                optimizer.step()
            print("epoch", epoch, "done", flush=True)
        else:
            for _ in range(steps):
                optimizer.zero_grad()
                x, kind = torch.empty(10, 8), torch.empty(10, dtype=torch.int64)
                dist.recv(x, 0)
                dist.recv(kind, 0)
                x.requires_grad_()
                nn.functional.cross_entropy(stage(x), kind).backward()
                dist.send(x.grad, 0)
                optimizer.step()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
