"""No bug: an early break, an error in a fetch, an iterator that is alive when the interpreter ends, a worker that its
parent ends by SIGKILL, and SIGTERM to the whole group, which the main process handles."""
# fixture: tier kernel
import os
import signal
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        if index == 40:
            raise ValueError("sample 40 cannot be read")
        return torch.zeros(2)


def broken_off():
    for points in DataLoader(Points(), batch_size=4, num_workers=2):
        break


def an_error():
    try:
        for points in DataLoader(Points(), batch_size=4, num_workers=2):
            pass
    except ValueError:
        pass


def killed_by_its_parent():
    iterator = iter(DataLoader(Points(), batch_size=4, num_workers=2))
    next(iterator)
    os.kill(iterator._workers[1].pid, signal.SIGKILL)
    try:
        while True:
            next(iterator)
    except Exception:
        pass


def told_to_stop():
    """What a scheduler does to a job: SIGTERM to every process of it, by a process that is not of the training."""
    iterator = iter(DataLoader(Points(), batch_size=4, num_workers=2))
    next(iterator)
    signal.signal(signal.SIGTERM, lambda *_: None)
    scheduler = os.fork()
    if scheduler == 0:
        os.setpgid(0, 0)
        for pid in [os.getppid()] + [w.pid for w in iterator._workers]:
            os.kill(pid, signal.SIGTERM)
        os._exit(0)
    try:
        os.waitpid(scheduler, 0)
        while True:
            next(iterator)
    except Exception:
        pass


def left_alive():
    global iterator
    iterator = iter(DataLoader(Points(), batch_size=4, num_workers=2))
    next(iterator)


CASES = [broken_off, an_error, killed_by_its_parent, told_to_stop, left_alive]

if __name__ == "__main__":
    if len(sys.argv) > 1:
        {case.__name__: case for case in CASES}[sys.argv[1]]()
    for case in CASES[:len(CASES) * (len(sys.argv) == 1)]:  # apart: torch raises its errors wherever the main process is
        subprocess.run([sys.executable, __file__, case.__name__], stderr=subprocess.DEVNULL)
