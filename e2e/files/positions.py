"""Reads records of a file in workers. Which ones, and how many went wrong, is printed: who reads which is left to chance.

usage: positions.py seek|main|closed|threadlock|own|pread|lock|queue
"""
import multiprocessing
import os
import sys
import threading
import time

import torch
from torch.utils.data import DataLoader, Dataset

HOW = sys.argv[1]
SIZE, RECORDS = 512, 160


class Nothing:
    def __enter__(self):
        pass

    def __exit__(self, *raised):
        pass


class Records(Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None if HOW == "own" else open(path, "rb", buffering=0)
        self.lock = {"threadlock": threading.Lock, "lock": multiprocessing.Lock}.get(HOW, Nothing)()

    def __len__(self):
        return RECORDS

    def __getitem__(self, i):
        if self.file is None:
            self.file = open(self.path, "rb", buffering=0)
        if HOW == "pread":
            data = os.pread(self.file.fileno(), SIZE, i * SIZE)
        elif HOW == "queue":
            data = self.file.read(SIZE)
            time.sleep(0.001)
        else:
            with self.lock:
                self.file.seek(i * SIZE)
                time.sleep(0.001)  # a disk that has to find it
                data = self.file.read(SIZE)
        return torch.tensor([i, data[0] if data else 0])


with open("records.bin", "wb") as f:
    for i in range(RECORDS):
        f.write(bytes([i]) * SIZE)
records = Records("records.bin")
wrong = 0
for batch in DataLoader(records, batch_size=4, num_workers=1 if HOW == "main" else 2):
    if HOW == "closed":
        records.file.close()
    if HOW == "main":
        records[RECORDS - 1]
    wrong += int((batch[:, 0] != batch[:, 1]).sum())
print(wrong, "of", RECORDS, "are of another record", file=sys.stderr)
if HOW in ("own", "pread", "lock"):
    assert wrong == 0
