"""A dataset of small records, held in one of many forms, read by two workers.

usage: records.py FORM METHOD [--passes N] [--persistent] [--megabytes M]

FORM is what holds the records: dicts, tuples, strings (lists of Python objects), mapping (a dict), objects (a NumPy array of
Python objects), numpy, blob (bytes and offsets): the last two hold no object per record. M is about how much memory they
take. What is true is written down without dptrace's help: to `pages` how many bytes of pages hold the reference count of an
object that is used, and by each forked worker to `copied.PID` what its smaps_rollup says at its end: all of its private
memory that is not new.
"""
import argparse
import mmap
import multiprocessing.util
import os

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

# Bytes that one record takes, about: CPython 3.8 to 3.14, 64 bits.
EACH = {"dicts": 330, "tuples": 180, "strings": 110, "mapping": 210, "objects": 110, "numpy": 64, "blob": 64}


def text(i):
    return "recordings/%012d/of-a-place-by-the-sea.flac" % i


class Records(Dataset):
    def __init__(self, form, n):
        self.form, self.n = form, n
        if form == "dicts":
            self.records = [{"file": text(i), "weight": i / 3} for i in range(n)]
        elif form == "tuples":
            self.records = [(text(i), i + 1000) for i in range(n)]
        elif form == "strings":
            self.records = [text(i) for i in range(n)]
        elif form == "mapping":
            self.records = {"%09d" % i: text(i) for i in range(n)}
        elif form == "objects":
            self.records = np.array([text(i) for i in range(n)], dtype=object)
        elif form == "numpy":
            self.records = np.zeros((n, 8))
        elif form == "blob":
            self.records = np.frombuffer(b"".join(text(i).encode().ljust(64) for i in range(n)), np.uint8)
            self.offsets = np.arange(0, 64 * n + 1, 64)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        if self.form == "mapping":
            record = self.records["%09d" % i]
        elif self.form == "blob":
            record = self.records[self.offsets[i]:self.offsets[i + 1]].tobytes()
        else:
            record = self.records[i]
        if self.form == "dicts":
            return len(record["file"]) + record["weight"]
        if self.form == "numpy":
            return float(record.sum())
        return float(len(record))


def pages(dataset):
    """Bytes of the pages with the reference counts that __getitem__ writes to, for all records."""
    if dataset.form in ("numpy", "blob"):
        return 0
    used = list(dataset.records.values() if dataset.form == "mapping" else dataset.records)
    if dataset.form == "dicts":
        used += [value for record in used for value in record.values()]
    return mmap.PAGESIZE * len({id(x) // mmap.PAGESIZE for x in used})


def rollup():
    sizes = {}
    with open("/proc/self/smaps_rollup") as f:
        for line in f:
            words = line.split()
            if words[-1] == "kB":
                sizes[words[0][:-1]] = 1024 * int(words[1])
    return sizes


class Truth:
    """worker_init_fn: writes down how much the worker has copied."""

    def __call__(self, worker):
        rollup()  # what reading it costs itself
        begin = rollup()

        def end():
            now = rollup()
            copied = now["Private_Dirty"] - begin["Private_Dirty"] - (now["Anonymous"] - begin["Anonymous"])
            with open("copied.%d" % os.getpid(), "w") as f:
                f.write(str(begin["Private_Dirty"] + copied))

        multiprocessing.util.Finalize(None, end, exitpriority=100)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("form", choices=sorted(EACH))
    parser.add_argument("method")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--megabytes", type=int, default=100)
    args = parser.parse_args()
    torch.set_num_threads(1)
    dataset = Records(args.form, args.megabytes * 1000000 // EACH[args.form])
    with open("pages", "w") as f:
        f.write(str(pages(dataset)))
    loader = DataLoader(dataset, batch_size=512, shuffle=True, num_workers=2, multiprocessing_context=args.method,
                        persistent_workers=args.persistent, worker_init_fn=Truth() if args.method == "fork" else None)
    for _ in range(args.passes):
        total = 0.0
        for batch in loader:
            total += float(batch.sum())
        print("%.0f" % total)


if __name__ == "__main__":
    main()
