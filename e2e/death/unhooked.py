"""Starts Pythons that the hook cannot get into, beside a training that is hooked.

usage: unhooked.py [isolated | cleaned] [torch]
"""
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

code = ("import torch; " if "torch" in sys.argv else "") + "import time; time.sleep(4)"
if "isolated" in sys.argv:
    child = subprocess.Popen([sys.executable, "-I", "-c", code])
else:
    child = subprocess.Popen([sys.executable, "-c", code], env={})
for _ in range(2):
    for batch in DataLoader(TensorDataset(torch.arange(40)), batch_size=4):
        pass
sys.exit(child.wait())
