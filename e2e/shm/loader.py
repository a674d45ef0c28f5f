"""A loader whose batches are 1 MB as uint8 and 4 MB as float32, where /dev/shm has 16 MB: five of them are there at once.

usage: loader.py DTYPE [fills | slow | caches | keeps] [--workers N] [--prefetch N] [--sharing S]
  fills: the loop stands still after its first batch, and the workers get ahead of it
  slow: the workers never do
  caches: the dataset would like to keep a file of 64 MB in /dev/shm, and does without
  keeps: the loop keeps all batches
"""
import argparse
import os
import sys
import time

import numpy
import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, dtype, how):
        self.dtype, self.how, self.cached = dtype, how, None

    def __len__(self):
        return 64

    def __getitem__(self, index):
        if self.how == "slow":
            time.sleep(0.05)
        if self.how == "caches" and self.cached is None:
            self.cached = cached()
        return numpy.zeros((4, 256, 256), self.dtype)


def cached():
    path = "/dev/shm/cache-%d" % os.getpid()
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.posix_fallocate(file, 0, 64 << 20)
        return True
    except OSError:
        return False
    finally:
        os.unlink(path)
        os.close(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("dtype")
    parser.add_argument("how")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--prefetch", type=int, default=2)
    parser.add_argument("--sharing")
    args = parser.parse_args()
    if args.sharing:
        torch.multiprocessing.set_sharing_strategy(args.sharing)
    loader = DataLoader(Images(args.dtype, args.how), batch_size=4, num_workers=args.workers, prefetch_factor=args.prefetch)
    kept = []
    for number, images in enumerate(loader):
        if args.how == "fills" and number == 0:
            time.sleep(1.5)
        if args.how == "keeps":
            kept.append(images)
    print("done", file=sys.stderr)
