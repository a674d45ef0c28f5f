"""Good: the launcher of bad.py, which ends with the exit code of its training."""
# fixture: tier kernel
# fixture: exit 1
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


def train():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (points,) in enumerate(DataLoader(TensorDataset(torch.zeros(64, 2)), batch_size=4)):
        model(points).sum().backward()
        optimizer.step()
        if step == 5:
            raise KeyError("validation")


if __name__ == "__main__":
    if "train" in sys.argv:
        train()
    else:
        result = subprocess.run([sys.executable, __file__, "train"], stderr=subprocess.DEVNULL)
        sys.exit(result.returncode)
