"""Workers that the program itself ends: a watchdog gives up a pass whose reader is stuck, and a new one begins."""
# e2e watchdog
#   check: worker-killed clean
# e2e helper
#   check: worker-killed clean
# e2e terminate
#   check: worker-killed clean
import multiprocessing
import os
import signal
import sys
import threading
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 0.5
way = sys.argv[1]


class Mirror(Dataset):
    """Pages from a mirror, one of which is not answered the first time."""

    def __init__(self, tried):
        self.tried = tried

    def __len__(self):
        return 60

    def __getitem__(self, page):
        if page == 29:
            with self.tried.get_lock():
                self.tried.value += 1
                first = self.tried.value == 1
            if first:
                time.sleep(600)
        return torch.tensor([page / 60, 1.0])


def end(pids, how, delay):
    time.sleep(delay)
    for pid in pids:
        os.kill(pid, how)


def main():
    torch.manual_seed(4)
    tried = multiprocessing.Value("i", 0)
    loader = DataLoader(Mirror(tried), batch_size=6, num_workers=2, multiprocessing_context="fork")
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    batches = iter(loader)
    try:
        for _ in range(4):
            step(next(batches))
        stuck = [w.pid for w in batches._workers]
        if way == "watchdog":
            threading.Thread(target=end, args=(stuck, signal.SIGKILL, 0.3), daemon=True).start()
        elif way == "helper":
            multiprocessing.get_context("fork").Process(target=end, args=(stuck, signal.SIGKILL, 0.3), daemon=True).start()
        else:
            for worker in batches._workers:
                worker.terminate()
        while True:
            step(next(batches))
    except (RuntimeError, EOFError, ConnectionError):  # what a worker's end raises is chance, also in a plain run
        print("given up")
    except StopIteration:
        print("nothing was stuck")
    del batches
    done = 0
    for x in loader:
        step(x)
        done += 1
    print("batches", done)


if __name__ == "__main__":
    main()
