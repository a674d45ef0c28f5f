"""Bad, in the hook tier: what its parent learned of its end, and the exception that nobody caught."""
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    if "train" in sys.argv:
        for (points,) in DataLoader(TensorDataset(torch.zeros(64, 2)), batch_size=4):
            raise KeyError("validation")
    else:
        subprocess.run([sys.executable, __file__, "train"], stderr=subprocess.DEVNULL)
