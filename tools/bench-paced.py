"""What the recorder is watched beside: a loader with so many workers that gives so many batches a second for so long.

usage: bench-paced.py WORKERS BATCHES_A_SECOND SECONDS; 0 batches a second: the workers are there and wait.
Prints the lines "ready" and "done" around that time.
"""
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 1 << 40

    def __getitem__(self, i):
        return torch.tensor([float(i)])


def main():
    workers, rate, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    torch.set_num_threads(1)
    batches = iter(DataLoader(Numbers(), batch_size=32, num_workers=workers, multiprocessing_context="fork"))
    for _ in range(2 * workers):
        next(batches)
    print("ready", flush=True)
    start = time.monotonic()
    for n in range(int(rate * seconds)):
        next(batches)
        time.sleep(max(0.0, start + (n + 1) / rate - time.monotonic()))
    time.sleep(max(0.0, start + seconds - time.monotonic()))
    print("done", flush=True)


if __name__ == "__main__":
    main()
