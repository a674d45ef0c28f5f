"""A training that ends well, by an exception, by a signal, or with a code; or fails only the first time.

usage: train.py HOW    well, raise, segv, kill, exit, once (raises unless ./tried is there)
"""
import ctypes
import os
import resource
import signal
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
how = sys.argv[1]
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for n, (x,) in enumerate(DataLoader(TensorDataset(torch.ones(40, 4)), batch_size=4)):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    if n < 5:
        continue
    if how == "raise" or how == "once" and not os.path.exists("tried"):
        open("tried", "w").close()
        raise RuntimeError("loss is no number")
    if how == "segv":
        ctypes.string_at(16)
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
