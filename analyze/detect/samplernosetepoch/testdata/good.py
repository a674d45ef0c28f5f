"""The sampler is told the epoch."""
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset



def main():
    torch.manual_seed(1)
    points = TensorDataset(torch.arange(192.0).reshape(96, 2) / 192)
    sampler = DistributedSampler(points, num_replicas=2, rank=0, seed=3)
    loader = DataLoader(points, batch_size=8, sampler=sampler, num_workers=2)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for (batch,) in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
