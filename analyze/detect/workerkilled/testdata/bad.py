"""Bad: another process sends SIGKILL to a worker while it fetches."""
# fixture: tier kernel
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 20:  # in the third batch of worker 1
            subprocess.run([sys.executable, "-S", "-c", "import os, sys; os.kill(int(sys.argv[1]), 9)", str(os.getpid())])
        return torch.zeros(2)


if __name__ == "__main__":
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    try:
        for points in DataLoader(Points(), batch_size=4, num_workers=2):
            model(points).sum().backward()
            optimizer.step()
    except (RuntimeError, OSError, EOFError):  # the same death comes as one or the other
        pass
