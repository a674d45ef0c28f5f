"""Runs out of descriptors, or does not. What is raised is caught: the program ends well.

usage: descriptors.py kept|large|opened|copied|window
"""
import collections
import resource
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

HOW = sys.argv[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (300, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Samples(Dataset):
    def __len__(self):
        return 2400

    def __getitem__(self, i):
        if HOW == "opened":
            # Only here is none left: what is sent takes descriptors too, and has been sent when 25 more are opened.
            time.sleep(0.05)
            files.extend(open(__file__) for _ in range(25))
        return [torch.zeros(4)] * 500 if HOW == "large" else (torch.zeros(4), i)


def separate(samples):
    return [tensor.clone() for tensor in samples[0]]


files = []
kept = collections.deque(maxlen=30) if HOW == "window" else []
loader = DataLoader(Samples(), batch_size=4, num_workers=1, timeout=3 if HOW in ("large", "opened") else 0, collate_fn=separate if HOW == "large" else None)
try:
    for batch in loader:
        kept.append([x.clone() for x in batch] if HOW == "copied" else batch if HOW != "opened" else 0)
except (RuntimeError, OSError, EOFError) as error:
    print(type(error).__name__, str(error)[:200], file=sys.stderr)
    assert HOW not in ("copied", "window")
else:
    assert HOW in ("copied", "window")
