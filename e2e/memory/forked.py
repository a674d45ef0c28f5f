"""Two processes of the program's own read the same records, or each a shard of them.

usage: forked.py HOW

HOW: dicts: as arguments of start_processes, which the parent holds; module: as a global variable, by a Process with a run() of its
own; columns: in NumPy arrays; handed: by a Process each, whose parent lets go of them; reused: the same, and the parent
fills what it had with other records; ends: the parent is a process that has ended before they have; idle: nobody reads them.
"""
import multiprocessing
import os
import sys
import time

import numpy as np
import torch.multiprocessing
from torch.utils.data import DataLoader, Dataset

fork = multiprocessing.get_context("fork")
N = 320_000
TABLE = []
BOTH = fork.Barrier(2)  # so that both are there at one time, with what they have copied


def records(of, n=N):
    return [{"file": "%s/%012d.flac" % (of, i), "weight": i / 3} for i in range(n)]


class Records(Dataset):
    def __init__(self, how):
        if how == "columns":
            self.files, self.weights = np.array(["a/%012d.flac" % i for i in range(N)]), np.arange(N) / 3
        else:
            self.files, self.records = None, records("a")

    def __len__(self):
        return N // 40

    def __getitem__(self, i):
        some = slice(40 * i, 40 * i + 40)
        if self.files is not None:
            return sum(map(len, self.files[some])) + self.weights[some].sum()
        return sum(len(r["file"]) + r["weight"] for r in self.records[some])


def read(index, dataset):
    total = 0.0
    for batch in DataLoader(dataset, batch_size=100):
        total += float(batch.sum())
    print("%.0f" % total, flush=True)
    BOTH.wait()


def add(rows):
    print("%.0f" % sum(len(r["file"]) + r["weight"] for r in rows), flush=True)


def nothing(rows):
    print(len(rows), flush=True)


class Adder(fork.Process):
    def run(self):
        add(TABLE)
        BOTH.wait()


def finish(processes):
    for p in processes:
        p.join()


def handed():
    """One after the other, each with records that nobody else has."""
    for k in range(2):
        finish([started(add, "handed/%d" % k)])


def started(target, of):
    process = fork.Process(target=target, args=(records(of),))
    process.start()
    return process


def waits(rows):
    time.sleep(1.5)  # until the parent has let go, and has made others
    add(rows)


def reused():
    """The lists lie where others lay that a process still reads."""
    rows = records("first")
    process = fork.Process(target=waits, args=(rows,))
    process.start()
    rows.clear()
    rows.extend(records("other"))
    process.join()
    print(len(rows))


def ends():
    """Its children live on, and hold alone what it had."""
    rows = records("orphan")
    process = fork.Process(target=waits, args=(rows,))
    process.start()
    os._exit(0)


def main(how):
    torch.set_num_threads(1)
    if how in ("dicts", "columns"):
        torch.multiprocessing.start_processes(read, args=(Records(how),), nprocs=2, start_method="fork")
    elif how == "module":
        TABLE.extend(records("table"))
        adders = [Adder() for _ in range(2)]
        for p in adders:
            p.start()
        finish(adders)
    elif how == "idle":
        rows = records("idle")
        idle = [fork.Process(target=nothing, args=(rows,)) for _ in range(2)]
        for p in idle:
            p.start()
        finish(idle)
    elif how == "ends":
        between = fork.Process(target=ends)
        between.start()
        between.join()
        time.sleep(4)
    else:
        {"handed": handed, "reused": reused}[how]()


if __name__ == "__main__":
    main(sys.argv[1])
