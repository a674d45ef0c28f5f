"""Near-miss: the labels of the last hundred batches are kept as they came: no more, however long it trains."""
import collections
import resource
import time

import torch
from torch.utils.data import DataLoader, Dataset

resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Images(Dataset):
    def __len__(self):
        return 2400

    def __getitem__(self, i):
        return torch.rand(16), i


model = torch.nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
kept = collections.deque(maxlen=100)
for x, label in DataLoader(Images(), batch_size=4, shuffle=True, num_workers=2):
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
    kept.append(label)
    time.sleep(0.005)
