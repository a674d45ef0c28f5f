"""Digests of samples, leftovers of drop_last, data files that are open."""
import collections
import dataclasses
import os
import sys
import tempfile
import unittest

import numpy as np
import torch

from harness import PRELUDE, PYTHON, HookTest, versions

sys.path.insert(0, PYTHON)
from dptrace_hook.read import digests, open_files, sample  # noqa: E402

ALL, SOME, LITTLE, STRINGS, INTEGERS, LEFT, BRIEF = 1, 2, 4, 8, 16, 32, 128
Pair = collections.namedtuple("Pair", "x y")


@dataclasses.dataclass
class Record:
    x: object
    y: int


class Called(Exception):
    pass


class Evil:
    """Of a program: every way to ask it something raises."""

    def _called(self, *args, **kwargs):
        raise Called()

    __len__ = __iter__ = __eq__ = __hash__ = __getattr__ = __bool__ = __repr__ = __str__ = __getitem__ = _called
    __contains__ = __array__ = __index__ = _called
    __lt__ = __getstate__ = __reduce__ = __reduce_ex__ = __bytes__ = __float__ = __int__ = keys = items = _asdict = _called


class Meta(type):
    def __eq__(cls, other):
        raise Called()

    def __hash__(cls):
        raise Called()


class EvilDict(dict):
    __len__ = __iter__ = __getitem__ = items = keys = values = Evil._called


class EvilList(list):
    __len__ = __iter__ = __getitem__ = Evil._called


class EvilTuple(tuple):
    _fields = ("x",)
    __len__ = __iter__ = __getitem__ = __getattribute__ = Evil._called


@dataclasses.dataclass
class EvilRecord:
    x: object
    __getattribute__ = Evil._called


class WithMeta(metaclass=Meta):
    pass


class EvilText(str):
    __len__ = __eq__ = encode = __getitem__ = Evil._called
    __hash__ = str.__hash__


class EvilNumber(int):
    __eq__ = bit_length = __index__ = __format__ = __str__ = Evil._called
    __hash__ = int.__hash__


class EvilArray(np.ndarray):
    dtype = shape = property(Evil._called)
    tobytes = reshape = Evil._called


EVIL_ARRAY = np.zeros(3).view(EvilArray)


class EvilTensor(torch.Tensor):
    data_ptr = stride = is_contiguous = Evil._called

    @classmethod
    def __torch_function__(cls, *args, **kwargs):
        raise Called()


def read(obj, whole=True):
    sample.bind()
    return sample.read(obj, 1 << 40 if whole else 0)


def contents(obj, whole=True):
    return read(obj, whole)[1]


def evens(t):
    """The same values in memory that is not contiguous."""
    out = torch.zeros(tuple(t.shape) + (2,), dtype=t.dtype)[..., 0]
    out.copy_(t)
    assert t.numel() < 2 or not out.is_contiguous()
    return out


class Read(unittest.TestCase):
    """One sample, by itself."""

    def test_equal_contents_are_equal(self):
        image = torch.arange(30000, dtype=torch.float32).reshape(3, 100, 100)
        array = np.arange(30000, dtype=np.float32).reshape(3, 100, 100)
        with tempfile.TemporaryDirectory() as folder:
            np.save(folder + "/a.npy", array)
            mapped = np.load(folder + "/a.npy", mmap_mode="r")
            for name, a, b in (
                    ("another object", torch.ones(5) * 3, torch.ones(5) * 3),
                    ("another layout", torch.arange(12.).reshape(3, 4), torch.arange(12.).reshape(3, 4).t().contiguous().t()),
                    ("another layout, large", image, image.permute(1, 2, 0).contiguous().permute(2, 0, 1)),
                    ("gaps", image, evens(image)), ("gaps, bfloat16", image.bfloat16(), evens(image.bfloat16())),
                    ("expanded", torch.ones(3, 4), torch.ones(3, 1).expand(3, 4)),
                    ("at an offset", image[1], image[1].clone()), ("no dimension", torch.tensor(5), torch.tensor([4, 5])[1]),
                    ("requires grad", torch.ones(3), torch.ones(3, requires_grad=True)),
                    ("array in Fortran's order", array, np.asfortranarray(array)),
                    ("array with negative strides", array, array[::-1].copy()[::-1]),
                    ("memmap", array, mapped), ("texts of arrays", np.array(["a", "bc"]), np.array(["a", "bc"])),
                    ("NumPy's integer", 5, np.int64(5)), ("NumPy's text", "abc", np.str_("abc")),
                    ("dates", np.datetime64(3, "D"), np.datetime64(3, "D")),
                    ("containers", (1, [2.5, {"a": None}]), (1, [2.5, {"a": None}])), ("ordered", {"a": 1}, collections.OrderedDict(a=1)),
                    ("long list", list(range(500)), list(range(500))), ("very long list", list(range(9000)), list(range(9000))),
                    ("named", Pair(1, image), Pair(1, image.clone())), ("record", Record(1, 2), Record(1, 2)),
                    ("surrogates", "\udc80", "\udc80"), ("large integer", 10**400, 10**400), ("long text", "ab" * 50000, "ab" * 50000)):
                for whole in (True, False):
                    self.assertNotEqual(read(a, whole)[0], 0, name)
                    self.assertEqual(read(a, whole)[:3], read(b, whole)[:3], (name, whole))

    def test_one_difference_is_one(self):
        """Bit for bit where all of it went in."""
        image = torch.arange(30000, dtype=torch.float32).reshape(3, 100, 100)
        other = image.clone()
        other[1, 50, 37] += 1
        array, changed = image.numpy().copy(), other.numpy().copy()
        zeros = torch.zeros(2, dtype=torch.float64)
        nan = np.array([0x7ff8000000000000, 0x7ff8000000000001], dtype=np.uint64).view(np.float64)
        for name, a, b in (
                ("a pixel", image, other), ("a pixel, permuted", image.permute(1, 2, 0), other.permute(1, 2, 0)),
                ("of an array", array, changed),
                ("of an array, permuted", array.transpose(), changed.transpose()), ("dtype", zeros, zeros.to(torch.int64)),
                ("shape", torch.zeros(2, 3), torch.zeros(3, 2)),
                ("sign of zero", zeros, -zeros), ("payload of nan", nan[:1], nan[1:]), ("float", 1.0, 1.5), ("type of number", 1, 1.0),
                ("bool", True, 1),
                ("none", None, False), ("text", "a", "b"), ("bytes", "a", b"a"), ("border of texts", ("ab", "c"), ("a", "bc")),
                ("order", (1, 2), (2, 1)),
                ("structure", (1, (2, 3)), ((1, 2), 3)), ("key", {"a": 1}, {"b": 1}), ("number or text", 12, "12"),
                ("length", [1, 2], [1, 2, 2]),
                ("long list", list(range(500)), list(range(499)) + [7]), ("very long list", list(range(9000)), list(range(8999)) + [7]),
                ("long text", "ab" * 50000, "ab" * 49999 + "ba"), ("large integer", 10**400, 10**400 + 1), ("complex", 1j, 2j),
                ("array or tensor", torch.zeros(2), np.zeros(2, dtype=np.float32)), ("fields", np.zeros(1, "i4,i4"), np.zeros(1, "i4,f4"))):
            self.assertNotEqual(contents(a), contents(b), name)

    def test_chunks(self):
        """Of large arrays as many bytes as are not noticed; the kind says it, and that some was not looked at."""
        image = torch.arange(150528, dtype=torch.float32).reshape(3, 224, 224)
        other = image.clone()
        other.view(-1)[200] += 1  # between the first two chunks
        third = image.clone()
        third[0, 0, 0] += 1
        for a, b, c in ((image, other, third), (image.numpy(), other.numpy(), third.numpy()), (evens(image), evens(other), evens(third))):
            self.assertEqual([read(s, whole)[0] for s in (a, b) for whole in (True, False)], [ALL, SOME] * 2)
            self.assertEqual(contents(a, False), contents(b, False))
            self.assertNotEqual(contents(a), contents(b))
            self.assertNotEqual(contents(a, False), contents(c, False))
        for long in ("xy" * 40000, b"xy" * 40000, list(range(9000)), [0.5] * 9000):
            self.assertEqual((read(long, False)[0] & (ALL | SOME), read(long)[0] & (ALL | SOME)), (SOME, ALL), type(long))

    def test_room(self):
        """What is left of the bytes that go in whole decides, and what was taken is said."""
        image = torch.zeros(100, 100)
        sample.bind()
        self.assertEqual(sample.read((image, image), 50000)[::3], (SOME | LITTLE, 40000))
        self.assertEqual(sample.read((image, image), 80000)[::3], (ALL | LITTLE, 80000))
        self.assertEqual(sample.read(torch.ones(1024), 0)[::3], (ALL, 0), "small ones need no room")

    def test_metas_survive_augmentation(self):
        x = torch.rand(3, 20, 20)
        for name, a, b, kind in (
                ("label", (x, 3), (x + 1, 3), INTEGERS), ("path", (x, 3, "a.jpg"), (x.flip(0), 3, "a.jpg"), STRINGS),
                ("bytes", (x, b"key"), (-x, b"key"), STRINGS),
                ("tokens", {"ids": list(range(40)), "x": 0.5}, {"ids": list(range(40)), "x": 0.25}, INTEGERS),
                ("NumPy's", (x, np.int32(3)), (x + 1, np.int64(3)), INTEGERS),
                ("a long text beside it", ("z" * 70000, 7), ("y" * 70000, 7), INTEGERS)):
            self.assertEqual(read(a)[2], read(b)[2], name)
            self.assertNotEqual(read(a)[1], read(b)[1], name)
            self.assertEqual(read(a)[0] & (STRINGS | INTEGERS), kind, name)
            self.assertEqual(read(a)[2], read(a, False)[2], name)
        for name, a, b in (("label", (x, 3), (x, 4)), ("key", {"a": 3}, {"b": 3}), ("path", (x, "a"), (x, "b"))):
            self.assertNotEqual(read(a)[2], read(b)[2], name)
        for nothing in (x, (x, 0.5, True, None), "z" * 70000):
            self.assertEqual(read(nothing)[2], bytes(16))
            self.assertEqual(read(nothing)[0] & (STRINGS | INTEGERS), 0)

    def test_next_to_nothing(self):
        for little in (torch.zeros(3, 224, 224), np.full((5, 5), 255, np.uint8), (torch.zeros(4), 3), 7, (1, True), "abc"[:2],
                       torch.zeros(0), [], ):
            kind = read(little)[0]
            self.assertTrue(kind == 0 or kind & LITTLE, little)
        spot = torch.zeros(3, 224, 224)
        spot[1, 100, 101] = 1
        for enough in (torch.tensor(7), torch.full((4,), 3.0), (torch.zeros(4), "a.jpg"), 1234, 0.0, "abcd", spot, np.arange(3)):
            self.assertEqual(read(enough)[0] & LITTLE, 0, enough)

    def test_parts(self):
        """Each leaf of a sample has a digest, whatever the others are; a sample that is one leaf has none."""
        def parts(obj, whole=True):
            held = read(obj, whole)[4]
            return [held[i:i + 8] for i in range(0, len(held), 8)]
        x, image = torch.rand(4, 4), torch.rand(3, 64, 64)
        a, b = parts((x, 0.5, 1, "a.jpg")), parts((x.clone(), 0.75, 0, "a.jpg"))
        self.assertEqual([i for i in range(4) if a[i] == b[i]], [0, 3])
        self.assertEqual([p[0] & 7 for p in a], [0, 6, 2, 4])
        self.assertEqual(parts({"x": image, "t": 1.5})[0], parts({"x": image.clone(), "t": 2.5})[0])
        self.assertNotEqual(parts({"x": image, "t": 1.5})[0], parts({"x": image + 1, "t": 1.5})[0])
        pieces = parts({"x": image, "t": 1.5}, whole=False)
        self.assertEqual([p[0] & 7 for p in pieces], [1, 6])
        self.assertEqual(parts(((x, [1.5, 2]), list(range(40))))[0], a[0])
        self.assertEqual(parts(x), [])
        self.assertEqual(len(parts([0.5] * 9 + ["a"] * 9)), sample.MAX_PARTS)
        self.assertEqual(sample.names({"x": image, "meta": {"t": 1.5, "who": (1, 2)}, "ids": list(range(40))}),
                         ["x", "meta.t", "meta.who.0", "meta.who.1", "ids"])
        self.assertEqual(sample.names(Record(1, 2)), ["x", "y"])
        self.assertEqual(sample.names(Pair(1, x)), ["0", "1"])

    def test_brief(self):
        for brief in (5, "images/a.jpg", torch.rand(3, 8), ("shard", 5, np.arange(100.))):
            self.assertTrue(read(brief)[0] & BRIEF, brief)
        for long in (torch.rand(300), "a" * 1100, list(range(200)), (5, torch.rand(3, 64, 64))):
            self.assertFalse(read(long)[0] & BRIEF)

    def test_rows(self):
        """What became of each sample in a batch, whatever its shape."""
        sample.bind()
        x = torch.rand(4, 3)
        row = lambda batch, k, n=4: contents(sample.rows(batch, n)(k))  # noqa: E731
        for batch in (x, x.numpy(), (x, torch.arange(4)), [x, torch.arange(4)], {"x": x, "y": ["a", "b", "c", "d"]}, Pair(x, x),
                      ((x[0], x[1], x[2], x[3]), (1, 2, 3, 4)), [x[0], x[1], x[2], x[3]], {"x": x, "scale": 2.0}, list(x.clone())):
            self.assertEqual(len({row(batch, k) for k in range(4)}), 4, batch)
            self.assertEqual(row(batch, 2), row(batch, 2))
        self.assertEqual(row(x, 1), row(x.clone().requires_grad_(), 1))
        for other in (torch.rand(3, 3), torch.tensor(5.), (x, torch.rand(7)), {"flat": torch.rand(9), "y": torch.arange(4)}, object(), "abcd", 5, None,
                      EvilList([1, 2, 3, 4]), EVIL_ARRAY, x.as_subclass(EvilTensor), torch.sparse_coo_tensor([[0], [1]], [1.0], (4, 3))):
            with torch._C.DisableTorchFunction():
                self.assertIsNone(sample.rows(other, 4), type(other))

    def test_what_cannot_be_read_is_left_out(self):
        x = torch.ones(3)
        strange = [object(), x.to_sparse(), torch.nn.Parameter(x), np.array([{}, 1], dtype=object), np.ma.array([1]), {1, 2}, range(3),
                   Evil(), EvilDict(a=1),
                   EvilList([1]), WithMeta(), EvilText("a"), EvilNumber(1), EVIL_ARRAY, x.as_subclass(EvilTensor),
                   torch.empty(3, device="meta") if versions("torch") >= (1, 9) else object(),
                   torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)]
        if versions("torch") >= (1, 10):
            strange += [torch.ones(3, dtype=torch.complex64).conj(), torch.ones(3, dtype=torch.complex64).conj().imag]
        emptied = torch.ones(30)
        (emptied.untyped_storage() if hasattr(emptied, "untyped_storage") else emptied.storage()).resize_(0)
        strange.append(emptied)
        for i, each in enumerate(strange):
            self.assertEqual(read(each)[:3], (0, bytes(16), bytes(16)), i)
            self.assertEqual(read((each, x))[0], ALL | LEFT | BRIEF, i)
            self.assertEqual(read({"a": each, "b": x})[0], ALL | LEFT | BRIEF, i)
        deep = x
        for _ in range(10):
            deep = [deep]
        self.assertEqual(read(deep)[0], 0)
        self.assertEqual(read([[0.5, i] for i in range(300)])[0] & LEFT, LEFT)
        loop = [1.5, 2]
        loop.append(loop)
        self.assertEqual(read(loop)[0] & LEFT, LEFT)
        self.assertEqual(read({(1, 2): x, "a": 1})[0] & LEFT, LEFT)

    def test_nothing_of_the_program_is_called(self):
        """Also of classes that are read: their own methods are not."""
        self.assertEqual(read(EvilTuple((1, 2)))[:3], read(Pair(1, 2))[:3])
        evil = EvilRecord(5)
        self.assertEqual(read(evil)[0] & 3, ALL)
        key = {EvilText("a"): 1, "b": 2}
        self.assertEqual(read(key)[0], ALL | LITTLE | INTEGERS | LEFT | BRIEF)
        self.assertEqual(read([WithMeta()] * 20)[0], 0)
        self.assertEqual(read([1] * 20 + [WithMeta()])[0] & LEFT, LEFT)

    def test_the_sample_stays_as_it_is(self):
        x = torch.rand(100, 100)
        state, version = torch.get_rng_state(), x._version
        for s in (x, evens(x), (x, x)):
            for whole in (True, False):
                read(s, whole)
        self.assertEqual(x._version, version)
        self.assertTrue(torch.equal(torch.get_rng_state(), state))
        x.resize_(200, 200)  # Tensor.numpy() forbids it for ever

    def test_indices(self):
        sample.bind()
        for asked, n, found in (([3, 4], 2, [3, 4]), ((3,), 1, (3,)), ([np.int64(3), np.int32(4)], 2, [3, 4]), ([3, 4], 1, None),
                                ([None, None], 2, None),
                                (["a"], 1, None), ([True], 1, None), ([2**63], 1, None), ([[1, 2]], 1, None), ([torch.tensor(1)], 1, None),
                                ([], 0, None),
                                (None, 1, None), ([WithMeta()], 1, None), ([1, 2.0], 2, None)):
            self.assertEqual(digests.indices_of(asked, n), found, repr(asked) if n else "")


class Budget(unittest.TestCase):
    """How many samples: one in 2^power, so that their digests take one part in SHARE of the fetches' time."""

    def test_power(self):
        for per_sample, each, power in ((8000000, 20000, 0), (1000000, 20000, 1), (3000, 4000, 8), (1, 4000, 19),
                                        (0, 4000, digests.MAX_POWER)):
            b = digests.Budget(digests.FREE_NS, digests.SHARE)
            for _ in range(200):
                b.took(each, 1)
                b.fetch(32 * per_sample, 32)
            self.assertEqual(b.power, power, (per_sample, each))
            cost, share = each * b.samples, b.fetched / digests.SHARE
            self.assertTrue(power == digests.MAX_POWER or cost <= share * 2**power, (per_sample, each))

    def test_later_passes_take_fewer_of_the_same(self):
        first, later = digests.Budget(digests.FREE_NS, digests.SHARE), digests.Budget(digests.FREE_NS // digests.LATER, digests.SHARE * digests.LATER)
        for b in first, later:
            for _ in range(200):
                b.took(20000, 1)
                b.fetch(32 * 1000000, 32)
        self.assertEqual((first.power, later.power), (1, 3))

    def test_long_ones_take_fewer_of_the_same(self):
        b, powers = digests.Budget(digests.FREE_NS, digests.SHARE), []
        for _ in range(4000):  # 20 us for each of 32 that take 2.5 ms, for 320 s
            b.took(20000, 1)
            b.fetch(32 * 2500000, 32)
            powers.append(b.power)
        self.assertEqual(powers[digests.EAGER_NS // (32 * 2500000)], 0)
        self.assertEqual((powers[-1], powers), (2, sorted(powers)))

    def test_a_neighbour_counts_little(self):
        b = digests.Budget(digests.FREE_NS, digests.SHARE)
        b.took(10**9, 1)
        self.assertLess(b.spent, 10**5)
        self.assertLess(b.each, 2 * digests.GUESS_NS)

    def test_it_comes_down_again_but_not_for_a_little(self):
        b = digests.Budget(digests.FREE_NS, digests.SHARE)
        b.each = 4000
        b.fetch(32 * 3000, 32)
        self.assertEqual(b.power, 8)
        b.fetch(32 * 4500, 32)
        self.assertEqual(b.power, 8)
        for _ in range(50):
            b.fetch(32 * 10000000, 32)
        self.assertEqual(b.power, 0)

    def test_which(self):
        d = digests.Digests(digests.Budget(digests.FREE_NS, digests.SHARE), False)
        self.assertEqual(list(d.chosen(40, 3, 20, None)), list(range(3, 20)), "all, while they have cost next to nothing")
        d.budget.spent, d.budget.power = digests.FREE_NS, 3
        self.assertEqual([40 + k for k in d.chosen(40, 3, 20, None)], [48, 56])
        self.assertEqual([39 + k for k in d.chosen(39, 1, 2, None)], [40])
        self.assertEqual(d.chosen(40, 1, 5, [8, 16, 3, 0, -8]), [1, 3, 4])


PROGRAMS = PRELUDE + """
class Stream(IterableDataset):
    def __init__(self, shard=False, n=100):
        self.shard, self.n = shard, n
    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        for i in range(self.n):
            if not self.shard or info is None or i % info.num_workers == info.id:
                yield torch.arange(3.) + 1000 * i, "key %d" % i

class Large(IterableDataset):
    def __iter__(self):
        for i in range(40):
            yield torch.full((70, 70), float(i) + 1)

class Mapped(Dataset):
    def __init__(self, n=96):
        self.n = n
    def __len__(self):
        return self.n
    def __getitem__(self, i):
        return torch.arange(3.) + 1000 * i + self.noise(), i % 5, "file %d" % i
    def noise(self):
        return 0

class Noisy(Mapped):
    def noise(self):
        return torch.rand(3)
"""


class Records(HookTest):
    def record(self, program, digest="budget"):
        self.session(digest=digest)
        code, out, err = self.run_program(program, prelude=PROGRAMS)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return out

    def digests(self, by_process=False):
        """{(loader, pass, worker[, pid]): {position: (index, kind, contents, metas)}}"""
        found = {}
        for ring in self.rings():
            for d in ring.of("digest"):
                stream = found.setdefault((d.loader, d.pass_, d.worker) + (ring.pid,) * by_process, {})
                for k, position in enumerate(d.positions):
                    self.assertNotIn(position, stream)
                    stream[position] = (d.indices[k] if d.indices else None, d.kinds[k], d.contents[k], d.metas[k])
        return found

    def test_workers_that_do_not_share_the_work(self):
        for method in ("fork", "spawn"):
            for shard in (False, True):
                self.clear()
                self.record("""
                    if __name__ == "__main__":
                        for batch in DataLoader(Stream(%s), batch_size=8, num_workers=2, multiprocessing_context=%r):
                            pass
                    """ % (shard, method))
                found = self.digests()
                self.assertEqual(set(found), {(0, 0, 0), (0, 0, 1)})
                a, b = found[0, 0, 0], found[0, 0, 1]
                self.assertLessEqual(set(range(32)), set(a) & set(b), "the first of each, at the same positions")
                self.assertEqual({kind for stream in (a, b) for _, kind, _, _ in stream.values()}, {ALL | STRINGS | BRIEF})
                same = [p for p in a if p in b and a[p] == b[p]]
                self.assertEqual(len(same), 0 if shard else len(set(a) & set(b)), (method, shard))
                self.assertEqual(len({s[2] for stream in (a, b) for s in stream.values()}), len(a) + len(b) if shard
                                 else len(set(a) | set(b)))

    def clear(self):
        for name in os.listdir(self.spool):
            os.unlink(os.path.join(self.spool, name))

    def test_by_index(self):
        """The same index in another pass, in another worker and at another place: the same digest, unless it was augmented."""
        for cls in ("Mapped", "Noisy"):
            self.clear()
            self.record("""
                if __name__ == "__main__":
                    loader = DataLoader(%s(), batch_size=8, shuffle=True, num_workers=2, multiprocessing_context="fork")
                    for epoch in range(2):
                        for batch in loader:
                            pass
                    for batch in DataLoader(%s(), batch_size=8, shuffle=True):
                        pass
                """ % (cls, cls))
            found = sorted(key[:3] for key in self.digests(by_process=True))
            self.assertEqual(found, [(0, 0, 0), (0, 0, 0), (0, 0, 1), (0, 0, 1), (2, 0, -1)])
            by_index = {}
            for ring in self.rings():
                puts = {p.batch: p.indices for p in ring.of("put")} if ring.of("loader") else None
                for d in ring.of("digest"):
                    for k, index in enumerate(d.indices):
                        by_index.setdefault(index, []).append((d.contents[k], d.metas[k]))
                    if puts is not None:
                        self.assertEqual(d.indices, [puts[d.batch][p - 8 * d.batch] for p in d.positions])
            several = [s for s in by_index.values() if len(s) > 1]
            self.assertGreater(len(several), 10)
            for s in several:
                self.assertEqual(len({metas for _, metas in s}), 1)
                self.assertEqual(len({contents for contents, _ in s}), 1 if cls == "Mapped" else len(s))

    def test_positions_are_those_before_collate(self):
        """Samples that the collate function filters out, samples that are no list, and lists that are one sample."""
        self.record("""
            def some(samples):
                return torch.stack([s[0] for s in samples if s is not None])
            class Holes(Mapped):
                def __getitem__(self, i):
                    return None if i % 3 == 0 else super().__getitem__(i)
            class Lists(Mapped):
                def __getitem__(self, i):
                    return [torch.full((2,), float(i) + 1), "one", "two"]
            class Named(Mapped):
                def __getitem__(self, name):
                    return name * 4
            class Many(Mapped):
                def __getitems__(self, indices):
                    return tuple(self[i] for i in indices)
            if __name__ == "__main__":
                for batch in DataLoader(Holes(12), batch_size=4, collate_fn=some):
                    pass
                for batch in DataLoader(Lists(12), batch_size=None):
                    pass
                for batch in DataLoader(Many(12), batch_size=4):
                    pass
                for batch in DataLoader(Named(), sampler=["abcd", "efgh"], batch_size=None, collate_fn=str):
                    pass
            """)
        found = self.digests()
        self.assertEqual(sorted(found[1, 0, -1]), list(range(12)))
        self.assertEqual({found[1, 0, -1][p][1] for p in (0, 3, 6, 9)}, {ALL | LITTLE | BRIEF})
        self.assertEqual([(s[0], s[1]) for _, s in sorted(found[2, 0, -1].items())], [(i, ALL | STRINGS | BRIEF) for i in range(12)])
        self.assertEqual([s[0] for _, s in sorted(found[3, 0, -1].items())], list(range(12)))
        self.assertEqual([s[0] for _, s in sorted(found[4, 0, -1].items())], [None, None])

    def test_rows_of_the_batch(self):
        """A collate function of the program's reads by what the samples name: the batch tells, not the samples."""
        for collate, rowed in (("read", 1), ("None", 0), ("lambda keys: read(keys)[:-1]", 1)):
            self.clear()
            self.record("""
                rows = torch.arange(160.).reshape(160, 1).repeat(1, 3)
                class Keys(IterableDataset):
                    def __iter__(self):
                        return iter(["k%%d" %% k for k in range(80)])
                def read(keys):
                    first = 80 * torch.utils.data.get_worker_info().id
                    return torch.stack([rows[first + int(k[1:])] for k in keys])
                if __name__ == "__main__":
                    for batch in DataLoader(Keys(), batch_size=8, num_workers=2, collate_fn=%s):
                        pass
                """ % collate)
            records = [d for ring in self.rings() for d in ring.of("digest")]
            self.assertEqual({d.rowed for d in records}, {rowed}, collate)
            at = {w: {p: c for d in records if d.worker == w for p, c in zip(d.positions, d.contents)} for w in (0, 1)}
            self.assertEqual(at[0], at[1], "the samples are equal")
            rows = [set(r for d in records if d.worker == w for r in d.rows) for w in (0, 1)]
            kinds = {k for d in records for k in d.row_kinds}
            if rowed and collate == "read":
                self.assertEqual((len(rows[0]), len(rows[1]), len(rows[0] & rows[1])), (80, 80, 0), "what they have become is not")
                self.assertEqual(kinds, {ALL | BRIEF, ALL | BRIEF | LITTLE})
            elif rowed:
                self.assertEqual(kinds, {0}, "a batch of another length")

    def test_parts_and_their_names(self):
        self.record("""
            import time
            class Readings(IterableDataset):
                def __init__(self):
                    self.x = torch.rand(40, 5)
                def __iter__(self):
                    for x in self.x:
                        yield {"x": x, "worker": torch.utils.data.get_worker_info().id, "t": time.time()}
            if __name__ == "__main__":
                for _ in range(2):
                    for batch in DataLoader(Readings(), batch_size=8, num_workers=2):
                        pass
            """)
        records = [d for ring in self.rings() for d in ring.of("digest")]
        self.assertEqual(sorted(d.names for d in records if d.names), ["x,worker,t"] * 4)
        parts = {w: {p: c for d in records if d.worker == w for p, c in zip(d.positions, d.parts)} for w in (0, 1)}
        self.assertEqual({len(p) for of in parts.values() for p in of.values()}, {3})
        equal = [[parts[0][p][i] == parts[1][p][i] for p in range(40)] for i in range(3)]
        self.assertEqual([set(e) for e in equal], [{True}, {False}, {False}])
        self.assertEqual(len({p[1] for p in parts[0].values()}), 1, "a worker's number")

    def test_collate_that_fails(self):
        """What was read before it is not lost."""
        self.record("""
            class Keys(IterableDataset):
                def __iter__(self):
                    return iter(["key %d" % k for k in range(80)])
            def read(keys):
                if "key 20" in keys:
                    raise ValueError("no such key")
                return torch.zeros(len(keys))
            if __name__ == "__main__":
                try:
                    for batch in DataLoader(Keys(), batch_size=8, collate_fn=read):
                        pass
                except ValueError:
                    pass
            """)
        records = [d for ring in self.rings() for d in ring.of("digest")]
        self.assertEqual([len(d.positions) for d in records], [8, 8, 8])
        self.assertEqual(set(records[-1].row_kinds), {0})

    def test_how_many(self):
        program = """
            if __name__ == "__main__":
                for workers in (2, 0):
                    for batch in DataLoader(Large(), batch_size=4, num_workers=workers,
                            multiprocessing_context="fork" if workers else None):
                        pass
            """
        self.record(program, digest="off")
        self.assertEqual(self.digests(), {})
        self.clear()
        self.record(program, digest="full")
        for stream in self.digests().values():
            self.assertEqual([(p, s[1]) for p, s in sorted(stream.items())], [(p, ALL) for p in range(40)])

    def test_first_whole_then_chunks(self):
        self.change("digests", "FIRST_NS = DEBT_NS = FREE_NS = 1 << 60\n")
        self.record("""
            if __name__ == "__main__":
                for epoch in range(2):
                    for batch in DataLoader(Large(), batch_size=5):
                        pass
            """)
        for stream in self.digests().values():
            self.assertEqual([s[1] for _, s in sorted(stream.items())], [ALL] * 32 + [SOME] * 8)
        self.clear()
        self.change("digests", "FIRST_BYTES = 100000\n")
        self.record("""
            if __name__ == "__main__":
                for batch in DataLoader(Large(), batch_size=5):
                    pass
            """)
        for stream in self.digests().values():
            self.assertEqual([s[1] for _, s in sorted(stream.items())], [ALL] * 5 + [SOME] * 35)

    def test_once_there_is_no_time(self):
        """Multiples of a power of two, of positions and of indices; the first of a pass that costs too much are not all taken."""
        self.change("digests", "FREE_NS = FIRST_NS = 0\nDEBT_NS = 0\nSHARE = 10**12\n")
        self.record("""
            if __name__ == "__main__":
                for batch in DataLoader(Stream(n=5000), batch_size=50):
                    pass
                for batch in DataLoader(Mapped(5000), batch_size=50, shuffle=True):
                    pass
            """)
        found = self.digests()
        self.assertLess(len(found.get((1, 0, -1), {})), 100)
        self.assertLess(len(found.get((2, 0, -1), {})), 100)

    def test_workers_of_later_passes_take_fewer(self):
        self.change("digests", "FREE_NS = FIRST_NS = 1 << 60\nLATER = 1 << 60\nSHARE = 10**12\n")
        self.record("""
            if __name__ == "__main__":
                loader = DataLoader(Mapped(500), batch_size=50, num_workers=1, multiprocessing_context="fork")
                for epoch in range(4):
                    for batch in loader:
                        pass
                for batch in DataLoader(Mapped(500), batch_size=50, num_workers=1, multiprocessing_context="fork"):
                    pass
            """)
        took = sorted(len(samples) for samples in self.digests(by_process=True).values())
        self.assertEqual([n if n > 100 else "few" for n in took], ["few", "few", 500, 500, 500], took)

    def test_an_error_of_ours_ends_digests_only(self):
        self.change("sample", "def read(*args):\n    raise ValueError('planted')\n")
        self.session(digest="budget")
        code, out, err = self.run_program("""
            if __name__ == "__main__":
                for batch in DataLoader(Mapped(400), batch_size=4):
                    pass
            """, prelude=PROGRAMS)
        self.assertEqual(code, 0, err)
        ring = self.main_ring()
        self.assertEqual((ring.of("digest"), len(ring.of("fetch"))), ([], 100))
        self.assertEqual([e.count for e in ring.of("errors")], [1])

    def test_samples_of_all_kinds_change_nothing(self):
        """The program's own classes among them, and a mode of its own that would see each call into torch."""
        self.session(digest="full")
        self.run_both("""
            class Called(Exception):
                pass
            def called(*args, **kwargs):
                raise Called()
            class Evil:
                __len__ = __iter__ = __eq__ = __getattr__ = __bool__ = __repr__ = __getitem__ = called
                __hash__ = None
            class Odd(Noise):
                def __getitem__(self, i):
                    x = super().__getitem__(i)
                    return {"x": x, "evil": Evil(), "big": torch.rand(60, 60).t(), "flipped": np.random.rand(50, 50)[::-1], "s": "%d" % i}
            def pick(samples):
                for s in samples:
                    s["big"].t().resize_(10)  # after Tensor.numpy() it could not be
                return torch.stack([s["x"] for s in samples])
            def seeds():
                torch.manual_seed(1); random.seed(1); np.random.seed(1)
            if __name__ == "__main__":
                for workers in (0, 2):
                    seeds()
                    fit(DataLoader(Odd(), batch_size=4, shuffle=True, num_workers=workers, collate_fn=pick,
                            multiprocessing_context="fork" if workers else None))
                    print(torch.rand(1), random.random(), np.random.rand())
                try:
                    from torch.overrides import TorchFunctionMode
                except ImportError:
                    TorchFunctionMode = None
                if TorchFunctionMode is not None and hasattr(torch, "set_default_device"):
                    class Count(TorchFunctionMode):
                        seen = 0
                        def __torch_function__(self, func, types, args=(), kwargs=None):
                            Count.seen += 1
                            return func(*args, **(kwargs or {}))
                    with Count():
                        for batch in DataLoader(Odd(), batch_size=4, collate_fn=pick):
                            pass
                    print(Count.seen)
            """)
        self.assert_no_errors()
        self.assertGreater(sum(len(d.positions) for r in self.rings() for d in r.of("digest")), 24 * 4 - 1)

    @unittest.skipUnless(versions("torchdata.stateful_dataloader") or versions("torchdata"), "torchdata is not installed")
    def test_stateful_data_loader(self):
        self.record("""
            import warnings
            warnings.simplefilter("ignore")
            from torchdata.stateful_dataloader import StatefulDataLoader
            if __name__ == "__main__":
                for workers in (2, 0):
                    more = {"multiprocessing_context": "fork"} if workers else {}
                    for batch in StatefulDataLoader(Stream(n=30), batch_size=8, num_workers=workers, drop_last=True, **more):
                        pass
                    for batch in StatefulDataLoader(Mapped(), batch_size=8, num_workers=workers, **more):
                        pass
            """)
        indexed = [d for r in self.rings() for d in r.of("digest") if d.indices]
        plain = [d for r in self.rings() for d in r.of("digest") if not d.indices]
        self.assertTrue(indexed and plain)
        self.assertEqual({d.worker for d in indexed}, {-1, 0, 1})
        self.assertEqual({d.worker for d in plain}, {-1, 0, 1})
        self.assertEqual([x.samples for r in self.rings() for x in r.of("leftover")], [6, 6, 6])


class Leftovers(HookTest):
    def test_what_drop_last_drops(self):
        program = """
            if __name__ == "__main__":
                for workers in (0, 2):
                    for batch in DataLoader(Stream(n=%d), batch_size=8, num_workers=workers, drop_last=%s,
                            multiprocessing_context="fork" if workers else None):
                        pass
                for batch in DataLoader(Stream(n=4), batch_size=None):
                    pass
                for batch in DataLoader(Mapped(12), batch_size=8, drop_last=True):
                    pass
            """
        for n, drop, expected in ((30, True, [(0, 0, 0, 6), (0, 0, 1, 6), (1, 0, -1, 6)]), (30, False, []), (32, True, []),
                                  (5, True, [(0, 0, 0, 5), (0, 0, 1, 5), (1, 0, -1, 5)])):
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))
            code, out, err = self.run_program(program % (n, drop), prelude=PROGRAMS)
            self.assertEqual(code, 0, err)
            self.assert_no_errors()
            found = [(x.loader, x.pass_, x.worker, x.samples) for r in self.rings() for x in r.of("leftover")]
            self.assertEqual(sorted(found), expected, (n, drop))

    def test_nothing_is_kept_alive(self):
        self.run_both("""
            import weakref
            alive = []
            class Kept(Stream):
                def __iter__(self):
                    for i in range(6):
                        x = torch.zeros(2)
                        alive.append(weakref.ref(x))
                        yield x
                        del x
            if __name__ == "__main__":
                for batch in DataLoader(Kept(), batch_size=4, drop_last=True):
                    pass
                print([r() is None for r in alive])
            """, prelude=PROGRAMS)


class Opened(HookTest):
    def test_which(self):
        """The recorder's own test reads the same paths."""
        with open(os.path.join(PYTHON, "tests", "data_files.txt")) as f:
            told = [line.rstrip("\n").split(" ", 1) for line in f if not line.startswith("#")]
        self.assertEqual({how for how, _ in told}, {"data", "none"})
        for how, path in told:
            self.assertEqual(open_files.data(path), how == "data", path)

    def test_data_files(self):
        self.write("read.bin", "x" * 100)
        self.write("inherited.bin", "x")
        self.write("shard_00", "x")  # like the names that tempfile makes up, but only read
        self.write("module.py", "x = 1")
        code, out, err = self.run_program("""
            class Shards(Stream):
                def __iter__(self):
                    gone = "gone.%d" % os.getpid()
                    with open("read.bin") as f, open("module.py") as m, open("written.log", "a") as w, open("/proc/self/stat") as p, \\
                            open(gone, "w+") as g, open("yjullwdr", "w+") as probe, open("shard_00") as short:
                        os.unlink(gone)
                        for i in range(20):
                            yield torch.zeros(2)
                            if i == 6 * 4 // 4:
                                self.late = open("late.bin", "w+")
            if __name__ == "__main__":
                held = open("inherited.bin")
                for workers in (0, 2):
                    for batch in DataLoader(Shards(), batch_size=1, num_workers=workers,
                            multiprocessing_context="fork" if workers else None):
                        pass
            """, prelude=PROGRAMS)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        found = [sorted(os.path.basename(o.path) for o in r.of("opened")) for r in self.rings() if r.of("fetch")]
        self.assertEqual(found, [["inherited.bin", "late.bin", "read.bin", "shard_00"]] * 3)
        for r in self.rings():
            for o in r.of("opened"):
                self.assertEqual(os.path.realpath(self.work), os.path.dirname(o.path))


if __name__ == "__main__":
    unittest.main()
