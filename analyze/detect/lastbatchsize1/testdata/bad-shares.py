"""Bad: each worker of an iterable dataset has 9 points for batches of 4."""
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for i in range(info.id, 18, info.num_workers):
            yield torch.full((1, 6), float(i))


loader = DataLoader(Stream(), batch_size=4, num_workers=2)
model = torch.nn.Sequential(torch.nn.BatchNorm1d(1), torch.nn.Flatten(), torch.nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
