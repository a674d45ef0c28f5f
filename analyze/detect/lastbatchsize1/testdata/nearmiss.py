"""Near-miss: the training loop passes over the batch of one, and an evaluation ends in one."""
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(33, 1, 6)), batch_size=8, shuffle=True, num_workers=2)
held_out = DataLoader(TensorDataset(torch.randn(17, 1, 6)), batch_size=8)
model = torch.nn.Sequential(torch.nn.BatchNorm1d(1), torch.nn.Flatten(), torch.nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for (x,) in loader:
        if len(x) < 2:
            continue
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(sum(model(x).sum() for (x,) in held_out))
    model.train()
