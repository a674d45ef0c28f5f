"""Runs a program with the hook in front of it, or without, and reads what the hook wrote."""
import functools
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

import rings
from rings import layouts

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # shim/python

# A program's usual beginning: torch, a dataset that draws from all it can reach, and a loop that trains.
PRELUDE = """
import random, sys, threading, os
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset

# DataLoader waits 5 s for a worker that it has asked to end, and then kills it: a busy machine's may need longer.
torch.utils.data._utils.MP_STATUS_CHECK_INTERVAL = 100

class Noise(Dataset):
    def __init__(self, n=24):
        self.n, self.rng = n, np.random.default_rng(3)
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        return torch.rand(4) + random.random() + torch.from_numpy(self.rng.normal(size=4)) + torch.from_numpy(np.random.uniform(size=4))

def fit(loader, epochs=2):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        for batch in loader:
            optimizer.zero_grad()
            model(batch.float()).pow(2).mean().backward()
            optimizer.step()
        print("epoch", epoch, "%.9f" % sum(p.sum().item() for p in model.parameters()), flush=True)
"""


@functools.lru_cache(maxsize=None)
def versions(module):
    out = subprocess.run([sys.executable, "-W", "ignore", "-c", "import %s as m; print(m.__version__)" % module],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return tuple(int(p) for p in out.stdout.decode().split("+")[0].split(".")[:2] if p.isdigit()) if out.returncode == 0 else None


OLD = (versions("torch") or (9,)) < (1, 9)


class HookTest(unittest.TestCase):
    ring = 1 << 20

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="dptrace-hook-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.hook, self.spool, self.work = (os.path.join(self.folder, n) for n in ("hook", "spool", "work"))
        os.mkdir(self.spool)
        os.mkdir(self.work)
        os.mkdir(self.hook)
        shutil.copy(os.path.join(PYTHON, "sitecustomize.py"), self.hook)
        shutil.copytree(os.path.join(PYTHON, "dptrace_hook"), os.path.join(self.hook, "dptrace_hook"),
                        ignore=shutil.ignore_patterns("__pycache__"))
        self.session(spool=self.spool)

    def session(self, **more):
        facts = {"spool": self.spool, "ring": self.ring, "rings": 64, "version": 1}
        facts.update(more)
        with open(os.path.join(self.hook, "session.json"), "w") as f:
            json.dump(facts, f)

    def module(self, name):
        """The file of a module of the hook; its layer is needed only where two have one of the name."""
        found = glob.glob(os.path.join(self.hook, "dptrace_hook", name if "/" in name else os.path.join("*", name)) + ".py")
        self.assertEqual(len(found), 1, "modules called " + name)
        return found[0]

    def change(self, module, text):
        """Appends to a module of the hook."""
        with open(self.module(module), "a") as f:
            f.write("\n\n" + textwrap.dedent(text))

    def write(self, name, text):
        path = os.path.join(self.work, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(textwrap.dedent(text))
        return path

    def run_program(self, text, hooked=True, flags=(), path=(), env=None, prelude=PRELUDE, limit=600, before=None):
        """(exit code, stdout, stderr) of a program; path: folders for PYTHONPATH after the hook's. limit: seconds after which
        a program hangs, however busy the machine is; it judges nothing."""
        main = self.write("main.py", prelude + "\n" + textwrap.dedent(text))
        environment = dict(os.environ, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", **(env or {}))
        old = environment.get("PYTHONPATH", "").split(os.pathsep) if environment.get("PYTHONPATH") else []
        environment["PYTHONPATH"] = os.pathsep.join([self.hook] * hooked + list(path) + old)
        if not environment["PYTHONPATH"]:
            del environment["PYTHONPATH"]
        # torch 1.8 hangs at exit now and then, in ~Engine() waiting for a thread that is no more: also without the hook.
        for last in [False, False, True] if OLD else [True]:
            try:
                p = subprocess.run([sys.executable] + list(flags) + [main], cwd=self.work, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=limit if last else limit / 10, preexec_fn=before)
                return p.returncode, p.stdout.decode(), p.stderr.decode()
            except subprocess.TimeoutExpired:
                if last:
                    raise
                for name in os.listdir(self.work):
                    if name.startswith("states."):
                        os.unlink(os.path.join(self.work, name))
                for name in os.listdir(self.spool):
                    os.unlink(os.path.join(self.spool, name))

    def run_both(self, text, **options):
        """Runs plain and hooked, which must agree; returns the hooked one's stdout."""
        plain, hooked = self.run_program(text, hooked=False, **options), self.run_program(text, **options)
        self.assertEqual(plain[0], 0, plain[2])
        self.assertEqual(hooked[:2], plain[:2], hooked[2])
        return hooked[1]

    def rings(self):
        return rings.read(self.spool)

    def main_ring(self):
        """The ring of the process that made the loaders."""
        found = [r for r in self.rings() if r.of("loader")]
        self.assertEqual(len(found), 1)
        return found[0]

    def assert_no_errors(self):
        for ring in self.rings():
            self.assertEqual([vars(r) for r in ring.of("errors")], [])
            self.assertEqual(ring.flags & (layouts.FLAG_UNREAD | layouts.FLAG_ERRORS), 0, "the hook gave up")
            self.assertEqual(ring.dropped, 0)
