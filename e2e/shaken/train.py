"""A small training that says all that it does, and ends with a code of its own."""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.full((3,), float(i)) + torch.rand(3)


if __name__ == "__main__":
    torch.manual_seed(3)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-7)
    loader = DataLoader(Noise(), batch_size=4, shuffle=True, num_workers=2)
    for epoch in range(3):
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch).pow(2).mean()
            loss.backward()
            optimizer.step()
            print(loss.item().hex())
    print("end", torch.rand(1).item(), flush=True)
    sys.exit(7)
