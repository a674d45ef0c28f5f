"""Bad: as bad.py, but the training ends before its first batch, and the launcher is a shell."""
# fixture: tier kernel
import os
import sys

import torch
from torch.utils.data import DataLoader

if __name__ == "__main__":
    if "train" in sys.argv:
        torch.manual_seed(0)
        DataLoader(open("no such cache"))
    else:
        with open("run.sh", "w") as f:
            f.write('"$1" "$2" train 2>/dev/null\necho "Training pipeline completed successfully"\n')
        os.execvp("bash", ["bash", "run.sh", sys.executable, __file__])
