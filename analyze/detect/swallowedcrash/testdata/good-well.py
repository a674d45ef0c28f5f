"""Good: the training of a launcher ends well."""
# fixture: tier kernel
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    if "train" in sys.argv:
        for (points,) in DataLoader(TensorDataset(torch.zeros(64, 2)), batch_size=4, num_workers=2):
            pass
    else:
        subprocess.run([sys.executable, __file__, "train"])
