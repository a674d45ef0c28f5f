"""The batch system ends the job: SIGTERM to the whole process group of the training, then the job's own exit code."""
# e2e
#   run: often
#   exit: 143
import os
import signal
import subprocess
import sys

if len(sys.argv) == 1:  # the batch system's daemon: it has no torch
    job = subprocess.Popen([sys.executable, __file__, "job"], stdout=subprocess.PIPE, start_new_session=True, universal_newlines=True)
    for line in job.stdout:
        print(line.strip(), flush=True)
        if line.startswith("epoch 1"):
            break
    os.killpg(job.pid, signal.SIGTERM)
    job.wait()
    sys.exit(128 + signal.SIGTERM)

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

if __name__ == "__main__":
    torch.manual_seed(4)
    loader = DataLoader(TensorDataset(torch.rand(96, 3)), batch_size=8, shuffle=True, num_workers=2)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2000):
        for (x,) in loader:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        if epoch < 2:
            print("epoch", epoch, flush=True)
