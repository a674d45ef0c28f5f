"""Cross-validation whose folds are each seeded alike: the same places of each fold's Subset, and other samples."""
# e2e
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
rows = TensorDataset(torch.randn(120, 8), torch.arange(120))
shuffled = torch.randperm(120).tolist()
model = torch.nn.Linear(8, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
orders = []
for fold in range(3):
    torch.manual_seed(42)
    held_out = set(shuffled[40 * fold:40 * fold + 40])
    loader = DataLoader(Subset(rows, [i for i in shuffled if i not in held_out]), batch_size=8, shuffle=True)
    for epoch in range(2):
        order = []
        for x, number in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()
            order += number.tolist()
        orders.append(order)
assert all(a != b for n, a in enumerate(orders) for b in orders[:n])
print(orders[0][:4])
