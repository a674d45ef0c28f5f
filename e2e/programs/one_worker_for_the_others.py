"""A worker that delivers nothing and works nevertheless: it unpacks the archive for the others."""
# e2e memory
#   expect: idle-workers likely Worker 0 delivers nothing
# e2e files
#   expect: idle-workers likely Worker 0 delivers nothing
# e2e queue
#   expect: idle-workers likely Worker 0 delivers nothing
import multiprocessing
import os
import sys
import tempfile
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

WAY = sys.argv[1] if len(sys.argv) > 1 else ""
FRAMES, OTHERS = 96, 2


def unpack(i):
    return np.random.RandomState(i).rand(6).astype(np.float32)


class Archive(IterableDataset):
    def __init__(self, folder):
        self.folder = folder
        self.frames = torch.zeros(FRAMES, 6).share_memory_()
        self.there = torch.zeros(FRAMES, dtype=torch.uint8).share_memory_()
        if WAY == "queue":
            self.queues = [multiprocessing.Queue() for _ in range(OTHERS)]  # one for each: which frames it gets is no race

    def file(self, i):
        return os.path.join(self.folder, "%03d.npy" % i)

    def produce(self):
        for i in range(FRAMES):
            if WAY == "memory":
                self.frames[i] = torch.from_numpy(unpack(i))
                self.there[i] = 1
            elif WAY == "files":
                np.save(self.file(i) + ".part.npy", unpack(i))
                os.rename(self.file(i) + ".part.npy", self.file(i))
            else:
                self.queues[i % OTHERS].put(unpack(i))

    def frame(self, i):
        if WAY == "memory":
            while not self.there[i]:
                time.sleep(0.001)
            return self.frames[i].clone()
        if WAY == "files":
            while not os.path.exists(self.file(i)):
                time.sleep(0.001)
            return torch.from_numpy(np.load(self.file(i)))
        return torch.from_numpy(self.queues[i % OTHERS].get())

    def __iter__(self):
        info = get_worker_info()
        if info.id == 0:
            self.produce()
            return
        for i in range(info.id - 1, FRAMES, OTHERS):
            yield self.frame(i)


def main():
    torch.manual_seed(4)
    model = torch.nn.Linear(6, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        for x in DataLoader(Archive(folder), batch_size=8, num_workers=1 + OTHERS):
            optimizer.zero_grad()
            loss = model(x).pow(2).mean()
            loss.backward()
            optimizer.step()
    print("loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
