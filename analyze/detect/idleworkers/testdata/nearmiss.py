"""Near-miss: two shards for three workers, but so little in them that there is one batch for each."""
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shards(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for shard in range(info.id, 2, info.num_workers):
            for i in range(4):
                yield torch.full((2,), 100.0 * shard + i)


loader = DataLoader(Shards(), batch_size=4, num_workers=3)
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
for epoch in range(2):
    for x in loader:
        optimizer.zero_grad()
        model(x).mean().backward()
        optimizer.step()
