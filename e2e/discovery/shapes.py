"""Writes a training program whose datasets hide generators at random: attribute names, containers, nesting, packages.

usage: shapes.py SEED COUNT FOLDER    writes FOLDER/main.py, its packages and expected.json: [{"line", "name", "shape"}, ...]
"""
import json
import os
import random
import sys

GENERATORS = [  # (expression, how it is drawn from: 8 numbers)
    ("numpy.random.default_rng({seed})", "{g}.normal(size=8)"),
    ("numpy.random.Generator(numpy.random.Philox({seed}))", "{g}.random(8)"),
    ("numpy.random.RandomState({seed})", "{g}.uniform(size=8)"),
    ("random.Random({seed})", "numpy.array([{g}.random() for _ in range(8)])"),
    ("torch.Generator().manual_seed({seed})", "torch.rand(8, generator={g}).numpy()"),
    ("torch.quasirandom.SobolEngine(8, scramble=True, seed={seed})", "{g}.draw(1)[0].numpy()"),
]

# Callables that draw: {g} is the generator's expression, draw(x) draws from the expression x, {n} its name.
LEAVES = {
    "attribute": "class {c}:\n    def __init__(self):\n        self.{n} = {g}\n    def __call__(self, x):\n        return x + {d:self.{n}}\nmake = {c}",
    "slot": "class {c}:\n    __slots__ = ('{o}', '{n}')\n    def __init__(self):\n        self.{n} = {g}\n    def __call__(self, x):\n"
            "        return x + {d:self.{n}}\nmake = {c}",
    "private": "class {c}:\n    def __init__(self):\n        self.__{n} = {g}\n    def __call__(self, x):\n        return x + {d:self.__{n}}\nmake = {c}",
    "class attribute": "class {c}:\n    {n} = {g}\n    def __call__(self, x):\n        return x + {d:self.{n}}\nmake = {c}",
    "base class": "class {b}:\n    def __init__(self):\n        self.{n} = {g}\nclass {c}({b}):\n    def __call__(self, x):\n"
                  "        return x + {d:self.{n}}\nmake = {c}",
    "dictionary": "class {c}:\n    def __init__(self):\n        self.{o} = dict(level=3, {n}={g})\n    def __call__(self, x):\n"
                  "        return x + {d:self.{o}['{n}']}\nmake = {c}",
    "list": "class {c}:\n    def __init__(self):\n        self.{n} = [None, (0.5, {g})]\n    def __call__(self, x):\n"
            "        return x + {d:self.{n}[1][1]}\nmake = {c}",
    "object": "class {b}:\n    pass\nclass {c}:\n    def __init__(self):\n        self.{o} = {b}()\n        self.{o}.{n} = {g}\n"
              "    def __call__(self, x):\n        return x + {d:self.{o}.{n}}\nmake = {c}",
    "closure": "def make():\n    {n} = {g}\n    def {c}(x):\n        return x + {d:{n}}\n    return {c}",
    "default": "def {c}(x, {n}={g}):\n    return x + {d:{n}}\ndef make():\n    return {c}",
    "keyword": "def {c}(x, {n}):\n    return x + {d:{n}}\ndef make():\n    return functools.partial({c}, {n}={g})",
    "global": "{n} = {g}\ndef {c}(x):\n    return x + {d:{n}}\ndef make():\n    return {c}",
    "bound method": "class {c}:\n    def __init__(self):\n        self.{n} = {g}\n    def {o}(self, x):\n        return x + {d:self.{n}}\n"
                    "def make():\n    return {c}().{o}",
    "mangled slot of a base class": "class {b}:\n    __slots__ = ('__{n}',)\n    def __init__(self):\n        self.__{n} = {g}\n    @property\n"
                                    "    def {o}(self):\n        return self.__{n}\nclass {c}({b}):\n    __slots__ = ()\n    def __call__(self, x):\n"
                                    "        return x + {d:self.{o}}\nmake = {c}",
    "slots of a dataclass": "@dataclasses.dataclass\nclass {c}:\n    __slots__ = ('{n}',)\n    {n}: object\n    def __call__(self, x):\n"
                            "        return x + {d:self.{n}}\ndef make():\n    return {c}({g})",
    "cached factory": "@functools.lru_cache(maxsize=None)\ndef {n}():\n    return {g}\n{n}()\ndef {c}(x):\n    return x + {d:{n}()}\n"
                      "def make():\n    return {c}",
    "factory cached in the worker": "@functools.lru_cache(maxsize=4)\ndef {n}(key):\n    return {g}\ndef {c}(x):\n    return x + {d:{n}(1)}\n"
                                    "def make():\n    return {c}",
    "namespace": "{o} = types.SimpleNamespace({b}=types.SimpleNamespace({n}={g}))\ndef {c}(x):\n    return x + {d:{o}.{b}.{n}}\ndef make():\n"
                 "    return {c}",
    "member of an enumeration": "class {b}(enum.Enum):\n    {n} = {g}\ndef {c}(x):\n    return x + {d:{b}.{n}.value}\ndef make():\n    return {c}",
    "context variable": "{n} = contextvars.ContextVar('{o}')\n{n}.set({g})\ndef {c}(x):\n    return x + {d:{n}.get()}\ndef make():\n    return {c}",
    "thread-local": "{o} = threading.local()\n{o}.{n} = {g}\ndef {c}(x):\n    return x + {d:{o}.{n}}\ndef make():\n    return {c}",
    "thread-local of the worker": "{o} = threading.local()\ndef {c}(x):\n    if not hasattr({o}, '{n}'):\n        {o}.{n} = {g}\n"
                                  "    return x + {d:{o}.{n}}\ndef make():\n    return {c}",
    "array of objects": "class {c}:\n    def __init__(self):\n        self.{n} = numpy.array([{g}, None], dtype=object)\n    def __call__(self, x):\n"
                        "        return x + {d:self.{n}[0]}\nmake = {c}",
    "key": "class {c}:\n    def __init__(self):\n        self.{n} = {{{g}: 1.0}}\n    def __call__(self, x):\n        for {o} in self.{n}:\n"
           "            return x + {d:{o}}\nmake = {c}",
    "set": "class {c}:\n    def __init__(self):\n        self.{n} = {{{g}}}\n    def __call__(self, x):\n        for {o} in self.{n}:\n"
           "            return x + {d:{o}}\nmake = {c}",
    "mapping proxy": "class {c}:\n    def __init__(self):\n        self.{o} = types.MappingProxyType(dict({n}={g}))\n    def __call__(self, x):\n"
                     "        return x + {d:self.{o}['{n}']}\nmake = {c}",
    "deep": "class {c}:\n    def __init__(self):\n        self.{o} = [dict(a=([collections.deque([dict({n}=({g},))])],))]\n    def __call__(self, x):\n"
            "        return x + {d:self.{o}[0]['a'][0][0][0]['{n}'][0]}\nmake = {c}",
    "iterator": "class {c}:\n    def __init__(self):\n        self.{n} = itertools.cycle([{g}])\n    def __call__(self, x):\n"
                "        {o} = next(self.{n})\n        return x + {d:{o}}\nmake = {c}",
    # Nothing in the code names these: only the search of the whole process finds them.
    "named by a text": "{o} = dict({n}=[{g}])\ndef {c}(x):\n    return x + {d:globals()['{o}']['{n}'][0]}\ndef make():\n    return {c}",
    "in another package": "sys.modules['{o}'] = types.ModuleType('{o}')\nsys.modules['{o}'].{n} = {g}\ndef {c}(x):\n"
                          "    return x + {d:sys.modules['{o}'].{n}}\ndef make():\n    return {c}",
    "registry": "class {b}:\n    def __init__(self, r):\n        self.{n} = r\n{o} = {{}}\n{o}[('a', 1)] = {b}({g})\ndef {c}(x):\n"
                "    return x + {d:globals()['{o}'][('a', 1)].{n}}\ndef make():\n    return {c}",
}

# Callables around a callable f.
LAYERS = {
    "compose": "class {c}:\n    def __init__(self, f):\n        self.{n} = [abs, f]\n    def __call__(self, x):\n        for each in self.{n}:\n"
               "            x = each(x)\n        return x",
    "tuple": "class {c}:\n    def __init__(self, f):\n        self.{n} = (f,)\n    def __call__(self, x):\n        return self.{n}[0](x)",
    "table": "class {c}:\n    def __init__(self, f):\n        self.{n} = {{'{o}': f}}\n    def __call__(self, x):\n        return self.{n}['{o}'](x)",
    "slot": "class {c}:\n    __slots__ = ('{n}',)\n    def __init__(self, f):\n        self.{n} = f\n    def __call__(self, x):\n        return self.{n}(x)",
    "closure": "def {c}({n}):\n    def {o}(x):\n        return {n}(x)\n    return {o}",
    "lambda": "def {c}({n}):\n    return lambda x: {n}(x)",
    "partial": "def {o}({n}, x):\n    return {n}(x)\ndef {c}(f):\n    return functools.partial({o}, f)",
    "method": "class {b}:\n    def __init__(self, f):\n        self.{n} = f\n    def {o}(self, x):\n        return self.{n}(x)\n"
              "def {c}(f):\n    return {b}(f).{o}",
    "namespace": "class {c}:\n    def __init__(self, f):\n        self.{n} = types.SimpleNamespace({o}=f)\n    def __call__(self, x):\n"
                 "        return self.{n}.{o}(x)",
    "array of objects": "class {c}:\n    def __init__(self, f):\n        self.{n} = numpy.empty(1, dtype=object)\n        self.{n}[0] = f\n"
                        "    def __call__(self, x):\n        return self.{n}[0](x)",
    "cached": "def {c}(f):\n    @functools.lru_cache(maxsize=None)\n    def {o}():\n        return f\n    return lambda x: {o}()(x)",
}

DATASET = """class {c}(torch.utils.data.Dataset):
    def __init__(self, f):
        self.{n} = f
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return torch.from_numpy(self.{n}(numpy.full(8, i / 32.0))).float()"""

COLLATE = """class {c}(torch.utils.data.Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        return torch.full((8,), i / 32.0)
class {b}:
    def __init__(self, f):
        self.{n} = f
    def __call__(self, samples):
        return torch.stack([torch.from_numpy(self.{n}(s.numpy())).float() for s in samples])"""

OUTER = ["{d}", "{d}", "Subset({d}, list(range(32)))", "ConcatDataset([{d}])", "Subset(ConcatDataset([Subset({d}, range(32))]), range(32))"]
IMPORTS = "".join("import %s\n" % m for m in "collections contextvars dataclasses enum functools itertools random sys threading types".split()) \
    + "\nimport numpy\nimport numpy.random\nimport torch\nimport torch.utils.data\n\n\n"


class Words:
    """Names that nobody else uses."""

    def __init__(self, draw):
        self.draw, self.used = draw, set()

    def __call__(self, pattern="%s"):
        while True:
            word = "".join(self.draw.choice("bdfgklmnprstvz") + self.draw.choice("aeiou") for _ in range(self.draw.randint(2, 4)))
            if self.draw.random() < 0.3:
                word += "_" + self.draw.choice(["rng", "state", "gen", "r", "x2"])
            if word not in self.used:
                self.used.add(word)
                return pattern % word


def fill(text, generator, seed, **names):
    """Puts names in, then {g} (the generator made) and {d:EXPRESSION} (drawing from it)."""
    made, draws = generator
    while "{d:" in text:
        before, rest = text.split("{d:", 1)
        depth, end = 1, 0
        while depth:
            depth += {"{": 1, "}": -1}.get(rest[end], 0)
            end += 1
        text = before + draws.replace("{g}", rest[:end - 1]) + rest[end:]
    text = text.replace("{g}", made.replace("{seed}", str(seed)))
    for key, name in names.items():
        text = text.replace("{%s}" % key, name)
    return text.replace("{{", "{").replace("}}", "}")


def shape(draw, words, package, number):
    """One module and the expressions of its dataset and collate function."""
    generator, seed, leaf = draw.choice(GENERATORS), draw.randrange(10**6), draw.choice(sorted(LEAVES))
    name = words()
    code = [fill(LEAVES[leaf], generator, seed, n=name, o=words(), c=words().title(), b=words().title())]
    kinds, expression = [leaf], "make()"
    for _ in range(draw.randint(0, 4)):
        layer = draw.choice(sorted(LAYERS))
        cls = words().title()
        code.append(fill(LAYERS[layer], generator, seed, n=words(), o=words(), c=cls, b=words().title()))
        kinds.append(layer)
        expression = "%s(%s)" % (cls, expression)
    collate = draw.random() < 0.2
    dataset, collator = words().title(), words().title()
    code.append(fill(COLLATE if collate else DATASET, generator, seed, n=words(), c=dataset, b=collator))
    module = words()
    path = os.path.join(package, module + ".py")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        f.write(IMPORTS + "\n\n\n".join(code) + "\n\n\ndef build():\n    return " + expression + "\n")
    outer = draw.choice(OUTER)
    m = "m%d" % number
    data = outer.replace("{d}", "%s.%s(%s)" % (m, dataset, "" if collate else m + ".build()"))
    return module, "%s%s" % (data, ", collate_fn=%s.%s(%s.build())" % (m, collator, m) if collate else ""), name, \
        generator[0].split("(")[0] + " in " + " in ".join(kinds + ["collate_fn" if collate else outer.replace("{d}", "dataset")])


def main():
    seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    draw = random.Random(seed)
    words = Words(draw)
    packages = [words(), os.path.join(words(), words())]
    lines, expected, loaders = ["import torch", "from torch.utils.data import ConcatDataset, DataLoader, Subset", ""], [], []
    for number in range(count):
        package = draw.choice(packages)
        module, data, name, text = shape(draw, words, os.path.join(folder, package), number)
        lines.append("import %s.%s as m%d" % (package.replace(os.sep, "."), module, number))
        loaders.append((data, name, text))
    lines += ["", "", "def loaders():"]
    for data, name, text in loaders:
        lines.append("    yield DataLoader(%s, batch_size=4, num_workers=2, multiprocessing_context='fork')" % data)
        expected.append({"line": len(lines), "name": name, "shape": text})
    lines += ["", "", "torch.manual_seed(0)", "model = torch.nn.Linear(8, 1)", "optimizer = torch.optim.SGD(model.parameters(), lr=0.001)",
              "for number, loader in enumerate(loaders()):", "    for epoch in range(2):", "        for batch in loader:",
              "            loss = model(batch).pow(2).mean()", "            optimizer.zero_grad()", "            loss.backward()",
              "            optimizer.step()", "    print(number, '%.6f' % loss.item())"]
    with open(os.path.join(folder, "main.py"), "w") as f:
        f.write("\n".join(lines) + "\n")
    with open(os.path.join(folder, "expected.json"), "w") as f:
        json.dump(expected, f)


if __name__ == "__main__":
    main()
