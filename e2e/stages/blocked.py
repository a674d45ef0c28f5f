"""Fetches that are blocked in a way that the command line names, for a time that they measure themselves: python blocked.py WAY FOLDER [GROUP].

Each worker writes what it has waited into FOLDER: by the clock, less what it has run and what the scheduler let it wait for a processor. GROUP is a control
group in which a disk is slow.
"""
import mmap
import os
import socket
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

WAY, FOLDER, GROUP = (sys.argv[1:] + [None])[:3]
SAMPLES, BYTES = 96, 256 << 10


def awake():
    with open("/proc/thread-self/schedstat", "rb", buffering=0) as f:
        return sum(map(int, f.read().split()[:2]))


def path(i):
    return os.path.join(FOLDER, "%d.bin" % i)


def disk(i):
    fd = os.open(path(i), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.read(fd, BYTES)
    os.close(fd)


def mapped(i):
    fd = os.open(path(i), os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as m:
        for at in range(0, BYTES, 4096):
            m[at]
    os.close(fd)


def sleep(i):
    time.sleep(0.02)


def pipe(i):
    """Of somebody who answers late: a server of objects."""
    a, b = socket.socketpair()
    threading.Timer(0.02, a.send, (b"x",)).start()
    b.recv(1)
    a.close()
    b.close()


def lock(i):
    done = threading.Event()
    threading.Timer(0.02, done.set).start()
    done.wait()


def child(i):
    pid = os.fork()
    if not pid:
        time.sleep(0.02)
        os._exit(0)
    os.waitpid(pid, 0)


class Waits(Dataset):
    spent = 0

    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        end = time.thread_time() + 0.004
        before, t = awake(), time.monotonic_ns()
        globals()[WAY](i)
        self.spent += time.monotonic_ns() - t - (awake() - before)
        with open(os.path.join(FOLDER, "spent.%d" % os.getpid()), "w") as f:
            f.write(str(self.spent))
        while time.thread_time() < end:
            pass
        return torch.full((16,), float(i))


def main():
    if WAY in ("disk", "mapped"):
        for i in range(SAMPLES):
            with open(path(i), "wb") as f:
                f.write(os.urandom(BYTES))
                f.flush()
                os.fsync(f.fileno())
        with open(os.path.join(GROUP, "cgroup.procs"), "w") as f:
            f.write("0")
    model = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for epoch in range(2):
        for x in DataLoader(Waits(), batch_size=4, num_workers=2):
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
