"""What is written of the training loop: backward calls, gradients, grad mode, eval(), restarts, rows, batch norms."""
import os
import sys
import unittest

from harness import OLD, PYTHON, HookTest, layouts, versions

sys.path.insert(0, PYTHON)

LOOP = """
    import copy
    from collections import namedtuple
    from torch import nn
    from torch.utils.data import TensorDataset

    def net():
        m = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        return m, torch.optim.SGD(m.parameters(), lr=0.01)

    def rows(n, size=4):
        return DataLoader(TensorDataset(torch.randn(n, 2)), batch_size=size)

    def loss(m, x):
        return m(x).pow(2).mean()

    m, o = net()
"""


class Training(HookTest):
    def next_of(self, program):
        """The next records of a program, which must run as it does without the hook."""
        code, out, err = self.run_program(LOOP + program)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return self.main_ring().of("next")

    def flags(self, records, bit):
        return [bool(r.status & getattr(layouts, "STATUS_" + bit)) for r in records]

    def test_gradients(self):
        """Two batches are accumulated, a third is thrown away, and the last is passed over with a step on what is left."""
        found = self.next_of("""
    for i, (x,) in enumerate(rows(24)):
        if i < 5:
            loss(m, x).backward()
        if i in (1, 4, 5):
            o.step()
        if i in (1, 2):
            o.zero_grad() if i == 1 else m.zero_grad()
            """)
        self.assertEqual([(r.backwards, r.grads_from, r.grads_to) for r in found],
                         [(0, 0, 0), (1, 0, 0), (2, 0, 2), (3, 0, 0), (4, 0, 0), (5, 3, 5), (5, 3, 5), (5, 0, 0)])
        self.assertEqual([r.status & 255 for r in found], [1] * 6 + [0, layouts.STATUS_VALUES.index("exit")])
        self.assertEqual([r.steps for r in found], [0, 0, 1, 1, 1, 2, 3, 3])
        self.assertTrue(all(self.flags(found, "WATCHED")))

    def test_optimizers(self):
        """A step on a perturbation is none; one of an optimizer that is made in the loop over the model's parameters is."""
        found = self.next_of("""
    for (x,) in rows(8):
        d = nn.Parameter(torch.zeros_like(x))
        attack = torch.optim.SGD([d], lr=0.1)
        loss(m, x + d).backward()
        attack.step()
    for (x,) in rows(8):
        o = torch.optim.SGD(m.parameters(), lr=0.1)
        o.zero_grad()
        loss(m, x).backward()
        o.step()
    z = torch.zeros(2, requires_grad=True)
    o = torch.optim.SGD([z], lr=0.1)
    for (x,) in rows(8):
        (x * z).sum().backward()
        o.step()
            """)
        self.assertEqual([r.grads_to for r in found], [0, 0, 0] + [0, 3, 4] + [0, 0, 0] + [0])
        made = [(r.trains, r.params, r.batches) for r in self.main_ring().of("optimizer")]
        self.assertEqual(made, [("yes", 1, 1), ("yes", 1, 2), ("yes", 4, 3), ("yes", 4, 4), ("no", 1, 4)])

    def test_grad_mode(self):
        found = self.next_of("""
    inference = getattr(torch, "inference_mode", torch.no_grad)
    @torch.no_grad()
    def look(x):
        return m(x)
    it = iter(rows(32))
    def first():
        return next(it)[0]
    m(first())
    look(first())
    with torch.no_grad(): m(first())
    with inference(): m(first())
    torch.set_grad_enabled(False); m(first()); torch.set_grad_enabled(True)
    with torch.set_grad_enabled(True): m(first())
    with torch.enable_grad(): m(first())
    with torch.no_grad(): first()
            """)
        # of each record: what was done with the batch before it, until the next next()
        self.assertEqual(self.flags(found[1:], "GRAD_OFF"), [False, True, True, True, False, False, True, False])
        self.assertEqual(self.flags(found, "GRAD"), [True, True, False, False, False, True, True, False, True])

    def test_no_grad_of_the_dataset_is_not_the_loops(self):
        found = self.next_of("""
    class Features(Dataset):
        def __len__(self):
            return 8
        def __getitem__(self, i):
            with torch.no_grad():
                return m(torch.ones(2))
    for x in DataLoader(Features(), batch_size=4):
        pass
            """)
        self.assertEqual(self.flags(found, "GRAD_OFF"), [True, False, False, False], "the first: as the layers were made")

    def test_evaluation_mode(self):
        """Of the model that is trained, not of a frozen teacher; as a call, and as a state."""
        found = self.next_of("""
    teacher = copy.deepcopy(m).eval()
    for i, (x,) in enumerate(rows(24)):
        if i == 2:
            m.eval(); m(x); m.train()
        if i == 4:
            m.eval()
        teacher(x)
        loss(m, x).backward(); o.step()
            """)
        self.assertEqual(self.flags(found, "EVALUATING"), [False] * 3 + [True, False] + [True] * 3)

    def test_restarts(self):
        """Also of a part of the model, and of the optimizer; not weights that are put in for an evaluation, nor another model's."""
        found = self.next_of("""
    first, other = copy.deepcopy(m.state_dict()), net()[0]
    def epoch():
        for (x,) in rows(4):
            o.zero_grad(); loss(m, x).backward(); o.step()
    def look():
        with torch.no_grad():
            for (x,) in rows(4): m(x)
    epoch()
    m.load_state_dict(first); epoch()
    o.load_state_dict(o.state_dict()); epoch()
    m[0].load_state_dict(net()[0][0].state_dict()); epoch()
    other.load_state_dict(first); copy.deepcopy(o); epoch()
    keep = copy.deepcopy(m.state_dict())
    m.load_state_dict(first); look()
    m.load_state_dict(keep); epoch()
    try:
        m.load_state_dict({"no": torch.zeros(1)})
    except RuntimeError:
        pass
            """)
        self.assertEqual([r.restarts for r in found if r.status & 255 == 1], [0, 1, 2, 3, 3, 4, 3])

    def test_rows(self):
        found = self.next_of("""
    class Fixed(IterableDataset):
        def __iter__(self):
            Pair = namedtuple("Pair", "a b")
            class Batch:
                def __init__(self): self.n, self.x = 3, {"deep": torch.zeros(11, 1)}
            class Mine(torch.Tensor):
                @classmethod
                def __torch_function__(cls, *args, **kwargs): raise RuntimeError("asked")
            self.kept = torch.zeros(12).as_subclass(Mine)
            yield from [torch.zeros(5, 2), np.zeros((6, 1)), (torch.zeros(7), torch.zeros(1)), {"id": ["a"], "x": torch.zeros(8, 1)},
                        Pair("s", torch.zeros(9)), [torch.tensor(1.0), [torch.zeros(10)]], Batch(), self.kept, torch.tensor(2.0), "text", None,
                        [[[[[torch.zeros(3)]]]]], torch.zeros(0, 4)]
    for x in DataLoader(Fixed(), batch_size=None, collate_fn=lambda x: x):
        pass
            """)
        self.assertEqual([r.rows for r in found if r.status & 255 == 1], [5, 6, 7, 8, 9, 10, 11, 12, -1, -1, -1, -1, 0])

    def test_a_batch_norm_that_takes_one_row(self):
        found = self.next_of("""
    m = nn.Sequential(nn.BatchNorm1d(1), nn.Flatten(), nn.Linear(6, 1))
    o = torch.optim.SGD(m.parameters(), lr=0.01)
    before = nn.functional._verify_batch_size
    def images(size=4):
        return DataLoader(TensorDataset(torch.randn(9, 1, 6)), batch_size=size)
    def fit(x):
        o.zero_grad(); m(x).mean().backward(); o.step()
    for (x,) in images(): fit(x)
    m.eval()
    for (x,) in images(): fit(x)
    m.train()
    for (x,) in images():
        if len(x) > 1: fit(x)
    for (x,) in images(1): fit(x)
    m[0] = nn.GroupNorm(1, 1)
    for (x,) in images(): fit(x)
    for (x,) in images(3): fit(x)
    assert nn.functional._verify_batch_size is before
            """)
        alone = [i for i, flag in enumerate(self.flags(found, "ALONE")) if flag]
        self.assertEqual((alone, [r.rows for r in found[:4]]), ([3], [4, 4, 1, -1]))

    def test_the_programs_errors_have_no_frame_of_ours(self):
        """And signatures are as they were; what a batch norm, backward() and load_state_dict raise among them."""
        self.run_both(LOOP + """
    import inspect, traceback
    def wrong(f, *args):
        try:
            f(*args)
        except Exception as e:
            print(type(e).__name__, [(os.path.basename(f.filename), f.name) for f in traceback.extract_tb(e.__traceback__)])
    bn = nn.BatchNorm1d(2)
    for (x,) in rows(5):
        if len(x) == 1:
            wrong(bn, x)
        wrong(m(x).backward)
        loss(m, x).backward()
    wrong(torch.set_grad_enabled, "x")
    wrong(m.load_state_dict, {"no": x})
    wrong(o.load_state_dict, {"state": {}, "param_groups": []})
    wrong(torch.optim.SGD, [], 0.1)
    twice = loss(m, x)
    twice.backward()
    wrong(twice.backward)
    for f in (torch.set_grad_enabled, torch.no_grad, torch.optim.SGD, torch.autograd.backward, nn.Module.eval, nn.Module.zero_grad,
              nn.Module.load_state_dict, torch.optim.Optimizer.zero_grad, torch.optim.Optimizer.load_state_dict, nn.functional.batch_norm):
        print(inspect.signature(f))
    print(vars(copy.copy(torch.set_grad_enabled(True))))
            """)

    @unittest.skipIf((versions("torch") or (0,)) < (2, 3), "no compilers, or none that can be told to leave something alone")
    def test_compilers_see_the_same(self):
        """Graphs, breaks, what they compile, and how often."""
        out = self.run_both(LOOP + """
    import torch._dynamo as dynamo
    m = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    held = m.state_dict()
    def evaluated(x):
        m.eval()
        y = m(x)
        m.train()
        return y
    def zeroed(x):
        m.zero_grad()
        return m(x).sum()
    def loaded(x):
        m.load_state_dict(held)
        return m(x)
    def inferred(x):
        with torch.inference_mode():
            return m(x)
    def graded(x):
        with torch.no_grad():
            return m(x)
    def trained(x):
        o.zero_grad()
        m(x).sum().backward()
    for f in evaluated, zeroed, loaded, inferred, graded, trained:
        for (x,) in rows(8):
            m(x).sum().backward(); o.step()  # what we count moves on
        dynamo.reset()
        dynamo.utils.counters.clear()
        compiled = torch.compile(f, backend="eager")
        for _ in range(12):
            compiled(torch.ones(2, 2))
            m(x).sum().backward(); o.step()
        print(f.__name__, {k: dict(v) for k, v in sorted(dynamo.utils.counters.items()) if k in ("graph_break", "frames", "stats")})
            """)
        self.assertIn("'unique_graphs': 1", out)

    @unittest.skipIf(OLD, "torch 1.8's autograd does not run in a child of a process in which it ran")
    def test_forked(self):
        """A child counts for itself."""
        self.run_program(LOOP + """
    for (x,) in rows(8):
        o.zero_grad(); loss(m, x).backward(); o.step()
    pid = os.fork()
    for (x,) in rows(8):
        o.zero_grad(); loss(m, x).backward(); o.step()
    if pid: os.waitpid(pid, 0)
            """)
        self.assert_no_errors()
        told = sorted([r.backwards for r in ring.of("next")] for ring in self.rings())
        self.assertEqual(told, [[0, 1, 2, 2], [0, 1, 2, 2, 3, 4, 4]])

    def test_where_a_loader_is_made(self):
        """Frames of libraries are passed over, wherever they are installed; the program's own folders are not."""
        for folder, expect in (("venv/lib/python3.11/site-packages/anylib", "main.py"), ("usr/lib/python3/dist-packages/anylib", "main.py"),
                               ("src/accelerate", "main.py"), ("my-packages/anylib", "__init__.py"), ("lib/python3.11-notes/anylib", "__init__.py")):
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))
            self.write(folder + "/__init__.py", "from torch.utils.data import DataLoader\ndef make(d):\n    return DataLoader(d, batch_size=4)\n")
            parent, name = os.path.split(folder)
            code, _, err = self.run_program("""
                sys.path.insert(0, %r)
                import %s as lib
                for x in lib.make(Noise()):
                    break
                """ % (parent, name))
            self.assertEqual(code, 0, err)
            loader, = self.main_ring().of("loader")
            self.assertEqual(os.path.basename(loader.file), expect, folder)

    def test_datasets_as_they_are_given(self):
        """Compounds have numbers, lists too; the same object has the same one."""
        code, _, err = self.run_program("""
            from torch.utils.data import ConcatDataset, Subset
            noise, rows = Noise(), [torch.zeros(1)] * 8
            part, both = Subset(noise, range(8)), ConcatDataset([noise, noise])
            for d in (noise, part, both, part, rows, rows, Subset(noise, range(8)), noise):
                for x in DataLoader(d):
                    break
            """)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        given = [r.given for r in self.main_ring().of("loader")]
        self.assertEqual(given[:4] + given[6:], [1, 2, 3, 2, given[6], 1])
        self.assertEqual(len(set(given[4:6]) - set(given[:4])), 2 - (given[4] == given[5]))


if __name__ == "__main__":
    unittest.main()
