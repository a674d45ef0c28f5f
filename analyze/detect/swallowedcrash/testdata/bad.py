"""Bad: a launcher that does not look at the exit code of the training that it starts."""
# fixture: tier kernel
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
        subprocess.run([sys.executable, __file__, "train"], stderr=subprocess.DEVNULL)
        print("Training pipeline completed successfully")
