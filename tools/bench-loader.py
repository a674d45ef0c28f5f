"""The loaders that tools/bench measures: tiny, small, decode, or generations. Prints one JSON line about itself.

CPU seconds are those of this process and its workers, without the imports: of a first loader, of ten batches, in which
a recording takes its first looks, and of the passes after it.
"""
import json
import resource
import sys
import time
import zlib

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Tiny(Dataset):
    """Eight floats, jittered from a generator of its own: the loader's machinery is all the work."""

    def __init__(self, n):
        self.x, self.rng = torch.rand(n, 8), np.random.default_rng(1)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i] + self.rng.random()


class Small(Tiny):
    """The same with a little work for each sample: two workers give 20,000 to 25,000 a second on the machine that this was set on."""

    def __getitem__(self, i):
        x = self.x[i]
        for _ in range(STEPS):
            x = x + self.rng.random()
        return x


class Decode(Dataset):
    """A compressed 384 x 384 image per sample: inflate, to float, shrink, crop, normalise; 5 to 10 ms."""

    def __init__(self, n):
        y, x = np.mgrid[0:384, 0:384]
        image = (np.sin(x / 40.0)[..., None] * np.cos(y / 50.0)[..., None] * [90, 80, 70] + 128 + np.random.default_rng(2).normal(0, 4, (384, 384, 3)))
        self.n, self.file, self.rng = n, zlib.compress(image.astype(np.uint8).tobytes(), 6), np.random.default_rng(3)

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        image = np.frombuffer(zlib.decompress(self.file), np.uint8).reshape(384, 384, 3).astype(np.float32)
        image = image.reshape(192, 2, 192, 2, 3).mean((1, 3))
        top, left = self.rng.integers(0, 32, 2)
        image = (image[top:top + 160, left:left + 160] / 255.0 - 0.45) / 0.225
        return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


STEPS = 12


def cpu():
    return sum(u.ru_utime + u.ru_stime for u in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


def main():
    kind, passes, samples = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    options = {"tiny": {"batch_size": 32, "num_workers": 2}, "small": {"batch_size": 32, "num_workers": 2}, "decode": {"batch_size": 16, "num_workers": 2},
               "generations": {"batch_size": 1, "num_workers": 1}}[kind]
    make = {"decode": Decode, "small": Small}.get(kind, Tiny)
    first, loader = [DataLoader(make(n), multiprocessing_context="fork", **options) for n in (10 * options["batch_size"], samples)]
    c0 = cpu()
    for batch in first:
        pass
    t0, start, batches = time.monotonic(), cpu(), 0
    for _ in range(passes):
        for batch in loader:
            batches += 1
    seconds = time.monotonic() - t0
    print(json.dumps({"batches": batches, "samples_per_s": passes * samples / seconds, "start_cpu_s": start - c0, "cpu_s": cpu() - start,
                      "seconds": seconds}))


if __name__ == "__main__":
    main()
