"""What the first batch of a worker's pass takes of shared memory."""
import os

from harness import HookTest

PRELUDE = """
import numpy, sys
from collections import namedtuple
import torch
from torch.utils.data import DataLoader, Dataset
class Of(Dataset):
    def __init__(self, make):
        self.make = make
    def __len__(self):
        return 8
    def __getitem__(self, i):
        return self.make(i)
def same(samples):
    return samples
big = torch.zeros(1024, 1024).share_memory_()
Pair = namedtuple("Pair", "a b")
class Batch:
    def __init__(self, samples):
        self.images = torch.stack(samples)
class Lazy:
    __slots__ = "x",
def lazy(samples):
    return Lazy()
PAGE = os.sysconf("SC_PAGE_SIZE")
"""


class Shared(HookTest):
    def told(self, make, **loader):
        options = ", ".join("%s=%s" % pair for pair in loader.items())
        for name in os.listdir(self.spool):
            os.unlink(os.path.join(self.spool, name))
        code, _, err = self.run_program("""
            if __name__ == "__main__":
                for batch in DataLoader(Of(%s), batch_size=4, num_workers=1, multiprocessing_context="fork", %s):
                    pass
            """ % (make, options), prelude="import os\n" + PRELUDE)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        found = [x for r in self.rings() for x in r.of("batch_bytes")]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def check(self, told, dtypes, whole=True, shared=0):
        sizes = ["%s=%d" % (name, n) for name, n in dtypes]
        self.assertEqual((told.bytes, told.dtypes, told.whole, told.shared), (sum(n for _, n in dtypes), ",".join(sizes), whole, shared))

    def test_default_collate_puts_it_there(self):
        self.check(self.told("lambda i: (numpy.zeros((64, 64), numpy.float32), i)"), [("float32", 65536), ("int64", 4096)])
        self.check(self.told("lambda i: {'a': torch.zeros(3000, dtype=torch.uint8), 'name': 'x'}"), [("uint8", 12288)])

    def test_what_goes_through_the_pipe_takes_nothing(self):
        self.check(self.told("lambda i: numpy.zeros(100000)", collate_fn="same"), [])

    def test_a_storage_counts_once_and_whole(self):
        self.check(self.told("lambda i: Pair(big[i, :1].clone(), torch.zeros(2048)[:1])", collate_fn="lambda x: x[0]"),
                   [("float32", 4096 + 8192)])
        self.check(self.told("lambda i: i", collate_fn="lambda x: [torch.zeros(8, 1024)[i] for i in range(2)] * 2"), [("float32", 65536)])
        self.check(self.told("lambda i: i", collate_fn="lambda x: list(torch.zeros(8, 1024))"), [("float32", 32768)])

    def test_what_the_dataset_shares_is_not_new(self):
        self.check(self.told("lambda i: big[i]", collate_fn="same"), [("float32", 4 << 20)], shared=4 << 20)

    def test_objects_of_the_program(self):
        self.check(self.told("lambda i: torch.zeros(1024)", collate_fn="Batch"), [("float32", 16384)])
        self.check(self.told("lambda i: i", collate_fn="lazy"), [], whole=False)

    def test_many(self):
        self.check(self.told("lambda i: i", collate_fn="lambda x: [torch.zeros(1) for _ in range(300)]"), [("float32", 255 * 4096)], whole=False)
