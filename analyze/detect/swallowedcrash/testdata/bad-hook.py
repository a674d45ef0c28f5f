"""Bad, in the hook tier: the exit code is not seen, the exception that nobody caught is."""
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
