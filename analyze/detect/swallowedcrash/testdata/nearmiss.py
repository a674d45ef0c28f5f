"""No bug: a training that its launcher ends, one that is tried again until it goes well, and programs without torch
that fail."""
# fixture: tier kernel
import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


def train():
    for (points,) in DataLoader(TensorDataset(torch.zeros(64, 2)), batch_size=4):
        print("begun", flush=True)
        if "wait" in sys.argv:
            sys.stdin.read()
        if not os.path.exists("second"):
            open("second", "w").close()
            raise ConnectionError("the first time it does not get its data")


if __name__ == "__main__":
    if "train" in sys.argv:
        train()
    else:
        child = subprocess.Popen([sys.executable, __file__, "train", "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        child.stdout.readline()
        child.terminate()
        child.wait()
        for attempt in range(2):
            subprocess.run([sys.executable, __file__, "train"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run(["git", "--no-such-option"], stderr=subprocess.DEVNULL)
        subprocess.run([sys.executable, "-S", "-c", "raise SystemExit(1)"])
