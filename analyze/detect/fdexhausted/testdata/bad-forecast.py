"""Bad, and the program ends before its descriptors do: they grow with each batch."""
import resource
import time

import torch
from torch.utils.data import DataLoader, Dataset

resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Images(Dataset):
    def __len__(self):
        return 560

    def __getitem__(self, i):
        return torch.rand(16), i


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
kept = []
for x, label in DataLoader(Images(), batch_size=4, shuffle=True, num_workers=2):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    kept.append(label)
    time.sleep(0.02)
