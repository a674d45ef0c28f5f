"""Samples 17 and 90 take 400 ms, all others 1; two passes in different orders. Each is in a file of its own."""

# fixture: tier kernel
import time

import torch
from torch.utils.data import DataLoader, Dataset


for i in range(120):
    with open("%d.txt" % i, "w") as f:
        f.write(str(i))


class Rows(Dataset):
    def __len__(self):
        return 120

    def __getitem__(self, i):
        time.sleep(0.4 if i in (17, 90) else 0.001)
        with open("%d.txt" % i) as f:
            return torch.full((16,), float(f.read()))


torch.manual_seed(3)
model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
loader = DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=2)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
        time.sleep(0.005)
