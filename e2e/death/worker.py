"""A loader with two workers, one of which ends in some way after its third batch.

usage: worker.py HOW    kill, term: another process sends it SIGKILL or SIGTERM; segv; bus: a mapped file was cut; exit:
os._exit(3); raise: an exception; break: the loop ends early; interrupt: SIGINT to all, as Ctrl-C does; all: everybody is
killed at once; pool, executor: the children are of a pool that is terminated; none
"""
import ctypes
import mmap
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

import torch
from torch.utils.data import DataLoader, Dataset

HOW = sys.argv[1]
BATCH = 4
FATAL = 6 * BATCH + 1  # in batch 6: the fourth of worker 0


def cut_file():
    with tempfile.NamedTemporaryFile(dir=".", prefix="samples-") as f:
        f.truncate(3 * mmap.PAGESIZE)
        view = mmap.mmap(f.fileno(), 3 * mmap.PAGESIZE)
        f.truncate(mmap.PAGESIZE)
        return view[2 * mmap.PAGESIZE]


class Samples(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        if i == FATAL:
            if HOW == "segv":
                ctypes.string_at(16)
            elif HOW == "bus":
                cut_file()
            elif HOW == "exit":
                os._exit(3)
            elif HOW == "raise":
                raise ValueError("sample %d is broken" % i)
        time.sleep(0.002)
        return torch.ones(3) * i


def square(x):
    return x * x


def send(name, *pids):
    """From another process, which is nobody's parent."""
    subprocess.Popen(["/bin/sh", "-c", "kill -%s %s" % (name, " ".join(map(str, pids)))], start_new_session=True).wait()


def deliver():
    loader = DataLoader(Samples(), batch_size=BATCH, num_workers=2)
    iterator = iter(loader)
    workers = [w.pid for w in iterator._workers]
    for n, batch in enumerate(iterator):
        if n != 5:
            continue
        if HOW == "kill" or HOW == "term":
            send(HOW.upper(), workers[1])
        elif HOW == "interrupt":
            os.killpg(0, signal.SIGINT)
        elif HOW == "all":
            send("KILL", *workers, os.getpid())
        elif HOW == "break":
            break
    print("through", n)


def pool():
    import multiprocessing
    children = multiprocessing.Pool(2)
    print(sum(children.map(square, range(100))))
    children.terminate()
    children.join()


def executor():
    import concurrent.futures
    children = concurrent.futures.ProcessPoolExecutor(2)
    print(sum(children.map(square, range(100))))
    for p in list(children._processes.values()):
        p.terminate()
    children.shutdown(wait=True)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    {"pool": pool, "executor": executor}.get(HOW, deliver)()
