"""Good: the length of the array."""
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Spectra(Dataset):
    def __init__(self):
        self.header, self.rows = 120, np.zeros((80, 4), dtype="float32")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(self.rows[index])


torch.manual_seed(0)
data = Spectra()
loader = DataLoader(Subset(data, range(len(data))), batch_size=8, shuffle=True, num_workers=2)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
