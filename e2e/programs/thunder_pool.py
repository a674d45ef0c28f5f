"""Thunder for a detector of storms is made in processes beside the training: all forked, all with the state of the parent."""
# e2e pool
#   expect: rng-duplicate-workers likely pool processes np.random
# e2e executor
#   expect: rng-duplicate-workers likely pool processes np.random
# e2e reseeded
#   check: rng-duplicate-workers clean
# e2e processes
#   expect: rng-duplicate-workers likely processes np.random
# e2e seeded
#   check: rng-duplicate-workers clean
import multiprocessing
import os
import random
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from engine import WIDTH

way = sys.argv[1]
context = multiprocessing.get_context("fork")


def clap(number):
    """One thunderclap, in one of the processes."""
    time.sleep(0.02)  # so that each of them gets some to do
    if way == "reseeded":  # Python seeds its own generator anew in a forked process
        return [random.gauss(0, 1) * 0.9 ** k for k in range(WIDTH)]
    return (np.random.normal(size=WIDTH) * 0.9 ** np.arange(WIDTH)).tolist()


def claps(first, queue):
    queue.put([clap(first + k) for k in range(12)])


def own_seed():
    np.random.seed(int.from_bytes(os.urandom(4), "little"))


def storm():
    if way in ("executor", "reseeded"):
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            return list(pool.map(clap, range(24)))
    if way == "processes":
        queue = context.Queue()
        processes = [context.Process(target=claps, args=(12 * k, queue)) for k in range(2)]
        for process in processes:
            process.start()
        found = [queue.get() for _ in processes]
        for process in processes:
            process.join()
        return sum(found, [])
    with context.Pool(2, initializer=own_seed if way == "seeded" else None) as pool:
        return pool.map(clap, range(24), chunksize=3)


if __name__ == "__main__":
    np.random.seed(5)
    random.seed(5)
    torch.manual_seed(5)
    thunder = torch.tensor(storm())
    print("claps", tuple(thunder.shape))
    model = torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for (batch,) in DataLoader(TensorDataset(thunder), batch_size=8, shuffle=True):
        optimizer.zero_grad()
        model(batch).pow(2).mean().backward()
        optimizer.step()
