"""Chains of transforms: found without asking them anything, timed where this Python can tell, and nobody notices."""
import os
import sys
import unittest

from harness import HookTest

CAN = sys.version_info >= (3, 12, 1) and "t" not in getattr(sys, "abiflags", "")

# Each place draws, so that one call more or less shows in the sum that is printed.
CHAIN = """
class Place:
    def __init__(self, sleep=0.0):
        self.sleep = sleep
    def __call__(self, x):
        import time
        time.sleep(self.sleep)
        return x + random.random()

class Load(Place):
    def __call__(self, x):
        return Place.__call__(self, torch.rand(4))

class Crop(Place):
    def __call__(self, x):
        return x * 2

class Scale(torch.nn.Module):
    def forward(self, x):
        return x * torch.rand(1)

class Compose:
    def __init__(self, transforms):
        self.transforms = transforms
    def __call__(self, x):
        for t in self.transforms:
            x = t(x)
        return x

class Images(Dataset):
    def __init__(self, transform, n=24):
        self.transform, self.n = transform, n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        return self.transform(torch.ones(4))

def workers(how):
    return {} if how == "none" else {"num_workers": 2, "multiprocessing_context": how}

def run(dataset, how="none", **options):
    torch.manual_seed(1); random.seed(1); np.random.seed(1)
    options.update(workers(how))
    fit(DataLoader(dataset, batch_size=4, **options), 1)
"""


class Chains(HookTest):
    def setUp(self):
        super().setUp()
        self.session(digest="full")  # every second fetch is looked at

    def told(self, program, **options):
        """({path: transform}, [(path -> (calls, ns)) of each fetch that was looked at])"""
        for name in os.listdir(self.spool):
            os.unlink(os.path.join(self.spool, name))
        self.run_both(CHAIN + program, **options)
        self.assert_no_errors()
        named, timed = {}, []
        for ring in self.rings():
            here = {t.transform: t for t in ring.of("transform")}
            named.update({t.path: t for t in here.values()})
            timed += [{here[n].path: each for n, each in s.spent.items()} for s in ring.of("split")]
        return named, timed

    def names(self, named):
        return [(p, getattr(t, "class").rpartition(".")[2], t.place) for p, t in sorted(named.items())]

    def test_places_by_name_and_line_and_time(self):
        for how in ("none", "fork", "spawn"):
            for native in ("0", "1") if how == "none" else ("1",):
                named, timed = self.told("""
if __name__ == "__main__":
    run(Images(Compose([Load(), Crop(0.0), Load(0.004), Scale()])), %r)
""" % how, env={"DPTRACE_NATIVE": native})
                at = "dataset.transform.transforms[%d]"
                self.assertEqual(self.names(named), [("dataset.transform", "Compose", -1), (at % 0, "Load", 0), (at % 1, "Crop", 1),
                                                     (at % 2, "Load", 2), (at % 3, "Scale", 3)])
                place = named[at % 1]
                with open(os.path.join(self.work, "main.py")) as f:
                    lines = f.read().split("\n")
                self.assertEqual((os.path.basename(place.file), lines[place.line - 2]), ("main.py", "class Crop(Place):"))
                self.assertEqual(place.why, "" if CAN else "Python %d.%d" % sys.version_info[:2])
                self.assertEqual(len(timed), 3 if how == "none" else 2)
                for each in timed:
                    self.assertEqual({path: calls for path, (calls, _) in each.items()}, dict.fromkeys(named, 4) if CAN else {})
                    if CAN:  # a sleep is never shorter than that; the others' times are inside of the chain's
                        self.assertGreaterEqual(each[at % 2][1], 4 * 4e6 * 0.99)
                        self.assertGreaterEqual(each["dataset.transform"][1], sum(ns for path, (_, ns) in each.items() if "[" in path) - 1e5)

    def test_sequential_and_chains_in_chains(self):
        named, timed = self.told("""
run(Images(torch.nn.Sequential(Scale(), torch.nn.Sequential(Scale(), Scale()), torch.nn.Identity())))
""")
        self.assertEqual([p for p in sorted(named) if named[p].place < 0], ["dataset.transform", "dataset.transform._modules['1']"])
        self.assertEqual(named["dataset.transform"].why, "" if CAN else "Python %d.%d" % sys.version_info[:2])
        for each in timed:
            self.assertEqual({path: calls for path, (calls, _) in each.items()}, dict.fromkeys(named, 4) if CAN else {})

    def test_what_cannot_be_told_apart(self):
        """Calls of the same code by somebody else, chains that skip places or mix them, threads: no time is given to anybody."""
        for program, want in (
            ("""
class Two(Images):
    def __getitem__(self, i):
        return self.transform(torch.ones(4)) + self.other(torch.ones(4))
d = Two(Compose([Load(), Crop()]))
d.other = Compose([Load(0.0), Crop()])
run(d)
""", {}),
            ("""
class Some(Compose):
    def __call__(self, x):
        for t in self.transforms[1:]:
            x = t(x)
        return x
run(Images(Some([Load(), Crop(), Scale()])))
""", {}),
            ("""
class Turned(Compose):
    def __call__(self, x):
        for t in reversed(self.transforms):
            x = t(x)
        return x
run(Images(Turned([Load(), Crop(), Scale()])))
""", {}),
            ("""
class Threaded(Images):
    def __getitem__(self, i):
        out = []
        t = threading.Thread(target=lambda: out.append(self.transform(torch.ones(4))))
        t.start(); t.join()
        return out[0]
run(Threaded(Compose([Load(), Crop()])))
""", {}),
            ("""
class Also(Images):
    def __getitem__(self, i):
        x = self.transform.transforms[0](torch.ones(4))
        return self.transform(self.transform.transforms[1](x))
run(Also(Compose([Load(), Crop()])))
""", {"dataset.transform": 4, "dataset.transform.transforms[0]": 4, "dataset.transform.transforms[1]": 4}),
            ("""
class Retried(Images):
    def __getitem__(self, i):
        while True:
            try:
                return self.transform(torch.ones(4))
            except KeyError:
                pass
class Fails(Place):
    n = 0
    def __call__(self, x):
        Fails.n += 1
        if Fails.n % 3:
            raise KeyError(1)
        return x
run(Retried(Compose([Load(), Fails(), Crop()])))
""", {"dataset.transform": 4, "dataset.transform.transforms[0]": 4, "dataset.transform.transforms[1]": 4, "dataset.transform.transforms[2]": 4}),
            ("""
import functools
def twice(f):
    @functools.wraps(f)
    def wrapper(self, x):
        return f(self, x)
    return wrapper
class Wrapped(Place):
    @twice
    def __call__(self, x):
        return x + 1
run(Images(Compose([Load(), Wrapped(), torch.abs, lambda x: x + random.random()])))
""", {"dataset.transform": 4, "dataset.transform.transforms[0]": 4, "dataset.transform.transforms[3]": 4}),
        ):
            _, timed = self.told(program)
            for each in timed:
                self.assertEqual({path: calls for path, (calls, _) in each.items()}, want if CAN else {}, program)

    def test_nothing_is_asked_of_them(self):
        """Objects whose attributes, length, truth, equality or class may not be asked for."""
        self.told("""
class Meta(type):
    def __getattribute__(cls, name):
        if name not in ("__mro__", "__class__", "__dict__"):
            raise SystemExit("the class was asked for " + name)
        return type.__getattribute__(cls, name)

class Shy:
    def __init__(self):
        object.__setattr__(self, "hidden", 1)
    def __getattribute__(self, name):
        if name != "__class__":
            raise SystemExit("asked for " + name)
        return object.__getattribute__(self, name)
    def __eq__(self, other):
        raise SystemExit("compared")
    __hash__ = None
    def __len__(self):
        raise SystemExit("measured")
    def __bool__(self):
        raise SystemExit("tested")
    def __call__(self, x):
        return x + 1

class Lists(list):
    def __iter__(self):
        if sys._getframe(1).f_code.co_name != "__call__":
            raise SystemExit("iterated")
        return list.__iter__(self)

class Held(Compose):
    pass

d = Images(Compose([Load(), Shy(), Crop()]))
d.shy, d.more, d.cls = Shy(), Held(Lists([Shy()])), Meta("Odd", (), {})
run(d)
""")

    def test_the_programs_own_tools(self):
        """Debuggers, tracers and profilers of the program's, before and within a fetch, see what they would see."""
        for start in ("sys.setprofile(seen)", "sys.settrace(seen)", "tool()"):
            for where in ("outside", "inside"):
                out = self.run_both(CHAIN + """
calls = []
def seen(frame, event, arg):
    if event == "call" and frame.f_code.co_filename == __file__ and frame.f_code.co_name in ("__call__", "forward"):
        calls.append(frame.f_code.co_name)
    return None

def tool():
    m = getattr(sys, "monitoring", None)
    if m is None:
        return
    for i in range(6):
        if m.get_tool(i) is None:
            m.use_tool_id(i, "mine")
            m.register_callback(i, m.events.PY_START, lambda code, at: calls.append(code.co_name) if code.co_name in ("__call__", "forward")
                                and code.co_filename == __file__ else None)
            m.set_events(i, m.events.PY_START)
            return

class Traced(Images):
    def __getitem__(self, i):
        if i == 5 and %r == "inside":
            %s
        return super().__getitem__(i)

if %r == "outside":
    %s
run(Traced(Compose([Load(), Crop(), Scale()]), 16))
sys.settrace(None); sys.setprofile(None)
print(len(calls), getattr(sys, "monitoring", None) and [sys.monitoring.get_tool(i) for i in range(6) if sys.monitoring.get_tool(i) != "mine"])
""" % (where, start, where, start))
                self.assertNotIn("dptrace", out)

    def test_frames_tracebacks_warnings_and_recursion(self):
        out = self.run_both(CHAIN + """
import traceback, warnings, inspect

class Looks(Place):
    def __call__(self, x):
        names = [f.function for f in inspect.stack()]
        print(names[:names.index("__getitem__") + 1])
        warnings.warn("look", stacklevel=2)
        print(sys.getprofile(), sys.gettrace())
        return x

class Deep(Place):
    def __call__(self, x, n=0):
        try:
            return self.down(x, n)
        except RecursionError:
            return x
    def down(self, x, n):
        return x if n == 200 else self(x, n + 1)

class Boom(Place):
    def __call__(self, x):
        raise ValueError("boom")

warnings.simplefilter("always")
warnings.showwarning = lambda message, category, filename, line, *rest: print(str(message), filename == __file__, line)
run(Images(Compose([Load(), Looks(), Deep()]), 16))
for chain in (Compose([Load(), Boom()]), Compose([Boom(), Load()])):
    batches = iter(DataLoader(Images(chain, 16), batch_size=4))
    for _ in range(3):
        try:
            next(batches)
        except ValueError:
            print("".join(line for line in traceback.format_exc().splitlines(True) if "__call__" in line or "Boom" in line or "main.py" in line))
""")
        self.assertIn("boom", out + "boom")

    def test_a_fault_of_ours(self):
        """Errors in what looks, at each of its places: the program does not notice, and no tool is left behind."""
        with open(self.module("chains")) as f:
            text = f.read()
        for place in ("def find(dataset):", "def begin(self):", "def enter(self, frame, code):", "def leave(self, call, ns):",
                      "def start(watched, codes):", "def end(self):"):
            head, mark, rest = text.partition(place)
            self.assertTrue(mark, place)
            begin = rest.index('"""') + 3 if '"""' in rest[:120] else 0
            end = rest.index('"""', begin) + 4 if begin else rest.index("\n") + 1
            indent = "    " if "(self" not in place else "        "
            with open(self.module("chains"), "w") as f:
                f.write(head + mark + rest[:end] + indent + "raise RuntimeError('ours')\n" + rest[end:])
            out = self.run_both(CHAIN + """
run(Images(Compose([Load(), Crop(), Scale()])))
print([sys.monitoring.get_tool(i) for i in range(6)] if hasattr(sys, "monitoring") else 0)
""")
            self.assertNotIn("dptrace", out)
            if CAN or place == "def find(dataset):":
                self.assertTrue(any(r.of("errors") for r in self.rings()), place)
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))

    @unittest.skipUnless(CAN, "nothing is watched on this Python")
    def test_nothing_is_left_behind(self):
        """After a fetch, in a process forked within one, and of a fetch that is never finished."""
        out = self.run_both(CHAIN + """
def tools():
    return [sys.monitoring.get_tool(i) for i in range(6)]

class Forks(Place):
    def __call__(self, x):
        r, w = os.pipe()
        pid = os.fork()
        if not pid:
            os.write(w, repr(tools()).encode())
            os._exit(0)
        os.waitpid(pid, 0)
        said = os.read(r, 1000).decode()
        os.close(r); os.close(w)
        seen.append(said)
        return x

seen = []
run(Images(Compose([Load(), Forks()]), 16))
print(tools(), set(seen))
batches = iter(DataLoader(Images(Compose([Load(), Crop()])), batch_size=4))
next(batches); next(batches)
print(tools())
del batches
""")
        self.assertNotIn("dptrace", out)
