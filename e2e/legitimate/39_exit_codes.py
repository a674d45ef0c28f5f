"""Drivers that read how their trainings end, and act on it: a code is an answer, a crash is tried again with less."""
# e2e answer
#   check: swallowed-crash found
# e2e process
#   run: often
#   check: swallowed-crash found
# e2e smaller
#   check: swallowed-crash found
# e2e polled
#   check: swallowed-crash found
# e2e raised
#   check: swallowed-crash found
import multiprocessing
import os
import subprocess
import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONVERGED, OUT_OF_TIME = 40, 41


def train(size, end):
    torch.manual_seed(2)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(4):
        for (x,) in DataLoader(TensorDataset(torch.rand(60, 3)), batch_size=size, shuffle=True):
            if end == "memory" and size > 12:
                raise MemoryError("%d rows of a batch" % size)
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
        if end == "converged" and loss.item() < 0.5:
            sys.exit(CONVERGED)
        if end == "hard":
            os._exit(OUT_OF_TIME)  # threads of a library would keep it alive


def itself(*arguments):
    return [sys.executable, sys.argv[0], "train"] + [str(a) for a in arguments]


def main(way):
    if way == "train":
        train(int(sys.argv[2]), sys.argv[3])
    elif way == "answer":
        code = subprocess.run(itself(12, "converged")).returncode
        print({0: "all epochs", CONVERGED: "converged"}[code])
    elif way == "process":
        trial = multiprocessing.get_context("spawn").Process(target=train, args=(12, "hard"))
        trial.start()
        trial.join()
        print("next one" if trial.exitcode == OUT_OF_TIME else "well")
    elif way == "smaller":
        size = 48
        while subprocess.call(itself(size, "memory"), stderr=subprocess.DEVNULL) != 0:
            size //= 2
            print("again with batches of", size)
    elif way == "polled":
        child = subprocess.Popen(itself(12, "hard"))
        while child.poll() is None:
            time.sleep(0.05)
        print("ended with", child.returncode)
    elif way == "raised":
        try:
            subprocess.run(itself(48, "memory"), stderr=subprocess.DEVNULL, check=True)
        except subprocess.CalledProcessError as error:
            print("left out of the table, code", error.returncode)


if __name__ == "__main__":
    main(sys.argv[1])
