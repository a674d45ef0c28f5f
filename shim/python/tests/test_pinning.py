"""What the pin step leaves as it is, told by the rule that torch goes by, without asking anything of the batches."""
import os
import unittest

from harness import OLD, HookTest

# An accelerator as far as a loader looks at it: what is "pinned" is a copy, marked in a set.
SIMULATED = """
import collections, dataclasses, types
torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.set_device = lambda device: None
if hasattr(torch, "accelerator"):
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda *a, **k: torch.device("cuda")
    torch.accelerator.current_device_index = lambda: 0
    torch.accelerator.set_device_index = lambda device: None

def pin(tensor, *device):
    return tensor.clone()
torch.Tensor.pin_memory = pin

class Numbers(Dataset):
    def __len__(self):
        return 12
    def __getitem__(self, i):
        return torch.full((100,), float(i))

@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    n: int = 3

@dataclasses.dataclass(frozen=True)
class Frozen:
    x: torch.Tensor
    boxes: list

class Plain:
    def __init__(self, x):
        self.x, self.more = x, {"y": x + 1}

class Slots:
    __slots__ = ("x", "unset")
    def __init__(self, x):
        self.x = x

class Pinning(Plain):
    def pin_memory(self):
        return self

class Asked:
    def __init__(self, x):
        self.__dict__["x"] = x
    def __getattr__(self, name):
        seen.add(name)
        raise AttributeError(name)

class Meta(type):
    def __getattribute__(cls, name):
        seen.add("Meta." + name)
        return type.__getattribute__(cls, name)
    def __eq__(cls, other):
        seen.add("Meta.==")
        return cls is other
    __hash__ = type.__hash__

class Watched(metaclass=Meta):
    def __init__(self, x):
        self.x = x
    @property
    def y(self):
        seen.add("property y")

class Own(Batch):
    def to(self, device):
        return self.x.pin_memory().to(device)

class Items(collections.abc.Sequence):
    def __init__(self, x):
        self.x = x
    def __len__(self):
        return 1
    def __getitem__(self, i):
        if i:
            raise IndexError(i)
        return self.x

Named = collections.namedtuple("Named", "x y")
seen = set()

def run(make, workers=0, flag=True, passes=1):
    loader = DataLoader(Numbers(), batch_size=3, num_workers=workers, pin_memory=flag, collate_fn=lambda s: make(torch.stack(s)))
    for epoch in range(passes):
        for batch in loader:
            pass
"""

NONE = {"reached": 0, "left": 0, "pinned": 0, "arrays": 0, "holder": "", "path": "", "fields": "", "made": "", "unsure": "", "pins": ""}
# A batch of a tensor x of 1200 bytes: what is told of it.
BATCHES = (
    ("x", "torch.Tensor", {"reached": 1, "reached_bytes": 1200}),
    ("{'a': x, 'b': [x, 'text']}", "builtins.dict", {"reached": 2, "reached_bytes": 2400}),
    ("Named(x, 1)", "__main__.Named", {"reached": 1}),
    ("collections.OrderedDict(a=x)", "collections.OrderedDict", {"reached": 1}),
    ("collections.UserDict(a=x)", "collections.UserDict", {"reached": 1}),
    ("collections.deque([x])", "collections.deque", {"reached": 1}),
    ("Pinning(x)", "__main__.Pinning", {"reached": 1}),
    ("Items(x)", "__main__.Items", {"unsure": "container"}),
    ("'text'", "builtins.str", {}),
    ("Batch(x)", "__main__.Batch", {"left": 1, "left_bytes": 1200, "largest_bytes": 1200, "holder": "__main__.Batch", "fields": "x", "made": "dataclass"}),
    ("Frozen(x, [x + 1, x[0] + 2])", "__main__.Frozen",
     {"left": 3, "left_bytes": 2800, "largest_bytes": 1200, "holder": "__main__.Frozen", "fields": "x,boxes[]", "made": "frozen"}),
    ("Plain(x)", "__main__.Plain", {"left": 2, "holder": "__main__.Plain", "fields": "x,more{}"}),
    ("Slots(x)", "__main__.Slots", {"left": 1, "holder": "__main__.Slots", "fields": "x"}),
    ("types.SimpleNamespace(x=x)", "types.SimpleNamespace", {"left": 1, "holder": "types.SimpleNamespace", "fields": "x"}),
    ("{x}", "builtins.set", {"left": 1, "holder": "builtins.set", "fields": "[0]"}),
    ("[Batch(x), Batch(x + 1)]", "builtins.list", {"left": 2, "left_bytes": 2400, "holder": "__main__.Batch", "path": "[0]", "fields": "x",
                                                      "made": "dataclass"}),
    ("{'a': x, 'b': Plain(x)}", "builtins.dict", {"reached": 1, "left": 2, "holder": "__main__.Plain", "path": "['b']", "fields": "x,more{}"}),
    ("Asked(x)", "__main__.Asked", {"left": 1, "holder": "__main__.Asked", "fields": "x", "unsure": "getattr"}),
    ("Watched(x)", "__main__.Watched", {"left": 1, "holder": "__main__.Watched", "fields": "x"}),
    ("x.numpy()", "numpy.ndarray", {"arrays": 1, "array_bytes": 1200, "largest_bytes": 1200, "holder": "numpy.ndarray"}),
    ("types.SimpleNamespace(model=torch.nn.Linear(9, 9))", "types.SimpleNamespace", {"left": 0}),
    ("Batch('no tensor')", "__main__.Batch", {"left": 0}),
)


class Pinning(HookTest):
    def looks(self, text, **options):
        for name in os.listdir(self.spool):
            os.unlink(os.path.join(self.spool, name))
        code, _, err = self.run_program(SIMULATED + text, **options)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return self.main_ring().of("pin")

    def test_batches(self):
        found = self.looks("del Own\n" + "\n".join("run(lambda x: %s)" % code for code, _, _ in BATCHES) + "\nprint(sorted(seen - {'pin_memory', '__class__'}))")
        self.assertEqual(len(found), 2 * len(BATCHES))
        for look, (code, cls, want) in zip(found[::2], BATCHES):
            if OLD and code.startswith(("collections.", "Items(")):  # it makes a list or a dict of these
                continue
            with self.subTest(code):
                want = dict(NONE, **dict(want, **{"class": cls}))
                self.assertEqual({k: getattr(look, k) for k in want}, want)

    def test_nothing_is_asked_of_a_batch(self):
        out = self.run_both(SIMULATED + "run(Asked)\nrun(Watched)\nprint(sorted(seen))")
        self.assertIn("pin_memory", out)  # by torch itself, which both runs show

    def test_how_often(self):
        for workers in (0, 2):
            for native in ("0", "1"):
                found = self.looks("run(Batch, %d, passes=3)" % workers, env={"DPTRACE_NATIVE": native})
                self.assertEqual([(f.pass_, f.batch) for f in found], [(0, 0), (0, 1), (1, 0), (2, 0)])

    def test_not_where_nothing_is_pinned(self):
        self.assertEqual(self.looks("run(Batch, flag=False)"), [])
        self.assertEqual(self.looks("torch.cuda.is_available = lambda: False\n"
                                    "if hasattr(torch, 'accelerator'): torch.accelerator.is_available = lambda: False\n"
                                    "run(Batch)", flags=("-W", "ignore")), [])

    def test_who_pins_itself(self):
        for text, pins in (
            ("run(Batch)", False),
            ("class args: pin_memory = True\n"
             "for b in DataLoader(Numbers(), batch_size=3, pin_memory=args.pin_memory, collate_fn=lambda s: Batch(torch.stack(s))): pass", False),
            ("def ahead(b):\n    b.x = b.x.pin_memory()\nrun(Batch)", True),
            ("def ahead(b):\n    return list(map(torch.Tensor.pin_memory, [b.x]))\nrun(Batch)", True),
            ("def ahead(b):\n    return getattr(b.x, 'pin_memory')()\nrun(Batch)", True),
            ("class Ahead:\n    def next(self, b):\n        b.x = b.x.pin_memory()\nrun(Batch)", True),
            ("for b in DataLoader(Numbers(), batch_size=3, pin_memory=True, collate_fn=lambda s: Batch(torch.stack(s))):\n"
             "    b.x = b.x.pin_memory()", True),
        ):
            with self.subTest(text):
                # The prelude's Own has a method that pins; it is another class's here.
                found = self.looks("del Own\n" + text)
                self.assertEqual({bool(f.pins) for f in found}, {pins}, [f.pins for f in found])
        self.assertTrue(all(f.pins for f in self.looks("run(Own)")))

    def test_another_function_pins(self):
        found = self.looks("import torch.utils.data._utils.pin_memory as m\nm.pin_memory = lambda data, device=None: data\nrun(Batch)")
        self.assertEqual({f.unsure for f in found}, {"replaced"})

    def test_a_batch_of_many_parts(self):
        found = self.looks("run(lambda x: [x] * 10000)")
        self.assertEqual({(f.unsure, f.left) for f in found}, {("", 0)})
        found = self.looks("run(lambda x: [[str(i)] for i in range(5000)] + [Batch(x)])")
        self.assertEqual({f.unsure for f in found}, {"large"})

    def test_an_error_of_ours(self):
        self.change("pinning", "def _pins(frame, classes):\n    raise RuntimeError")
        self.run_both(SIMULATED + "run(Batch)\nprint('ends')")


if __name__ == "__main__":
    unittest.main()
