"""What the code of a fetch reads, and of which object."""
import unittest

from harness import HookTest

# A dataset, and what is read of it: the names that must be, must not be, and of which nobody knows.
PRELUDE = """
import functools, logging, types
from torch.utils.data import IterableDataset, Subset, ConcatDataset, get_worker_info
LEVEL, MODE = 1, "fast"
LOG = logging.getLogger("test")

class Clock:
    def __init__(self):
        self.t, self.margin = [1], 3
    @property
    def epoch(self):
        return self.t[0]

class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.by, self.name = 2, "scale"
    def forward(self, x):
        return x * self.by

class Bare(Dataset):
    a = b = c = 1
    def __init__(self):
        self.epoch, self.clock, self.p, self.q, self.r = 0, Clock(), 1, 2, 3
        self.cfg, self.ns, self.steps = {"x": 1, "y": 2}, types.SimpleNamespace(x=1, y=2), [Scale(), functools.partial(add, by=3)]
    def __len__(self):
        return 8
    def parent(self):
        return self.r

def add(x, by):
    return x + by

def ahead_of(x, y):
    return x + y

def ahead(data):
    return data.p + LEVEL
"""

# name: body of __getitem__, read, not read, not known
CASES = {
    "another object's attribute of the same name": ("return self.clock.epoch", "clock.t", "epoch clock.margin", ""),
    "its own": ("return self.epoch", "epoch", "p q clock.t", ""),
    "by a local name": ("me = self\n        clock = me.clock\n        return clock.margin", "clock.margin", "epoch", ""),
    "a module's function": ("return functools.reduce(ahead_of, [0, self.p], self.q)", "p q", "r", ""),
    "a module's class": ("f = functools.partial(add, by=self.q)\n        return f(self.p)", "p q", "r", ""),
    "a function and a global": ("return ahead(self)", "p __main__.LEVEL", "q", ""),
    "a function inside": ("def inner():\n            return self.p\n        return inner()", "p", "q", ""),
    "a lambda, a comprehension": ("f = lambda: self.q\n        return [f() + self.p for _ in range(2)]", "p q", "r", ""),
    "transforms in a list": ("x = torch.ones(2)\n        for step in self.steps:\n            x = step(x)\n        return x",
                             "steps[0].by steps[1].keywords['by']", "steps[0].name", ""),
    "one of them": ("return self.steps[0](torch.ones(2))", "steps[0].by", "steps[1].keywords['by']", ""),
    "entries": ("return self.cfg['x'] + self.cfg.get('z', 0)", "cfg['x']", "cfg['y']", ""),
    "all entries": ("return add(1, sum(self.cfg.values()))", "cfg['x'] cfg['y']", "p", ""),
    "a namespace": ("ns = self.ns\n        return ns.x", "ns.x", "ns.y", ""),
    "by a constant name": ("return getattr(self, 'p', 1) + self.__dict__['q']", "p q", "r", ""),
    "by any name": ("return getattr(self, 'pqr'[i % 3])", "", "clock.margin", "p q r"),
    "in a message": ("LOG.info('%d %s', self.p, f'{self.q}')\n        return i", "", "p q r", ""),
    "in an error": ("if i < 0:\n            raise IndexError(f'{i} of {self.p}')\n        assert i < 9, self.q\n        return i", "", "p q", ""),
    "a message by way of a variable": ("text = 'at %d' % self.p\n        print(text) if i > 99 else None\n        return i", "", "p", ""),
    "printed and used": ("LOG.info(self.p)\n        return self.p", "p", "q", ""),
    "only set": ("self.p = i\n        self.q += 1\n        return self.r", "r", "p q", ""),
    "a method of the class above": ("return super().parent() + self.parent()", "r", "p", ""),
    "a class attribute": ("return self.a + type(self).c", "__main__.Bare.a __main__.Bare.c", "__main__.Bare.b", ""),
    "by its class": ("return self.__class__.a + Bare.b", "__main__.Bare.a __main__.Bare.b", "__main__.Bare.c", ""),
    "in a branch that workers never take": ("info = get_worker_info()\n        if info is None:\n            return self.p\n        return self.q",
                                            "q", "p", ""),
    "in a branch that is switched off": ("return self.p if MODE == 'slow' else self.q", "q", "p", ""),
    "in a branch of a value": ("return self.p if i else self.q", "p q", "r", ""),
    "in a branch of a value that the worker sets": ("on, self.on = getattr(self, 'r') > 2, True\n        self.r = 1\n"
                                                    "        return self.p if not on else self.q", "p q", "", ""),
    "in a handler": ("try:\n            return float(self.r)\n        except ValueError:\n            return self.p\n        finally:\n"
                     "            self.last = self.q", "p r q", "cfg['x']", ""),
    "in a loop": ("n = 0\n        while n < self.p:\n            n += self.q\n        return n", "p q", "r", ""),
    "under with": ("with torch.no_grad():\n            x = self.p\n        return x", "p", "q", ""),
    "a library's function": ("return torch.full((2,), float(self.p)) + torch.tensor([self.q])", "p q", "r", ""),
    "a callback": ("return sum(map(self.of, range(2)))\n    def of(self, i):\n        return self.p", "p", "q", ""),
    "a list that a loop fills": ("found = []\n        for step in self.steps:\n            found.append(step)\n"
                                 "        return found[0](i)", "steps[0].by", "steps[0].name", ""),
    "a dictionary that is made": ("d = {'a': self.clock, 'b': [c for c in (self.clock,)]}\n        return d['a'].margin", "clock.margin", "p", ""),
    "unpacked": ("a, b = self.p, self.q\n        return max(a, *[b])", "p q", "r", ""),
    "by keyword": ("return add(**self.cfg) if i > 99 else add(x=self.p, by=self.q)", "p q cfg['x'] cfg['y']", "r", ""),
    "the dataset of the worker": ("return get_worker_info().dataset.p", "p", "q", ""),
    "an object that nobody knows": ("return self.find(i).p\n    def find(self, i):\n        return LOOKUP[i]", "", "q", "p"),
}


class Reads(HookTest):
    def test_cases(self):
        program = [PRELUDE, "LOOKUP = {}\nfrom dptrace_hook.read import held, reads\nimport torch.utils.data._utils.collate as c\n"]
        for n, (body, *_) in enumerate(CASES.values()):
            program.append("class Data%d(Bare):\n    def __getitem__(self, i):\n        %s\n" % (n, body))
        program.append("""
for n in range(%d):
    data = globals()["Data%%d" %% n]()
    walk = held.Walk()
    walk.run([("dataset", data)])
    code = reads.Reads(data, c.default_collate)
    found = {p.path: code.read(id(p.holder), p.name) for p in walk.places}
    print(repr((found, code.cut)))
""" % len(CASES))
        code, out, err = self.run_program("".join(program))
        self.assertEqual(code, 0, err)
        for (name, (_, yes, no, unknown)), line in zip(CASES.items(), out.splitlines()):
            found, cut = eval(line)
            self.assertFalse(cut)
            for wanted, paths in (("yes", yes), ("no", no), ("", unknown)):
                for path in paths.split():
                    where = path if path.startswith("__main__") else "dataset." + path
                    with self.subTest(name + ": " + path):
                        self.assertEqual(found[where], wanted)

    def test_streams(self):
        code, out, err = self.run_program(PRELUDE + """
from dptrace_hook.read import held, reads
import torch.utils.data._utils.collate as c
class Source:
    def __init__(self):
        self.seed, self.other = 1, 2
    def __iter__(self):
        yield from range(self.seed)
class Stream(IterableDataset):
    def __init__(self):
        self.source, self.epoch, self.shards, self.unused = Source(), 0, [1, 2], 3
    def __iter__(self):
        def rows():
            for x in self.source:
                yield x + self.epoch
        return rows()
class Itself(IterableDataset):
    def __init__(self):
        self.n = self.m = 0
    def __iter__(self):
        return self
    def __next__(self):
        return self.n
for data in Stream(), Itself(), ConcatDataset([Subset(Bare(), [1])]):
    walk = held.Walk()
    walk.run([("dataset", data)])
    code = reads.Reads(data, c.default_collate)
    print(sorted(p.path for p in walk.places if code.read(id(p.holder), p.name) == "yes"))
""")
        self.assertEqual(code, 0, err)
        streams = [eval(line) for line in out.splitlines()]
        self.assertEqual(streams[0], ["dataset.epoch", "dataset.source", "dataset.source.seed"])
        self.assertEqual(streams[1], ["dataset.n"])
        self.assertIn("dataset.datasets", streams[2])
        self.assertIn("dataset.datasets[0].indices", streams[2])

    def test_generators_that_are_made_anew(self):
        """In each call; what a cache or an instance keeps is made once."""
        code, out, err = self.run_program(PRELUDE + """
import random
import numpy as np
from dptrace_hook.read import anew
SEED = 5
LATE = types.SimpleNamespace(rng=None)
def noise():
    return np.random.default_rng(SEED)
@functools.lru_cache(maxsize=None)
def kept():
    return np.random.default_rng(6)
class Kept(Bare):
    by_class = None
    @functools.cached_property
    def rng(self):
        return random.Random(7)
    @functools.lru_cache(maxsize=1)
    def stream(self):
        return noise()
    def __getitem__(self, i):
        if LATE.rng is None:
            LATE.rng = np.random.default_rng(8)
        if "a" not in self.cfg:
            self.cfg["a"] = random.Random(10)
        if not hasattr(self, "late"):
            self.late = random.Random(11)
        self.cfg.setdefault("b", random.Random(12))
        for name in "cd":
            if name in self.cfg:
                continue
            self.cfg[name] = random.Random(14)
        self.first()
        if self.by_class is None:
            self.by_class = random.Random(17)
        try:
            self.tried
        except AttributeError:
            self.tried = random.Random(15)
        return kept().random() + self.rng.random() + self.stream().random() + np.random.default_rng(i).random()
    def first(self):
        if self.made is not None:
            return self.made
        self.set_made()
    def set_made(self):
        self.made = random.Random(16)
class Anew(Bare):
    def __getitem__(self, i):
        if i % 2:
            i = i + 1
        self.steps.append(random.Random(20))
        for name in "ab":
            self.cfg[name] = random.Random(21)
        try:
            LATE.rng = random.Random(22)
        except AttributeError:
            return 0
        with torch.no_grad():
            self.each()
        local = types.SimpleNamespace(rng=random.Random(9))
        local.rng = random.Random(13)
        return noise().random() + random.Random(9).random() + kept().random() + local.rng.random()
    def each(self):
        if SEED:
            self.made = random.Random(23)
for data in Kept(), Anew():
    print(sorted(anew.Anew(data, torch.utils.data.dataloader.default_collate).seeds))
""")
        self.assertEqual((code, out), (0, "[]\n['Random(13)', 'Random(20)', 'Random(21)', 'Random(22)', 'Random(23)', 'Random(9)', 'default_rng(5)']\n"), err)


if __name__ == "__main__":
    unittest.main()
