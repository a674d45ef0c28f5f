"""Near-miss: the length is right, a row is read at a column that it does not have."""
# fixture: exit 1
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, Subset


class Spectra(Dataset):
    def __init__(self):
        self.header, self.rows = 120, np.zeros((80, 4), dtype="float32")

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return torch.from_numpy(self.rows[index][4:5] + self.rows[index][4])


torch.manual_seed(0)
data = Spectra()
loader = DataLoader(Subset(data, range(len(data))), batch_size=8, shuffle=True, num_workers=2)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in loader:
    optimizer.zero_grad()
    model(x).mean().backward()
    optimizer.step()
