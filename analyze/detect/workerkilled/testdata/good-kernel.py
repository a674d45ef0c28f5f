"""Good: the same as good.py; the persistent workers get SIGTERM from their parent when it ends."""
# fixture: tier kernel
import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    points = TensorDataset(torch.zeros(64, 2))
    for batch in DataLoader(points, batch_size=8, num_workers=2):
        pass
    loader = DataLoader(points, batch_size=8, num_workers=2, persistent_workers=True)
    for epoch in range(3):
        for batch in loader:
            pass
