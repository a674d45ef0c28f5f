"""Not shuffled, and an evaluation that shuffles in one order."""
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset



def main():
    torch.manual_seed(1)
    points = TensorDataset(torch.arange(192.0).reshape(96, 2) / 192)
    sampler = DistributedSampler(points, num_replicas=2, rank=0, shuffle=False)
    loader = DataLoader(points, batch_size=8, sampler=sampler)
    held_out = DistributedSampler(points, num_replicas=2, rank=1, seed=3)
    evaluation = DataLoader(points, batch_size=8, sampler=held_out)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for epoch in range(3):
        for (batch,) in loader:
            optimizer.zero_grad()
            model(batch).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            for (batch,) in evaluation:
                model(batch)


if __name__ == "__main__":
    main()
