"""Copies to a device that the program asks torch for: what is told of each, and that nobody can see that it is."""
import os
import sys
import unittest

from harness import HookTest, versions

# A device in Python: torch's own, of which each operation is ours. What is pinned is a copy whose address is in a set.
DEVICE = """
import os, sys, threading
import torch
import torch.utils.data
from torch.utils.data import DataLoader, Dataset
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
_setup_privateuseone_for_python_backend("npu")
lib = torch.library.Library("aten", "IMPL")
made, pins, kept = torch._C._acc.create_empty_tensor, set(), []

def implements(name, key="PrivateUse1"):
    return lambda f: lib.impl(name, f, key)

@implements("empty.memory_format")
def _(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return made(tuple(size), dtype or torch.get_default_dtype())

@implements("empty_strided")
def _(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return made(tuple(size), dtype or torch.get_default_dtype()).as_strided(size, stride)

@implements("as_strided")
def _(tensor, size, stride, offset=None):
    return made(tuple(size), tensor.dtype)

@implements("_copy_from")
def _(source, target, non_blocking=False):
    if source.device.type == "cpu":
        asked.append(non_blocking)
    return target

@implements("is_pinned", "CPU")
def _(tensor, device=None):
    questions.append(1)
    return tensor.data_ptr() in pins

@implements("_pin_memory", "CPU")
def _(tensor, device=None):
    copy = tensor.clone()
    pins.add(copy.data_ptr())
    kept.append(copy)
    return copy

asked, questions = [], []
KIB = 1024 // 4
big = torch.ones(100 * KIB)  # of 100 KiB
"""
SIMULATED = sys.version_info >= (3, 10) and (versions("torch") or (0,)) >= (2, 11)
MAIN, ASYNC, PINNED, PAGEABLE, CAST, STRIDED, CAPTURING, CUDA = [1 << n for n in range(8, 16)]
TO, OF_CUDA, COPY = range(3)
KIB100 = 102400

# What a program does; (bytes, function and what is added to it) of each copy that is told.
CALLS = (
    ("big.to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("big.to('npu', non_blocking=True)", [(KIB100, TO | MAIN | PAGEABLE | ASYNC)]),
    ("big.to('npu', torch.float32, True)", [(KIB100, TO | MAIN | PAGEABLE | ASYNC)]),
    ("big.to(device='npu', non_blocking=False, copy=True)", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("big.to(torch.empty(1, device='npu'), True)", [(KIB100, TO | MAIN | PAGEABLE | ASYNC)]),
    ("big.npu()", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("pin = big.pin_memory(); pin.to('npu', non_blocking=True)", [(KIB100, TO | MAIN | PINNED | ASYNC)]),
    ("pin = big.pin_memory(); pin.to('npu')", [(KIB100, TO | MAIN | PINNED)]),
    ("pin = big.pin_memory(); pin.to('npu', torch.float64)", [(2 * KIB100, TO | MAIN | PINNED | CAST)]),
    ("pin = big.pin_memory(); pin.to('npu', torch.float64, non_blocking=True)", [(KIB100, TO | MAIN | PINNED | CAST | ASYNC)]),
    ("pin = torch.ones(400, KIB).pin_memory(); pin[:, ::2].to('npu')", [(2 * KIB100, TO | MAIN | PINNED | STRIDED)]),
    ("torch.ones(400, KIB).t().to('npu')", [(4 * KIB100, TO | MAIN | PAGEABLE | STRIDED)]),  # to this device, which has no strides
    ("torch.empty(100 * KIB, device='npu').copy_(big)", [(KIB100, COPY | MAIN | PAGEABLE)]),
    ("torch.empty(100 * KIB, device='npu').copy_(other=big, non_blocking=True)", [(KIB100, COPY | MAIN | PAGEABLE | ASYNC)]),
    ("torch.empty(100, KIB, device='npu').copy_(torch.ones(KIB), True)", [(KIB100, COPY | MAIN | PAGEABLE | ASYNC | STRIDED)]),
    ("torch.nn.Linear(KIB, 100, bias=False).to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("{k: v.to('npu') for k, v in {'a': big, 'b': big[:10], 'c': big}.items()}", 2 * [(KIB100, TO | MAIN | PAGEABLE)]),
    ("with torch.no_grad(): torch.nn.Parameter(big).to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("with torch.inference_mode(): big.to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("torch.ones(100 * KIB, requires_grad=True).to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("with torch.device('cpu'): big.to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("t = threading.Thread(target=lambda: big.to('npu')); t.start(); t.join()", [(KIB100, TO | PAGEABLE)]),
    ("list(map(torch.Tensor.to, [big], ['npu']))", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("class Own(torch.Tensor): pass\nbig.as_subclass(Own).to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),
    ("class Own(torch.Tensor):\n  def to(self, *args): return super().to(*args)\nbig.as_subclass(Own).to('npu')", [(KIB100, TO | MAIN | PAGEABLE)]),

    # No copies, or none that can be told.
    ("big.to('cpu'); big.to('cpu', copy=True); big.to(torch.float16); big.clone().copy_(big)", []),
    ("big.to('meta'); torch.empty(100 * KIB, device='meta').copy_(big)", []),
    ("x = torch.empty(100 * KIB, device='npu'); x.to('npu'); x.copy_(x)", []),
    ("torch.empty(100 * KIB, device='npu').to('cpu')", []),
    ("torch.ones(16 * KIB).to('npu'); torch.ones(64 * KIB).to('npu'); torch.ones(0).to('npu')", []),
    ("from torch._subclasses.fake_tensor import FakeTensorMode\nwith FakeTensorMode(): torch.ones(100 * KIB).to('npu')", []),
    ("torch.func.vmap(lambda x: x.to(torch.float64))(torch.ones(10, 100 * KIB))", []),
    ("torch.func.functionalize(lambda x: x.to('cpu', copy=True))(big)", []),
    ("""
try:
    big.to('nowhere')
except RuntimeError:
    pass
try:
    big.to()
except (RuntimeError, TypeError):
    pass""", []),
)

# What a program can see of it: the same is printed with and without. Each of them has broken a wrapper of some kind.
SEEN = """
import copy, inspect, pickle, traceback, warnings
T, B = torch.Tensor, torch._C._TensorBase
for name in "to", "cuda", "copy_":
    f = getattr(T, name)
    print(name, name in vars(T), f is getattr(B, name), f is B.__dict__[name], f == getattr(T, name), type(f), repr(f), f.__name__, f.__qualname__,
          hash(f) == hash(getattr(B, name)), hasattr(f, "__wrapped__"), f.__objclass__, len(f.__doc__ or ""), f.__text_signature__,
          pickle.loads(pickle.dumps(f)) is f, copy.deepcopy(f) is f, sorted(set(dir(f))))
    try:
        print(inspect.signature(f))
    except ValueError as e:
        print(e)
print(torch.overrides.is_tensor_method_or_property(T.to), torch.overrides.resolve_name(T.to))

class Logged(torch.Tensor):
    handled = {B.to: "to", B.copy_: "copy_"}
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("function", func is T.to, func is T.copy_, cls.handled.get(func), func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})
big.as_subclass(Logged).to("npu").size()

class Functions(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("mode", func)
        return func(*args, **(kwargs or {}))
with Functions():
    big.to("npu")

from torch.utils._python_dispatch import TorchDispatchMode
class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print("dispatch", func)
        return func(*args, **(kwargs or {}))
with Operations():
    big.to("npu")

lazy = torch.nn.LazyLinear(3)
lazy.to("cpu").to(torch.float64)
lazy.weight.to(torch.float32)
print(lazy)

try:
    big.to("npu", "nonsense")
except TypeError as e:
    print("raised", [(f.name, f.line) for f in traceback.extract_tb(e.__traceback__)], str(e)[:60])

def deep(n):
    return deep(n - 1) if n else big.to("npu")
def deepest():
    n = 0
    while True:
        try:
            deep(n)
        except RecursionError:
            return n
        n += 1
print("levels", deepest())

def asks(x):
    return x.to("cpu", torch.float64).clone().copy_(x) + torch.Tensor.to(x, torch.float64)
print(torch.jit.trace(asks, torch.ones(3)).graph)
@torch.jit.script
def script(x: torch.Tensor):
    return x.to(torch.float64).copy_(x)
print(script.graph, script(torch.ones(3)))
print(torch.fx.symbolic_trace(lambda x: x.to("cpu", torch.float64).copy_(x)).graph)
print(torch.func.vmap(asks)(torch.ones(2, 3)), torch.func.grad(lambda x: asks(x).sum())(torch.ones(3)))
from torch.fx.experimental.proxy_tensor import make_fx
print(make_fx(asks)(torch.ones(3)).graph)
"""

COMPILED = """
import torch._dynamo as dynamo
from torch._dynamo.utils import counters
def step(x, dtype):
    y = x.to("npu")
    z = torch.Tensor.to(x, dtype)
    w = torch.empty_like(x).copy_(x)
    return y, z + w
def broken(x):
    y = x.to("npu", non_blocking=True)
    print("a break")
    return x.to("npu"), x.copy_(x)
for f, args in (step, (big, torch.float64)), (step, (big, torch.float16)), (broken, (big,)):
    dynamo.reset()
    explained = dynamo.explain(f)(*args)
    dynamo.reset()
    counters.clear()
    compiled = torch.compile(f, backend="eager")
    for _ in range(3):
        compiled(*args)
    print(f.__name__, explained.graph_count, explained.graph_break_count, explained.op_count,
          {k: dict(v) for k, v in sorted(counters.items()) if k in ("graph_break", "frames", "stats", "unimplemented")})
"""


@unittest.skipUnless(SIMULATED, "torch has no devices in Python before 2.11")
class Copies(HookTest):
    def setUp(self):
        super().setUp()
        self.session(spool=self.spool, copies=True)

    def run_program(self, text, **options):
        return super().run_program(text, **dict({"prelude": DEVICE}, **options))

    def told(self):
        self.assert_no_errors()
        return [r for ring in self.rings() for r in ring.of("copy")]

    def test_each_call(self):
        text = ["import gc"]
        for n, (code, _) in enumerate(CALLS):
            text += ["def case%d():" % n] + ["    " + line for line in code.replace("; ", "\n").split("\n")] if "lambda" not in code and "{" not in code \
                else ["def case%d():" % n] + ["    " + line for line in code.split("\n")]
            text += ["mark(%d)" % n, "case%d()" % n]
        text.insert(0, "sys.stdout.reconfigure(line_buffering=True)\ndef mark(n):\n    torch.empty(0)\n    print(n, time.monotonic_ns())\nimport time")
        code, out, err = self.run_program("\n".join(text))
        self.assertEqual(code, 0, err)
        begins = [int(line.split()[1]) for line in out.splitlines()] + [1 << 62]
        copies = self.told()
        for n, (code, want) in enumerate(CALLS):
            got = [(c.bytes, c.function) for c in copies if begins[n] <= c.t < begins[n + 1]]
            self.assertEqual(got, want, code)
        self.assertTrue(all(c.call_ns > 0 and c.source and c.site >> 31 for c in copies))

    def test_the_line(self):
        code, _, err = self.run_program('''
            def move(x):
                return x.to("npu")
            for _ in range(200):
                move(big)
            class Wrapped(torch.nn.Module):
                pass
        ''')
        self.assertEqual(code, 0, err)
        copies = self.told()
        self.assertEqual(len(copies), 200)
        sites = {s.site: s.frames for ring in self.rings() for s in ring.of("call_site")}
        self.assertEqual([[line.split("/")[-1] for line in f.split("\n")] for f in sites.values()],
                         [["main.py:%d move" % (DEVICE.count("\n") + 4), "main.py:%d <module>" % (DEVICE.count("\n") + 6)]])
        self.assertEqual(sum(c.site > 0 for c in copies), 64 + (200 - 64) // 16)

    def test_pinned_is_asked_once_for_each(self):
        code, out, err = self.run_program('''
            for _ in range(10):
                big.to("npu")
                big.to("npu").to("npu"), torch.ones(3).to("npu"), big.to(torch.float16)
            print(len(questions))
        ''')
        self.assertEqual((code, out), (0, "20\n"), err)
        self.assertEqual(len(self.told()), 20)

    def test_only_where_it_was_asked_for(self):
        self.session(spool=self.spool)
        code, out, err = self.run_program('''
            import ctypes
            print("big", big.to("npu").shape, len(questions), "dptrace_hook.read.crossing" in sys.modules)
        ''')
        self.assertEqual((code, out.split()[-2]), (0, "0"), err)
        self.assertEqual(self.told(), [])
        self.assertEqual([r.of("process")[0].copies for r in self.rings()], [""])

    def test_without_the_helper(self):
        code, _, err = self.run_program('big.to("npu")', env={"DPTRACE_NATIVE": "0"})
        self.assertEqual(code, 0, err)
        self.assertEqual(self.told(), [])
        self.assertEqual([r.of("process")[0].copies for r in self.rings()], ["DPTRACE_NATIVE=0"])

    def test_more_than_there_is_time_for(self):
        self.change("copies", "_FIRST_NS, _SHARE = 0, 10**9")
        code, _, err = self.run_program('''
            for _ in range(50):
                big.to("npu")
            from dptrace_hook.watch import steps
            for step in range(1, 4):
                steps.now.delivered = step
                for _ in range(3):
                    big.to("npu")
        ''')
        self.assertEqual(code, 0, err)
        copies = self.told()
        self.assertEqual([(c.bytes, c.skipped) for c in copies], 50 * [(KIB100, 0)] + [(0, 9)])

    def test_in_a_forked_child(self):
        code, _, err = self.run_program('''
            big.to("npu")
            pid = os.fork()
            if not pid:
                big.to("npu")
                os._exit(0)
            os.waitpid(pid, 0)
        ''')
        self.assertEqual(code, 0, err)
        self.assertEqual(sorted(len(ring.of("copy")) for ring in self.rings()), [1, 1])

    def test_in_a_loop_with_workers(self):
        out = self.run_both('''
            class Numbers(Dataset):
                def __len__(self):
                    return 24
                def __getitem__(self, i):
                    return torch.full((20 * KIB,), float(i)), {"label": torch.full((20 * KIB,), i)}
            if __name__ == "__main__":
                torch.manual_seed(1)
                model = torch.nn.Linear(3, 1)
                optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
                for workers in 0, 2:
                    for x, more in DataLoader(Numbers(), batch_size=4, num_workers=workers, shuffle=True):
                        x.to("npu", non_blocking=True), more["label"].to("npu")
                        optimizer.zero_grad()
                        model(x[:, :3]).pow(2).mean().backward()
                        optimizer.step()
                print("%.9f" % sum(p.sum().item() for p in model.parameters()), len(asked))
        ''')
        self.assertEqual(out.split()[1], "24")
        want = 12 * [(80 * 4 * 256 * 4 // 4, TO | MAIN | PAGEABLE | ASYNC), (80 * 4 * 256 * 8 // 4, TO | MAIN | PAGEABLE)]
        self.assertEqual([(c.bytes, c.function) for c in self.told()], want)

    def test_what_a_signal_handler_raises_reaches_the_program(self):
        code, out, err = self.run_program('''
            import signal
            class Enough(Exception):
                pass
            def handler(*_):
                raise Enough
            signal.signal(signal.SIGUSR1, handler)
            @implements("_copy_from")
            def _(source, target, non_blocking=False):
                os.kill(os.getpid(), signal.SIGUSR1)
                return target
            try:
                for _ in range(10):
                    big.to("npu")
                print("none")
            except Enough:
                print("raised")
        ''')
        self.assertEqual((code, out), (0, "raised\n"), err)
        self.assert_no_errors()

    def test_an_error_of_ours_stays_ours(self):
        self.change("crossing", '''
            def crossed(source, target, non_blocking):
                raise RuntimeError("ours")
        ''')
        code, out, err = self.run_program('''
            for _ in range(30):
                y = big.to("npu")
            print(y.device)
        ''')
        self.assertEqual((code, out), (0, "npu:0\n"), err)
        self.assertEqual([r.of("errors")[-1].disabled for r in self.rings()], [True])

    def test_nothing_is_to_be_seen(self):
        self.run_both(SEEN)

    def test_compilers_see_the_same(self):
        out = self.run_both(COMPILED)
        self.assertIn("'graph_break'", out)
        copies = self.told()
        self.assertTrue(copies)


class WithoutADevice(HookTest):
    """Any torch: a tensor counts as the device's where the program says so."""

    def test_methods_are_timed(self):
        self.session(spool=self.spool, copies=True)
        self.change("crossing", '''
            def capturing(torch):
                return False

            def place(tensor):
                main = sys.modules["__main__"].__dict__
                return "cuda" if id(tensor) in main["device"] or not id(tensor) in main["host"] else "cpu"

            def is_pinned(torch, tensor, cuda):
                return id(tensor) in sys.modules["__main__"].__dict__["pins"]
        ''')
        code, out, err = self.run_program('''
            big, pin, there = torch.ones(25600), torch.ones(25600), torch.ones(25600)
            host, device, pins = {id(big), id(pin)}, {id(there)}, {id(pin)}
            print(torch.Tensor.to is torch._C._TensorBase.to, "to" in vars(torch.Tensor))
            a = big.to("cpu", copy=True)
            b = pin.to("cpu", torch.float64, non_blocking=True)
            there.copy_(pin)
            for other in torch.ones(400, 256).t(), torch.ones(4, 64, 10, 20).contiguous(memory_format=torch.channels_last), torch.ones(400, 512)[:, ::2]:
                host.add(id(other))
                other.to("cpu", copy=True)
            big.to("cpu")
            try:
                big.to("nowhere")
            except RuntimeError as e:
                print("raised", e.__traceback__.tb_next is None)
            try:
                big.cuda()
            except Exception as e:
                print(e.__traceback__.tb_next is None or "torch" in e.__traceback__.tb_next.tb_frame.f_code.co_filename)
            print(torch.jit.trace(lambda x: x.to(torch.float64), torch.ones(2)).graph.__class__.__name__)
        ''')
        self.assertEqual((code, out.split()), (0, ["True", "False", "raised", "True", "True", "Graph"]), err)
        self.assert_no_errors()
        if os.environ.get("DPTRACE_NATIVE") == "0":
            return
        copies = [(c.bytes, c.function) for ring in self.rings() for c in ring.of("copy")]
        self.assertEqual(copies, [(KIB100, TO | MAIN | PAGEABLE | CUDA), (KIB100, TO | MAIN | ASYNC | CAST | PINNED | CUDA),
                                  (KIB100, COPY | MAIN | PINNED | CUDA), (4 * KIB100, TO | MAIN | PAGEABLE | CUDA),
                                  (2 * KIB100, TO | MAIN | PAGEABLE | CUDA), (4 * KIB100, TO | MAIN | PAGEABLE | STRIDED | CUDA)])


if __name__ == "__main__":
    unittest.main()
