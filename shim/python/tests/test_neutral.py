"""What a program may do, and find, as if the hook were not there: each of these once broke under it, or showed it."""
import unittest

from harness import PRELUDE, HookTest, versions
from twins import NATIVE


class Descriptors(HookTest):
    def test_one_that_closes_all_of_them(self):
        """As daemons do. The numbers are the program's from then on: in the process that closed them, and in its workers."""
        self.run_both("""
            class Files(Noise):
                def __init__(self, files):
                    super().__init__()
                    self.files = files
                def __getitem__(self, i):
                    for f in self.files:
                        assert os.fstat(f).st_ino == os.stat(__file__).st_ino and os.pread(f, 3, 0)
                    return super().__getitem__(i)
            if __name__ == "__main__":
                os.closerange(3, 4096)
                files = [os.open(__file__, os.O_RDONLY) for _ in range(12)]
                for workers in (0, 2, 2):
                    torch.manual_seed(1); random.seed(1); np.random.seed(1)
                    fit(DataLoader(Files(files), batch_size=4, num_workers=workers, multiprocessing_context="fork" if workers else None), 1)
            """)
        self.assert_no_errors()
        self.assertEqual(len([r for r in self.rings() if r.of("fetch")]), 5)

    def test_of_a_child_that_is_no_worker(self):
        """What the child lets go of is its parent's ring."""
        self.run_both("""
            if __name__ == "__main__":
                os.closerange(3, 4096)
                files = [os.open(__file__, os.O_RDONLY) for _ in range(12)]
                list(DataLoader(Noise(), batch_size=4))
                for generation in range(3):
                    child = os.fork()
                    if child:
                        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if hasattr(os, "waitstatus_to_exitcode")
                                 else os.waitpid(child, 0)[1] >> 8)
                    torch.manual_seed(1); random.seed(1); np.random.seed(1)
                    print(sum(batch.sum().item() for batch in DataLoader(Noise(), batch_size=4)))
                    print(generation, [os.fstat(f).st_ino == os.stat(__file__).st_ino for f in files], flush=True)
            """)
        self.assert_no_errors()

    def test_none_is_open_more_than_in_a_plain_run(self):
        """But for sockets and torch's shared memory, of which there are more or fewer by the moment."""
        program = """
            def files():
                found = set()
                for f in os.listdir("/proc/self/fd"):
                    try:
                        found.add(os.readlink("/proc/self/fd/" + f).partition("[")[0].replace(str(os.getpid()), "PID"))
                    except OSError:
                        pass
                return sorted(f for f in found if not f.startswith(("/dev/shm/", "/torch_", "socket:", "pipe:")))
            class Told(Noise):
                def __getitem__(self, i):
                    return files()
            if __name__ == "__main__":
                for workers in (0, 1):
                    print(files(), list(DataLoader(Told(4), num_workers=workers, multiprocessing_context="fork" if workers else None,
                                                   collate_fn=list)))
            """
        self.run_both(program)

    def test_without_ctypes_and_without_a_map_that_needs_no_descriptor(self):
        """Then a descriptor is kept, and never closed: its number may be the program's by now."""
        with open(self.module("mapping")) as f:
            self.assertIn("def _by_address(", f.read())
        self.change("mapping", "def _by_address(fd, size):\n    return None\n\n\n_TRACKED = True\n")
        self.test_of_a_child_that_is_no_worker()


class Marks(HookTest):
    """Nothing of ours is found in what the program has."""

    def both(self, program, **options):
        out = self.run_both(program, **options)
        self.assert_no_errors()
        return out

    def test_vars_of_a_loader(self):
        """As they are printed, copied, compared, and handed to a constructor."""
        self.both("""
            import copy
            def again(loader):
                keep = ("dataset", "num_workers", "collate_fn", "worker_init_fn", "batch_sampler")
                return type(loader)(**{k: v for k, v in vars(loader).items() if k in keep})
            if __name__ == "__main__":
                loader = DataLoader(list(range(8)), batch_size=4)
                for l in loader, copy.copy(loader), copy.deepcopy(loader), again(loader):
                    print(sorted(vars(l)), [b.tolist() for b in l], sorted(vars(l)), sorted(k for k in dir(l) if "dptrace" in k))
                print(vars(loader) == vars(copy.copy(loader)), vars(loader).keys() == vars(again(loader)).keys())
            """)
        self.assertEqual([l.loader for l in self.main_ring().of("loader")], [1, 2, 3, 4])

    @NATIVE
    def test_frames_between_an_optimizer_and_its_caller(self):
        """None: a frame shows in stacks, in tracebacks, in a debugger's steps, in whom a warning is attributed to, in how deep one may go."""
        self.both("""
            import traceback, warnings
            def stack():
                return [f.name for f in traceback.extract_stack()[:-1]]
            def deep(n=0):
                try:
                    return deep(n + 1)
                except RecursionError:
                    return n
            class Own(torch.optim.SGD):
                def step(self, closure=None):
                    for level in range(1, 5):
                        warnings.warn("level %d" % level, stacklevel=level)
                    print(stack(), deep())
                    return super().step(closure)
            class Module(torch.nn.Linear):
                def train(self, mode=True):
                    print(stack(), deep())
                    return super().train(mode)
                def parameters(self, recurse=True):
                    print(stack(), deep())
                    return super().parameters(recurse)
                @property
                def _is_replica(self):
                    return True
            class Groups(list):
                def __iter__(self):
                    print(stack(), deep())
                    return super().__iter__()
            def shown(message, category, file, line, *more):
                print(message, os.path.basename(file), line)
            def failed():
                print(stack(), deep())
                raise ZeroDivisionError("a closure")
            if __name__ == "__main__":
                warnings.showwarning = shown
                warnings.simplefilter("always")
                model = Module(4, 1)
                optimizer = Own(model.parameters(), lr=0.1)
                model(torch.ones(1, 4)).sum().backward()
                optimizer.step()
                model.eval()
                model.zero_grad()
                optimizer.param_groups = Groups(optimizer.param_groups)
                optimizer.zero_grad()
                model._register_load_state_dict_pre_hook(lambda *args: print(stack(), deep()))
                model.load_state_dict(model.state_dict())
                for f in model.eval, model.zero_grad, model._load_from_state_dict, torch.autograd.backward, torch.distributed.isend:
                    print(f.__name__, f.__code__.co_filename[-20:], f.__code__.co_firstlineno, f.__code__.co_varnames)
                for call in (lambda: optimizer.step(failed)), (lambda: torch.distributed.all_reduce(torch.ones(1))):
                    try:
                        call()
                    except Exception:
                        traceback.print_exc(file=sys.stdout)
            """)

    @NATIVE
    def test_frames_between_a_collective_and_its_caller(self):
        """None, also where torch.compile traces wrappers: it is torch's own decorator that calls us, or the function itself."""
        self.both("""
            import traceback
            import torch.distributed as dist
            if __name__ == "__main__":
                one = torch.ones(1)
                for name, args in (("all_reduce", (one,)), ("broadcast", (one, 0)), ("reduce", (one, 0)), ("all_gather", ([one], one)),
                                   ("send", (one, 0)), ("recv", (one, 0)), ("isend", (one, 0)), ("irecv", (one, 0)), ("batch_isend_irecv", ([],)),
                                   ("batch_isend_irecv", (7,)), ("barrier", ()), ("monitored_barrier", ()),
                                   ("all_gather_object", ([None], 1)), ("broadcast_object_list", ([1],)), ("scatter", (one, [one]))):
                    f = getattr(dist, name, dist.barrier)  # torch 1.8 has no monitored_barrier
                    print(name, type(f).__name__ if hasattr(torch, "compile") and name != "monitored_barrier" else "")
                    try:
                        f(*args)
                    except Exception:
                        traceback.print_exc(file=sys.stdout)
            """)

    def test_a_loader_that_minds_what_is_set_and_asked(self):
        self.both("""
            class Strict(DataLoader):
                allowed = None
                def __setattr__(self, name, value):
                    print("set", name)
                    super().__setattr__(name, value)
                def __getattribute__(self, name):
                    if name[:2] != "__" or name == "__dict__":
                        print("get", name)
                    return super().__getattribute__(name)
                def __delattr__(self, name):
                    print("delete", name)
                    super().__delattr__(name)
                def __eq__(self, other):
                    raise TypeError("compared")
                def __hash__(self):
                    raise TypeError("hashed")
                def __len__(self):
                    raise TypeError("how long?")
                def __bool__(self):
                    raise TypeError("true?")
                def __repr__(self):
                    raise TypeError("shown")
            if __name__ == "__main__":
                for workers in (0, 1):
                    torch.manual_seed(1)
                    loader = Strict(list(range(8)), batch_size=4, shuffle=True, num_workers=workers, multiprocessing_context="fork" if workers else None)
                    for epoch in range(2):
                        for b in loader:
                            print(b)
            """)

    def test_a_loader_whose_dictionary_is_something_else(self):
        self.both("""
            class Barred(DataLoader):
                @property
                def __dict__(self):
                    raise TypeError("no dictionary")
            class Slotted(DataLoader):
                __slots__ = ("extra",)
            if __name__ == "__main__":
                for made in Barred, Slotted:
                    for epoch in range(2):
                        print([b.tolist() for b in made(list(range(8)), batch_size=4)])
            """)

    def test_pickles_of_loaders(self):
        """As many bytes, and nothing in them of us; a loader that is sent to a process that is spawned."""
        self.both("""
            import pickle, multiprocessing
            def there(loader, queue):
                queue.put((sorted(vars(loader)), [b.tolist() for b in loader]))
            if __name__ == "__main__":
                loader = DataLoader(list(range(8)), batch_size=4)
                for epoch in range(2):
                    text = pickle.dumps(loader)
                    print(len(text), b"dptrace" in text, [b.tolist() for b in pickle.loads(text)], [b.tolist() for b in loader])
                spawn = multiprocessing.get_context("spawn")
                queue = spawn.Queue()
                child = spawn.Process(target=there, args=(loader, queue))
                child.start()
                print(queue.get())
                child.join()
            """)

    def test_vars_of_processes_iterators_fetchers_and_optimizers(self):
        self.both("""
            import multiprocessing
            class Inheriting(multiprocessing.get_context("fork").Process):
                def __setattr__(self, name, value):
                    if not name.startswith("_"):
                        raise AttributeError(name)
                    super().__setattr__(name, value)
            names = ["name %d" % i for i in range(200000)]
            def run():
                print(sorted(vars(multiprocessing.current_process())), len(names), flush=True)
            if __name__ == "__main__":
                list(DataLoader(torch.ones(8, 4), batch_size=4))
                p = Inheriting(target=run)
                print(sorted(vars(p)), flush=True)
                p.start()
                there = sorted(vars(p))
                p.join()
                print(there, sorted(vars(p)), p.exitcode)
                o = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
                o.zero_grad(); o.step()
                print(sorted(vars(o)))
            """)

    def test_notes_go_with_their_objects(self):
        """Of all loaders none is kept, and no note of one."""
        code, out, err = self.run_program("""
            import gc, weakref
            from dptrace_hook.watch import iterators
            if __name__ == "__main__":
                alive = []
                for n in range(2000):
                    loader = DataLoader([1, 2])
                    alive.append(weakref.ref(loader))
                    if n % 20 == 0:
                        loader.itself = loader
                        list(loader)
                del loader
                gc.collect()
                print(sum(r() is not None for r in alive), len(iterators._notes.kept))
            """)
        self.assertEqual((code, out), (0, "0 0\n"), err)

    def test_a_copy_is_placed_where_its_original_was_made(self):
        """Which it has its parts from; of one that shares nothing it is told where it is first used."""
        code, _, err = self.run_program("""
            import copy, pickle
            loader = DataLoader(list(range(8)), batch_size=4)  # made
            list(loader)
            list(copy.copy(loader))
            list(pickle.loads(pickle.dumps(loader)))  # used
            """)
        self.assertEqual(code, 0, err)
        lines = open(self.work + "/main.py").read().splitlines()
        self.assertEqual([lines[l.line - 1].partition("  # ")[2] for l in self.main_ring().of("loader")], ["made", "made", "used"])


# Classes whose objects, and whose metaclass, write down whatever is asked of them.
SPIES = """
LOG = {}
def note(who, what):
    LOG[who, what] = LOG.get((who, what), 0) + 1
def told():
    for key in sorted(LOG):
        print(*key, LOG[key], flush=True)
class Meta(type):
    def __getattribute__(cls, name):
        note("class " + type.__getattribute__(cls, "__name__"), name)
        return type.__getattribute__(cls, name)
    def __eq__(cls, other):
        note("class " + type.__getattribute__(cls, "__name__"), "==")
        return cls is other
    def __hash__(cls):
        note("class " + type.__getattribute__(cls, "__name__"), "hash")
        return id(cls)
    def __len__(cls):
        note("class " + type.__getattribute__(cls, "__name__"), "len")
        return 0
    def __instancecheck__(cls, obj):
        note("class " + type.__getattribute__(cls, "__name__"), "isinstance")
        return type.__instancecheck__(cls, obj)
    def __subclasscheck__(cls, other):
        note("class " + type.__getattribute__(cls, "__name__"), "issubclass")
        return type.__subclasscheck__(cls, other)
class Spied:
    def __getattribute__(self, name):
        note(type.__getattribute__(type(self), "__name__"), name)
        return object.__getattribute__(self, name)
    def __setattr__(self, name, value):
        note(type.__getattribute__(type(self), "__name__"), "set " + name)
        object.__setattr__(self, name, value)
    def __eq__(self, other):
        note(type.__getattribute__(type(self), "__name__"), "==")
        return self is other
    def __hash__(self):
        note(type.__getattribute__(type(self), "__name__"), "hash")
        return id(self)
    def __bool__(self):
        note(type.__getattribute__(type(self), "__name__"), "bool")
        return True
    def __repr__(self):
        note(type.__getattribute__(type(self), "__name__"), "repr")
        return "spied"
    def __reduce_ex__(self, protocol):
        note(type.__getattribute__(type(self), "__name__"), "pickled")
        return object.__reduce_ex__(self, protocol)
"""


class Asked(HookTest):
    """What belongs to the program is asked for nothing: objects, their classes, and the metaclasses of these."""
    maxDiff = None

    def both(self, program, **options):
        out = self.run_both(program, **options)
        self.assert_no_errors()
        return out

    def test_objects_of_a_loader(self):
        self.both("""
            from torch.utils.data import Sampler, BatchSampler
            class Data(Spied, Dataset):
                def __init__(self):
                    self.x, self.transform, self.held = torch.ones(16, 4), Transform(), [Thing(), {"thing": Thing(), Thing(): 1}, (Thing(),), {Thing()}]
                def __len__(self):
                    return 16
                def __getitem__(self, i):
                    return self.transform(self.x[i])
            class Transform(Spied):
                def __init__(self):
                    self.rng = random.Random(1)
                def __call__(self, x):
                    return x + random.random()
            class Thing(Spied):
                pass
            class Order(Spied, Sampler):
                def __init__(self):
                    self.n = 16
                def __iter__(self):
                    return iter(range(self.n))
                def __len__(self):
                    return self.n
            class Batches(Spied, BatchSampler):
                pass
            class Collate(Spied):
                def __init__(self):
                    self.rng, self.thing = random.Random(0), Thing()
                def __call__(self, samples):
                    return torch.stack(samples)
            class Init(Spied):
                def __call__(self, worker):
                    random.seed(worker)
            class Loader(Spied, DataLoader):
                pass
            if __name__ == "__main__":
                LOG.clear()
                for workers in (0, 2):
                    torch.manual_seed(1); random.seed(1); np.random.seed(1)
                    more = {"multiprocessing_context": "fork", "worker_init_fn": Init(), "persistent_workers": True} if workers else {}
                    fit(Loader(Data(), batch_sampler=Batches(Order(), 4, False), collate_fn=Collate(), num_workers=workers, **more))
                told()
            """, prelude=PRELUDE + SPIES)

    def test_classes_of_what_a_loader_has(self):
        """Index, sample, batch, exception, optimizer and module, too."""
        self.both("""
            class Data(Dataset, metaclass=type("M", (Meta, type(Dataset)), {})):
                limit = 3
                def __init__(self):
                    self.things = [Thing(), {Index(1): Thing()}, (Thing(),), Thing]
                def __len__(self):
                    return 16
                def __getitem__(self, i):
                    if i.n == 13:  # of the last batch: what was sent after a failing one, torch's feeder thread pickles when it likes
                        raise Failure("at", i.n)
                    return Sample(torch.ones(4) * i.n)
            class Index(metaclass=Meta):
                def __init__(self, n):
                    self.n = n
            class Sample(metaclass=Meta):
                def __init__(self, x):
                    self.x = x
            class Batch(metaclass=Meta):
                def __init__(self, samples):
                    self.x = torch.stack([s.x for s in samples])
            class Collate(metaclass=Meta):
                __slots__ = ("thing",)
                def __call__(self, samples):
                    return Batch(samples)
            class Init(metaclass=Meta):
                def __call__(self, worker):
                    self.worker = worker
            class Thing(metaclass=Meta):
                pass
            class Failure(Exception, metaclass=type("E", (Meta,), {"__subclasscheck__": type.__subclasscheck__})):  # which except asks
                pass
            class Order(torch.utils.data.Sampler, metaclass=type("S", (Meta, type(torch.utils.data.Sampler)), {})):
                def __init__(self):
                    self.kept = Thing()
                def __iter__(self):
                    return (Index(i) for i in range(16))
                def __len__(self):
                    return 16
            class Step(torch.optim.SGD, metaclass=Meta):
                pass
            class Net(torch.nn.Module, metaclass=Meta):
                def __init__(self):
                    super().__init__()
                    self.inner, self.thing = torch.nn.Linear(4, 1), Thing()
                def forward(self, x):
                    return self.inner(x)
            if __name__ == "__main__":
                LOG.clear()
                for workers in (0, 1):
                    torch.manual_seed(1); random.seed(1); np.random.seed(1)
                    net = Net()
                    step = Step(net.parameters(), lr=0.1)
                    more = {"multiprocessing_context": "fork", "worker_init_fn": Init(), "persistent_workers": True} if workers else {}
                    loader = DataLoader(Data(), batch_size=4, sampler=Order(), collate_fn=Collate(), num_workers=workers, **more)
                    for epoch in range(2):
                        try:
                            for batch in loader:
                                net.train(); step.zero_grad(); net(batch.x).mean().backward(); step.step(); net.eval()
                        except Failure as e:
                            print(type(e) is Failure, epoch)
                told()
            """, prelude=PRELUDE + SPIES)

    def test_classes_that_raise_whatever_is_asked(self):
        """A registry whose __getattr__ looks into a dictionary; one that has no attribute at all; names that are no strings."""
        self.both("""
            class Registry(type):
                items = {}
                def __getattr__(cls, name):
                    return Registry.items[name]
            class Mute(type):
                def __getattribute__(cls, name):
                    raise RuntimeError(name)
                def __eq__(cls, other):
                    raise RuntimeError("compared")
                def __hash__(cls):
                    raise RuntimeError("hashed")
            class Named(metaclass=Mute):
                __module__ = property(lambda self: 1 / 0)
                def __call__(self, samples):
                    return torch.stack(samples)
            class Registered(metaclass=Registry):
                def __call__(self, samples):
                    return torch.stack(samples)
            def collate(samples):
                return torch.stack(samples)
            collate.__module__ = None
            class Data(Dataset, metaclass=type("M", (Registry, type(Dataset)), {})):
                def __init__(self):
                    self.things = [Named(), Registered(), Named, {"a": Named(), 1: Registered}]
                def __len__(self):
                    return 8
                def __getitem__(self, i):
                    return torch.ones(4) * i
            if __name__ == "__main__":
                for collate in Named(), Registered(), collate, lambda s: torch.stack(s), torch.stack:
                    for workers in (0, 1):
                        more = {"multiprocessing_context": "fork", "worker_init_fn": lambda w: None, "persistent_workers": True} if workers else {}
                        loader = DataLoader(Data(), batch_size=4, collate_fn=collate, num_workers=workers, **more)
                        print([[b.sum().item() for b in loader] for epoch in range(2)])
            """)

    def test_objects_that_hand_on_or_refuse_what_is_asked(self):
        self.both("""
            class Handing:
                def __init__(self, of):
                    self.of = of
                def __getattr__(self, name):
                    print("asked", name, flush=True)
                    return getattr(self.of, name)
            class Refusing:
                def __init__(self):
                    self.v = 1
                def refuse(self, *args):
                    raise RuntimeError("refused")
                __eq__ = __hash__ = __bool__ = __repr__ = __len__ = __iter__ = __getstate__ = __reduce_ex__ = __float__ = __index__ = refuse
                __contains__ = __getitem__ = __call__ = __array__ = __fspath__ = __str__ = __format__ = __dir__ = refuse
                @property
                def __dict__(self):
                    raise RuntimeError("refused")
                @property
                def __class__(self):
                    raise RuntimeError("refused")
            class Data(Dataset):
                def __init__(self, of=None):
                    self.x, self.things = torch.ones(8, 4), [Refusing(), {"a": Refusing(), "rng": [Refusing()] * 70}, (Refusing(),) * 2000]
                    if of is not None:
                        self.of = Handing(of)
                def __len__(self):
                    return 8
                def __getitem__(self, i):
                    return self.x[i], Refusing()
                def __getattr__(self, name):
                    print("data asked", name, flush=True)
                    raise AttributeError(name)
                @property
                def epoch(self):
                    raise RuntimeError("refused")
                @property
                def rng(self):
                    raise RuntimeError("refused")
            import functools
            class Partial(functools.partial):
                def __getattribute__(self, name):
                    raise RuntimeError(name)
            def collate(extra, samples):
                return [s[0] for s in samples], samples[0][1]
            if __name__ == "__main__":
                for f in functools.partial(collate, Refusing()), Partial(collate, Handing(1)):
                    for workers in (0, 1):
                        data = Data(Data())
                        more = {"multiprocessing_context": "fork", "persistent_workers": True} if workers else {}
                        if workers:
                            give = functools.partial(collate, 1)
                            f = lambda samples, give=give, f=f: give(samples)[0]
                        loader = DataLoader(data, batch_size=4, collate_fn=f, num_workers=workers, **more)
                        print([len(b) for epoch in range(2) for b in loader], flush=True)
            """)

    def test_modes_and_subclasses_of_tensors(self):
        """The shape of a batch is a call of __torch_function__, for a mode; a copy of a row one of __torch_dispatch__."""
        modes = versions("torch") >= (1, 13)
        self.both(("""
            from torch.overrides import TorchFunctionMode
            from torch.utils._python_dispatch import TorchDispatchMode
            class Functions(TorchFunctionMode):
                def __torch_function__(self, f, types, args=(), kwargs=None):
                    calls.append(getattr(f, "__name__", "?"))
                    return f(*args, **(kwargs or {}))
            class Operations(TorchDispatchMode):
                def __torch_dispatch__(self, f, types, args=(), kwargs=None):
                    calls.append(str(f))
                    return f(*args, **(kwargs or {}))
            """ if modes else """
            import contextlib
            Functions = Operations = contextlib.ExitStack
            """) + """
            calls = []
            class Counted(torch.Tensor):
                @classmethod
                def __torch_function__(cls, f, types, args=(), kwargs=None):
                    calls.append("of a class: " + getattr(f, "__name__", "?"))
                    return super().__torch_function__(f, types, args, kwargs or {})
            class Data(Dataset):
                def __init__(self, tensors):
                    self.x = tensors
                def __len__(self):
                    return len(self.x)
                def __getitem__(self, i):
                    return self.x[i]
            def collate(samples):
                return torch.stack(list(samples))
            if __name__ == "__main__":
                from torch.utils.data import Subset
                for x in torch.randn(32, 3), torch.randn(32, 3).as_subclass(Counted), [torch.ones(3).as_subclass(Counted) for _ in range(32)]:
                    for order in None, torch.arange(32), range(32):
                        for mode in (Functions, Operations) if type(x) is torch.Tensor else (Functions,):
                            data = Subset(Data(x), order) if order is not None else Data(x)
                            loader = DataLoader(data, batch_size=4, collate_fn=collate)
                            del calls[:]
                            with mode():
                                for epoch in range(2):
                                    for batch in loader:
                                        pass
                            print(len(calls), sorted(set(calls)))
            """)

    def test_what_is_called_by_the_way(self):
        """Modules that load what they are asked for, globals in a dictionary of the program's own, audit hooks."""
        self.both("""
            import types
            class Lazy(types.ModuleType):
                def __getattr__(self, name):
                    print("loads", name, flush=True)
                    raise ImportError(name)
                def __getattribute__(self, name):
                    if name == "__file__":
                        print("asked", name, flush=True)
                    return types.ModuleType.__getattribute__(self, name)
            class Stub:
                def __getattr__(self, name):
                    print("stub asked", name, flush=True)
                    raise ImportError(name)
            class Names(dict):
                def __contains__(self, key):
                    print("contains", key, flush=True)
                    return dict.__contains__(self, key)
                def get(self, key, none=None):
                    print("get", key, flush=True)
                    return dict.get(self, key, none)
                def items(self):
                    print("items", flush=True)
                    return dict.items(self)
                def keys(self):
                    print("keys", flush=True)
                    return dict.keys(self)
                def __iter__(self):
                    print("iter", flush=True)
                    return dict.__iter__(self)
            def code(self, i):
                return torch.ones(4) * offset * i
            class Data(Noise):
                __getitem__ = types.FunctionType(code.__code__, Names(torch=torch, offset=2, rng=random.Random(1), __builtins__=__builtins__, __name__="lazy"))
            Data.__module__ = "lazy"
            class Odd(Data):
                pass
            Odd.__module__ = "stub"
            sys.modules["lazy"], sys.modules["stub"] = Lazy("lazy"), Stub()
            if __name__ == "__main__":
                for data in Data(8), Odd(8):
                    for workers in (0, 1):
                        more = {"multiprocessing_context": "fork", "persistent_workers": True} if workers else {}
                        print([[b.sum().item() for b in DataLoader(data, batch_size=4, num_workers=workers, **more)] for epoch in range(2)])
            """)


class Raised(HookTest):
    """What reaches the program of what is raised while a frame of ours is on the stack."""

    PROGRAM = """
        import signal, functools, threading, ctypes, time
        class Planned(Exception):
            pass
        class Removed:
            "A handler that is no function, and is gone when it raises."
            def __call__(self, number, frame):
                signal.signal(signal.SIGUSR1, signal.SIG_DFL)
                raise Planned("an object")
            def method(self, number, frame):
                raise Planned("a method")
        def outer(f):
            @functools.wraps(f)
            def wrapper(*args):
                return f(*args)
            return wrapper
        @outer
        def wrapped(number, frame):
            signal.signal(signal.SIGUSR1, signal.SIG_DFL)
            raise Planned("wrapped")
        def deep(number, frame):
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            (lambda: [][1])()
        def torchs(number, frame):
            raise RuntimeError("DataLoader worker is killed")
        def planted():
            os.kill(os.getpid(), signal.SIGUSR1)
            for _ in range(10):
                pass
        handlers = [Removed(), Removed().method, wrapped, functools.partial(wrapped), deep, torchs, lambda n, f: {}["x"]]
        for handler in handlers:
            signal.signal(signal.SIGUSR1, handler)
            try:
                for batch in DataLoader(list(range(4)), batch_size=4):
                    print("a batch", flush=True)
            except Exception as e:
                print(type(e).__name__, e, flush=True)
        """

    def test_handlers_of_all_kinds(self):
        """They run in a frame of ours: the next one. Each raises once in each run, so that the plain run raises there, too."""
        self.change("fetches", """
            def leave(*args):
                import os, signal
                os.kill(os.getpid(), signal.SIGUSR1)
                for _ in range(10):
                    pass
            after_fetch = leave
            """)
        code, out, err = self.run_program(self.PROGRAM)
        self.assertEqual((code, out), (0, "Planned an object\nPlanned a method\nPlanned wrapped\nPlanned wrapped\nIndexError list index out of range\n"
                                       "RuntimeError DataLoader worker is killed\nKeyError 'x'\n"), err)

    def test_what_code_of_the_program_raises_that_we_called(self):
        """There is no such call; if there were, its error would be ours."""
        self.change("fetches", """
            def leave(*args):
                import sys
                sys.modules["__main__"].called()
            after_fetch = leave
            """)
        code, out, err = self.run_program("""
            class Mine(Exception):
                pass
            def called():
                raise Mine("by us")
            for batch in DataLoader(list(range(8)), batch_size=4):
                print("a batch")
            """)
        self.assertEqual((code, out), (0, "a batch\n" * 2), err)
        self.assertEqual([e.last.partition(" at ")[0] for e in self.main_ring().of("errors")], ["Mine", "Mine"])

    def test_what_another_thread_has_raised_here(self):
        self.change("fetches", """
            def leave(*args):
                import ctypes, sys
                from _thread import get_ident
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(get_ident()), ctypes.py_object(sys.modules["__main__"].Late))
                for _ in range(1000):
                    pass
            after_fetch = leave
            """)
        code, out, err = self.run_program("""
            class Late(Exception):
                pass
            try:
                for batch in DataLoader(list(range(8)), batch_size=4):
                    print("a batch")
            except Late:
                print("late")
            """)
        self.assertEqual((code, out), (0, "late\n"), err)

    def test_audit_hooks_and_trace_functions(self):
        """A hook that allows nothing to be opened is asked by what we open; a trace function that raises is the program's affair."""
        code, out, err = self.run_program("""
            def allows(event, args):
                if event in ("ctypes.cdata", "ctypes.dlsym", "open", "os.listdir") and "dptrace" in sys._getframe(1).f_code.co_filename:
                    raise PermissionError("not allowed")
            if hasattr(sys, "addaudithook"):
                sys.addaudithook(allows)
            print([b.tolist() for b in DataLoader(list(range(8)), batch_size=4)])
            print([b.tolist() for b in DataLoader(list(range(8)), batch_size=4, num_workers=1, multiprocessing_context="fork")])
            class Traced(Exception):
                pass
            def trace(frame, event, arg):
                if frame.f_code.co_filename.endswith("slots.py"):
                    sys.settrace(None)
                    raise Traced()
            loader = DataLoader(list(range(8)), batch_size=4)
            try:
                sys.settrace(trace)
                list(loader)
            except Traced:
                print("traced")
            finally:
                sys.settrace(None)
            """)
        self.assertEqual((code, out), (0, "[[0, 1, 2, 3], [4, 5, 6, 7]]\n" * 2 + "traced\n"), err)


class Kept(HookTest):
    """What the program lets go of is gone, without the garbage collector: an iterator that lives on is inherited by the workers of
    the next one, where its end is an error (torch up to 1.13: can only test a child process)."""

    PROGRAM = """
        import gc, weakref, functools
        gc.disable()
        gc.collect()
        alive = {}
        class Stream(IterableDataset):
            def __iter__(self):
                info = torch.utils.data.get_worker_info()
                return (torch.ones(4) * i for i in range(0 if info is None else info.id, 8, 2))
        class Failing(Noise):
            def __getitem__(self, i):
                if i == 5:
                    raise ValueError(i)
                return super().__getitem__(i)
        def watch(name, obj):
            alive[name] = weakref.ref(obj)
            return obj
        def living():
            print(sorted(name for name, r in alive.items() if r() is not None), flush=True)
            alive.clear()
        class Trainer:
            def __init__(self, data, **options):
                self.rng = random.Random(1)
                self.data = watch("dataset", data)
                self.records = [{"n": i} for i in range(3000)]
                self.loader = watch("loader", DataLoader(data, batch_size=2, collate_fn=self.collate if options.pop("bound", False) else None,
                                                         generator=torch.Generator(), **options))
            def collate(self, samples):
                return torch.stack(samples)
            def run(self, epochs, most=99):
                for epoch in range(epochs):
                    self.it = watch("iterator %d" % epoch, iter(self.loader))
                    try:
                        for n, batch in enumerate(self.it):
                            if n == most:
                                break
                        for n, batch in enumerate(self.loader):
                            if n == most:
                                break
                    except ValueError:
                        pass
                    del self.it
        def frames(trainer):
            local = [trainer, trainer.rng]
            for batch in trainer.loader:
                inner = lambda: local
            return len(local)
        def main():
            workers = {"num_workers": 2, "multiprocessing_context": "fork"}
            for data in Noise, Stream, Failing:
                for options in {}, {"bound": True}, workers, dict(workers, persistent_workers=True), dict(workers, bound=True, persistent_workers=True):
                    print(data.__name__, sorted(options))
                    trainer = Trainer(data(*[8][:data is not Stream]), **options)
                    trainer.run(2)
                    trainer.run(1, most=1)
                    if data is not Failing:
                        frames(trainer)
                    if "bound" in options:
                        trainer.loader.collate_fn = None
                    del trainer
                    living()
            print(gc.isenabled())
        if __name__ == "__main__":
            main()
        """

    def test_nothing_is_kept(self):
        plain, hooked = self.run_program(self.PROGRAM, hooked=False), self.run_program(self.PROGRAM)
        self.assertEqual(plain[0], 0, plain[2])
        self.assertEqual(hooked, plain)


class Ends(HookTest):
    """As the interpreter ends, the names of modules are None while objects of the program's still end: each calls what it calls in a
    plain run, and no traceback is printed."""

    PROGRAM = """
        import builtins, functools, subprocess
        system, kept = os.system, []
        class Last:
            "Outlives all modules, and then uses what it has."
            def __init__(self, name, run):
                self.name, self.run, self.write = name, run, os.write
            def __del__(self):
                try:
                    self.run()
                    self.write(1, (self.name + "\\n").encode())
                except BaseException as e:
                    self.write(1, (self.name + " " + type(e).__name__ + "\\n").encode())
        def cycle(loader):
            while True:
                for batch in loader:
                    yield batch
        class Trainer:
            def __init__(self, **options):
                self.loader = DataLoader(torch.ones(64, 4), batch_size=4, generator=torch.Generator(), **options)
                self.model = torch.nn.Linear(4, 1)
                self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
                self.batches = cycle(self.loader)
            def step(self):
                self.model(next(self.batches)).mean().backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
        def main():
            workers = {"num_workers": 1, "multiprocessing_context": "fork"}
            for n, options in enumerate(({}, workers, dict(workers, persistent_workers=True))):
                trainer = Trainer(**options)
                trainer.step()
                setattr((functools, builtins, torch)[n], "kept%d" % n, trainer)
            trainer = Trainer()
            trainer.step()
            functools.steps = Last("steps", trainer.optimizer.step)
            functools.zeroes = Last("zeroes", trainer.optimizer.zero_grad)
            functools.system = Last("system", functools.partial(os.system, "exit 3"))
            functools.batches = Last("batches", functools.partial(next, trainer.batches))
            done = subprocess.run([sys.executable, "-c", "raise SystemExit(4)"])
            builtins.done = Last("returncode", functools.partial(getattr, done, "returncode"))
            child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(4)"])
            child.wait()
            functools.child = child
            builtins.child = Last("popen", functools.partial(getattr, child, "returncode"))
            functools.norm = Last("norm", functools.partial(torch.nn.BatchNorm1d(4).eval(), torch.ones(1, 4)))
            functools.modes = Last("modes", torch.no_grad().__enter__)
            print("main is over", flush=True)
        if __name__ == "__main__":
            main()
        """

    def test_objects_that_outlive_the_modules(self):
        plain, hooked = self.run_program(self.PROGRAM, hooked=False), self.run_program(self.PROGRAM)
        self.assertEqual(plain[0], 0, plain[2])
        self.assertEqual((hooked[0], sorted(hooked[1].splitlines())), (plain[0], sorted(plain[1].splitlines())), hooked[2])
        self.assertEqual(hooked[2], plain[2])
