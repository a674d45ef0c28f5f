"""Bad: 33 = 4 * 8 + 1 points, and a BatchNorm over the time axis that takes the last one by itself."""
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(33, 1, 6)), batch_size=8, shuffle=True, num_workers=2)
model = torch.nn.Sequential(torch.nn.BatchNorm1d(1), torch.nn.Flatten(), torch.nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
