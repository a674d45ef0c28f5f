"""Which samples a loader's indices stand for, who decides on the order, and which ranks belong together."""
import json
import os
import unittest

from harness import HookTest, versions

TORCH = versions("torch") or (0, 0)

# A sample is (number of its dataset object, index there): the program prints what it was really given.
DATA = """
from torch.utils.data import ConcatDataset, Subset, random_split

class Part(Dataset):
    def __init__(self, number, n):
        self.number, self.n = number, n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        if not 0 <= i < self.n:
            raise IndexError(i)
        return self.number, i

def walk(loader):
    return [[list(s) for s in batch] for batch in loader]
"""


def put_order(ring, loader):
    return sorted((p for p in ring.of("put") if p.loader == loader), key=lambda p: (p.pass_, p.batch, p.first))


def pairs(ids):
    return [[i >> 40, i & (1 << 40) - 1] for i in ids]


class Identity(HookTest):
    def record(self, program, **options):
        code, out, err = self.run_program(DATA + "\nif __name__ == '__main__':\n    import json\n" + program, **options)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return json.loads(out.splitlines()[-1]) if out else None

    def check(self, expression, workers=0, sampler="None"):
        """The ids that are written of a dataset are what the loader delivers."""
        given = self.record("""
    a, b, c = Part(1, 10), Part(2, 6), Part(3, 7)
    for part in a, b, c:
        next(iter(DataLoader(part)))
    loader = DataLoader(%s, batch_size=4, sampler=%s, shuffle=%s is None, collate_fn=list, num_workers=%d, multiprocessing_context=%r)
    print(json.dumps(walk(loader) + walk(loader), default=int))
""" % (expression, sampler, sampler, workers, "fork" if workers else None))
        main = self.main_ring()
        self.assertEqual([(d.dataset, vars(d)["class"].split(".")[-1]) for d in main.of("dataset")],
                         [(1, "Part"), (2, "Part"), (3, "Part")])
        self.assertEqual([l.dataset_id for l in main.of("loader")], [1, 2, 3, 0])
        self.assertEqual([pairs(p.ids) for p in put_order(main, 4)], given)
        self.assertEqual([p.ids for p in put_order(main, 1)], [[]], "a loader of one dataset needs none")

    def test_subset_of_subset_of_concat(self):
        self.check("Subset(Subset(ConcatDataset([a, Subset(b, [5, 3, 1]), c]), range(1, 19)), list(range(17, -1, -2)))")

    def test_random_split_in_workers(self):
        self.check("random_split(ConcatDataset([a, b, c]), [15, 8])[0]", workers=2)

    def test_kinds_of_indices(self):
        for indices in ("[3, 2, 1, 0, 9]", "(3, 3, 0)", "range(9, -1, -3)", "np.array([4, 1, 0])", "np.array([4, 1, 0], dtype=np.uint8)",
                        "torch.tensor([7, 6, 5])",
                        "list(np.arange(5)[::-1])", "list(torch.tensor([2, 4]))"):
            with self.subTest(indices):
                self.check("Subset(a, %s)" % indices)
                for name in os.listdir(self.spool):
                    os.unlink(os.path.join(self.spool, name))

    def test_negative_indices(self):
        self.check("ConcatDataset([a, b])", sampler="[-1, -16, 3, -7]")

    def test_an_index_outside(self):
        self.record("""
    loader = DataLoader(Subset(ConcatDataset([Part(1, 4), Part(2, 4)]), [1, 7, 8]), batch_size=4, sampler=[0, 1, 2, 3], collate_fn=list,
            num_workers=1, multiprocessing_context="fork")
    try:
        walk(loader)
    except IndexError:
        pass
""")
        self.assertEqual([p.ids for p in put_order(self.main_ring(), 1)], [[1 << 40 | 1, 2 << 40 | 3, -1, -1]])

    def test_subclasses(self):
        """Samples of one that overrides __getitem__ are its own; of one that does not, they are torch's Subset's."""
        self.record("""
    class Plain(Subset):
        pass
    class Own(Subset):
        def __getitem__(self, i):
            return 9, i
        def __getitems__(self, indices):
            return [(9, i) for i in indices]
    a = Part(1, 6)
    for data in Plain(a, [5, 4]), Own(a, [5, 4]), Subset(Own(a, [5, 4]), [1]):
        walk(DataLoader(data, batch_size=4, collate_fn=list))
""")
        main = self.main_ring()
        self.assertEqual([vars(d)["class"].split(".")[-1] for d in main.of("dataset")], ["Part", "Own", "Own"])
        self.assertEqual([l.dataset_id for l in main.of("loader")], [0, 2, 0])
        self.assertEqual([pairs(p.ids) for p in main.of("put")], [[[1, 5], [1, 4]], [], [[3, 1]]])

    def test_indices_of_the_users_own_kind_are_not_asked(self):
        self.record("""
    class Indices(list):
        def __getitem__(self, i):
            sys.stderr.write("asked " * ("dptrace_hook" in sys._getframe(1).f_code.co_filename))
            return list.__getitem__(self, i)
    walk(DataLoader(Subset(Part(1, 6), Indices([3, 4])), batch_size=4, collate_fn=list))
""")
        main = self.main_ring()
        self.assertEqual([(l.dataset_id, p.ids) for l in main.of("loader") for p in main.of("put")], [(0, [])])

    def test_one_number_for_one_object(self):
        """Also where it cannot be weakly referenced, and never one for two."""
        self.record("""
    class Slots:
        __slots__ = ("n",)
        def __len__(self):
            return 4
        def __getitem__(self, i):
            return 0, i
    data, other = [(0, 1)] * 4, [(0, 1)] * 4
    loaders = [DataLoader(d, batch_size=4, collate_fn=list) for d in (data, data, other, Slots(), Part(1, 4))]
    for loader in loaders:
        walk(loader)
    for i in range(20):
        walk(DataLoader([(i, i)] * 4, batch_size=4, collate_fn=list))
        walk(DataLoader(Part(i, 4), batch_size=4, collate_fn=list))
""")
        main = self.main_ring()
        self.assertEqual([l.dataset_id for l in main.of("loader")], [1, 1] + list(range(2, 45)))
        self.assertEqual([d.length for d in main.of("dataset")][:4], [4, 4, -1, -1])

    def test_persistent_workers_keep_their_copy(self):
        given = self.record("""
    whole = Subset(Part(1, 20), list(range(20)))
    loader = DataLoader(whole, batch_size=4, shuffle=True, collate_fn=list, num_workers=1, persistent_workers=True,
            multiprocessing_context="fork")
    told = walk(loader) + walk(loader)
    whole.indices.reverse()
    walk(loader)
    print(json.dumps(told))
""")
        puts = put_order(self.main_ring(), 1)
        self.assertEqual([pairs(p.ids) for p in puts], given + [[]] * 5,
                         "the workers do not see the new order of the indices: the ids would be wrong")

    def test_a_fork_describes_anew(self):
        self.record("""
    loader = DataLoader(Subset(Part(1, 4), [2]), batch_size=4, collate_fn=list)
    walk(DataLoader(Part(7, 4), batch_size=4, collate_fn=list))
    walk(loader)
    if os.fork() == 0:
        walk(loader)
        sys.exit(0)
    os.wait()
""")
        child, = [r for r in self.rings() if r.of("process")[0].kind == "fork"]
        self.assertEqual([(d.dataset, vars(d)["class"].split(".")[-1]) for d in child.of("dataset")], [(1, "Part")])
        self.assertEqual([pairs(p.ids) for p in child.of("put")], [[[1, 2]]])
        self.assertEqual({p.loader for p in child.of("put")}, {l.loader for l in child.of("loader")})

    def test_pickled_and_copied_loaders(self):
        out = self.run_both(DATA + """
if __name__ == "__main__":
    import copy, pickle
    loader = DataLoader(Subset(Part(1, 4), [2, 3]), batch_size=4, collate_fn=list, num_workers=1, multiprocessing_context="fork")
    for l in loader, pickle.loads(pickle.dumps(loader)), copy.deepcopy(loader), copy.copy(loader):
        print(walk(l))
""")
        self.assertTrue(out)
        self.assertEqual([l.loader for l in self.main_ring().of("loader")], [1, 2, 3, 4])
        self.assertEqual([pairs(p.ids) for p in self.main_ring().of("put")], [[[d, 2], [d, 3]] for d in (1, 2, 3, 1)])


class Columns(HookTest):
    def loaders(self, program, **options):
        code, out, err = self.run_program(DATA + "\nif __name__ == '__main__':\n" + program, **options)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return self.main_ring().of("loader")

    def test_samplers(self):
        found = self.loaders("""
    from torch.utils.data import BatchSampler, RandomSampler, SequentialSampler, Sampler
    from torch.utils.data.distributed import DistributedSampler
    a = Part(1, 12)
    class Mine(Sampler):
        def __init__(self):
            pass
        def __iter__(self):
            return iter([0])
        def __len__(self):
            raise RuntimeError("asked")
    class Shard(BatchSampler):
        def __init__(self, inner):
            self.batch_sampler = inner
        def __iter__(self):
            return iter(self.batch_sampler)
    class Repeat:  # as timm's
        def __init__(self, sampler):
            self.sampler = sampler
        def __iter__(self):
            return iter(self.sampler)
    class _DatasetSamplerWrapper(Dataset):  # as Lightning's
        def __init__(self, sampler):
            self._sampler = sampler
        def __len__(self):
            return 12
    class Wrapper(DistributedSampler):
        def __init__(self, sampler):
            super().__init__(_DatasetSamplerWrapper(sampler), num_replicas=2, rank=1, shuffle=False, seed=5)
    random_ = RandomSampler(a, replacement=True, num_samples=4)
    for options in (dict(shuffle=True, batch_size=4), dict(sampler=random_), dict(sampler=random_, batch_size=None), dict(sampler=Mine()),
                    dict(batch_sampler=Shard(BatchSampler(RandomSampler(a), 4, False))),
                    dict(batch_sampler=Repeat(BatchSampler(SequentialSampler(a), 4, False))),
                    dict(sampler=Wrapper(RandomSampler(a)))):
        walk(DataLoader(a, collate_fn=lambda s: [s] if type(s) is tuple else s, **options))
""")
        torch = "torch.utils.data.sampler."
        batch, random_, wrapper = torch + "BatchSampler > ", torch + "RandomSampler", "torch.utils.data.distributed.DistributedSampler"
        self.assertEqual([l.samplers.replace("<locals>.", "") for l in found], [
            batch + random_, batch + random_, random_, batch + "__main__.Mine(%sSampler)" % torch,
            "__main__.Shard(%sBatchSampler) > " % torch + batch + random_,
            "__main__.Repeat > " + batch + torch + "SequentialSampler", batch + "__main__.Wrapper(%s) > " % wrapper + random_])
        self.assertEqual([l.sampler.split(".")[-1] for l in found],
                         ["RandomSampler"] * 3 + ["Mine", "RandomSampler", "SequentialSampler", "Wrapper"])
        self.assertEqual([l.sampler_id for l in found], [1, 2, 2, 3, 4, 5, 6])
        self.assertEqual([l.replacement for l in found], ["no", "yes", "yes", "", "no", "", ""])
        self.assertEqual([l.batched for l in found], ["yes", "yes", "no"] + ["yes"] * 4)
        self.assertEqual([(l.shuffle, l.sampler_total, l.sampler_rank, l.sampler_replicas, l.sampler_seed) for l in found[-2:]],
                         [("", 0, -1, -1, -1), ("no", 12, 1, 2, 5)])

    def test_what_len_gave(self):
        self.loaders("""
    class Stream(IterableDataset):
        def __iter__(self):
            return iter([(0, 1)] * 3)
        def __len__(self):
            return 3
    for early, late in (True, False), (False, True), (False, False):
        loader = DataLoader(Stream(), collate_fn=list)
        if early:
            len(loader)
        for batch in loader:
            if late:
                len(loader)
""")
        main = self.main_ring()
        self.assertEqual([l.len_asked for l in main.of("loader")], [3, 0, 0])
        self.assertEqual([p.len_asked for p in main.of("pass") if p.phase == "end"], [3, 3, 0])

    def test_set_epoch(self):
        loader, = self.loaders("""
    from torch.utils.data.distributed import DistributedSampler
    class Mine(DistributedSampler):
        def set_epoch(self, epoch):
            super().set_epoch(epoch)
    a = Part(1, 12)
    unused, sampler = DistributedSampler(a, num_replicas=2, rank=0), Mine(a, num_replicas=2, rank=0)
    unused.set_epoch(7)
    loader = DataLoader(a, sampler=sampler, collate_fn=list)
    for epoch in range(2):
        sampler.set_epoch(epoch=epoch)  # the line
        walk(loader)
    sampler.set_epoch("three")
    for i in range(2000):
        unused.set_epoch(i)
""")
        told = self.main_ring().of("set_epoch")
        self.assertEqual([(s.sampler_id, s.epoch) for s in told[:3]], [(1, 7), (2, 0), (2, 1)])
        self.assertEqual(loader.sampler_id, 2)
        self.assertIn("super().set_epoch", open(told[1].file).read().splitlines()[told[1].line - 1])
        self.assertLess(len(told), 1001)

    def test_evil_classes_are_left_alone(self):
        """Datasets, samplers and attributes that answer to everything: nobody asks."""
        out = self.run_both(DATA + """
log = []
def ours():
    return "dptrace_hook" in sys._getframe(2).f_code.co_filename
def asked(name):
    def method(self, *args):
        if ours():
            log.append(name)
        return {"__len__": 4, "__bool__": True, "__hash__": 7, "__eq__": False, "__iter__": iter(range(4)), "__index__": 1,
                "__int__": 1}.get(name)
    return method
class Evil:
    for name in "__len__ __bool__ __hash__ __eq__ __iter__ __index__ __int__".split():
        locals()[name] = asked(name)
    def __getattr__(self, name):
        if ours():
            log.append(name)
        raise AttributeError(name)
    indices = cumulative_sizes = datasets = sampler = batch_sampler = epoch = property(asked("property"))
class EvilData(Evil, Dataset):
    def __getitem__(self, i):
        return 0, 1
class EvilSubset(Evil, Subset):
    def __init__(self):
        self.held = {Evil(): Evil(), "x": Evil()}
        self.more = [Evil(), (Evil(), {Evil()})]
    def __getitem__(self, i):
        return 0, 1
    def __getitems__(self, indices):
        return [(0, 1) for i in indices]
class EvilSampler(Evil):
    pass
if __name__ == "__main__":
    os.environ["WORLD_SIZE"] = "2"
    for data in EvilData(), EvilSubset(), Subset(EvilData(), [0, 1, 2, 3]), ConcatDataset([EvilData(), EvilSubset()]):
        for workers in 0, 1:
            loader = DataLoader(data, batch_size=2, sampler=EvilSampler(), collate_fn=list, num_workers=workers,
                    persistent_workers=bool(workers), multiprocessing_context="fork" if workers else None)
            for i in range(2):
                walk(loader)
    print(log)
""")
        self.assertEqual(out.strip(), "[]")
        self.assert_no_errors()


RANKS = """
import torch.distributed as dist
import torch.multiprocessing as mp

def start(rank, world):
    dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=rank, world_size=world)
    main(rank)
    dist.barrier()
    dist.destroy_process_group()

def launch(world):
    mp.spawn(start, (world,), nprocs=world)
"""


@unittest.skipIf(TORCH == (0, 0), "no torch")
class Groups(HookTest):
    def told(self, program, world=2):
        code, out, err = self.run_program(DATA + RANKS + program + "\nif __name__ == '__main__':\n    launch(%d)\n" % world)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        ranks = {}
        for ring in self.rings():
            rank = max([p.rank for p in ring.of("process")] or [-1])
            if rank >= 0:
                ranks[rank] = [(d.op, vars(d)["class"].split(".")[-1], d.ranks) for d in ring.of("dist") if d.op not in ("init", "end")]
        return ranks

    def exchanged(self, step, meetings=False):
        """What is told of a step on rank 0; meetings: the meetings between batch and step, which are told apart from it."""
        ranks = self.told("""
def main(rank):
    for _ in torch.utils.data.DataLoader([0, 1]):  # then the rank is told
        pass
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(2):
        loss = model(torch.ones(2, 4)).sum()
        optimizer.zero_grad()
        loss.backward()
        %s
        optimizer.step()
""" % step.replace("\n", "\n        "))
        ranks = {rank: [d for d in told if (d[0] == "meet") is meetings] for rank, told in ranks.items()}
        self.assertEqual([op for op, _, _ in ranks[0]], [op for op, _, _ in ranks[1]])
        return ranks[0]

    def test_gradients_one_by_one(self):
        self.assertEqual(self.exchanged("for p in model.parameters(): dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM)"),
                         [("reduce", "", [0, 1])])

    def test_gradients_flattened(self):
        self.assertEqual(self.exchanged("flat = torch.cat([p.grad.flatten() for p in model.parameters()])\ndist.all_reduce(tensor=flat)\n"
                                        "loss = loss.detach()\ndist.all_reduce(loss)"), [("reduce", "", [0, 1])])

    def test_losses_reduced(self):
        self.assertEqual(self.exchanged("x = loss.detach()\ndist.all_reduce(x)"), [("exchange", "all_reduce", [0, 1])])

    def test_activations_sent(self):
        self.assertEqual(self.exchanged("x = torch.ones(1)\ndist.send(x, 1) if rank == 0 else dist.recv(x, 0)")[0][0], "exchange")

    def test_objects_gathered(self):
        self.assertEqual(self.exchanged("x = [None, None]\ndist.all_gather_object(x, rank)"), [("exchange", "objects", [0, 1])])

    def test_nothing_exchanged(self):
        self.assertEqual(self.exchanged("dist.broadcast(torch.ones(1), 0)\ndist.barrier()"), [])

    def test_meetings(self):
        self.assertEqual(self.exchanged("dist.broadcast(torch.ones(1), 0)", meetings=True), [("meet", "broadcast", [0, 1])])

    def test_groups_of_the_program(self):
        ranks = self.told("""
def main(rank):
    m = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    own, other = dist.new_group([0, 1]), dist.new_group([2])
    group = dist.new_group([1, 2])
    dist.new_group()
    if rank < 2:
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1), process_group=own)
""", 3)
        ddp = [("ddp", "Linear", [0, 1, 2])]
        self.assertEqual(ranks, {0: ddp + [("group", "", [0, 1]), ("group", "", [0, 1, 2]), ("ddp", "Linear", [0, 1])],
                                 1: ddp + [("group", "", [0, 1]), ("group", "", [1, 2]), ("group", "", [0, 1, 2]),
                                           ("ddp", "Linear", [0, 1])],
                                 2: ddp + [("group", "", [1, 2]), ("group", "", [0, 1, 2])]})

    def test_join(self):
        ranks = self.told("""
def main(rank):
    m = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    with m.join(enable=False):
        m(torch.ones(4)).backward()
    for i in range(2):
        with m.join():
            pass
""")
        for rank in ranks:
            self.assertEqual([op for op, _, _ in ranks[rank]], ["ddp", "join"])

    @unittest.skipIf(TORCH < (2, 2), "no DeviceMesh")
    def test_meshes(self):
        ranks = self.told("""
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
def main(rank):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    mesh["tp"]
    try:
        from torch.distributed.fsdp import fully_shard
    except ImportError:
        return
    fully_shard(torch.nn.Linear(4, 4), mesh=mesh["dp"])
    fully_shard(torch.nn.Linear(4, 4), mesh=mesh)
    fully_shard(torch.nn.Linear(4, 4))
""", 4)
        for rank in range(4):
            dp, tp = sorted([rank, (rank + 2) % 4]), [rank & 2, rank & 2 | 1]
            self.assertEqual(ranks[rank][:3], [("mesh", "dp,tp", [0, 1, 2, 3]), ("mesh_dim", "dp", dp), ("mesh_dim", "tp", tp)])
            if TORCH >= (2, 6):
                self.assertEqual([(op, r) for op, _, r in ranks[rank][3:]], [("fsdp", dp), ("fsdp", [0, 1, 2, 3]), ("fsdp", tp)])


if __name__ == "__main__":
    unittest.main()
