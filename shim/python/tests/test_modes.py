"""What a dataset is told between two passes, whoever makes them: modes of training and evaluation."""
import unittest

from harness import HookTest

PROGRAM = """
from torch.utils.data import Subset

SIDE = "left"

class Held:
    def __init__(self):
        self.mode = "train"

class Readers(Dataset):
    shown = 3
    def __init__(self):
        self.part, self.held, self.reads, self.rows = "history", Held(), 0, list(range(40))
    def __len__(self):
        return 40
    def __getitem__(self, i):
        self.reads += 1
        return torch.tensor(float(self.rows[i])) * len(SIDE)

if __name__ == "__main__":
    readers = Readers()
    train = DataLoader(Subset(readers, range(24)), batch_size=8)
    test = DataLoader(Subset(readers, range(16, 40)), batch_size=8, num_workers=%(workers)d)
    for epoch in range(2):
        readers.part, readers.held.mode, Readers.shown, SIDE = "history", "train", 3, "left"
        list(train)
        if %(toggles)s:
            readers.part, readers.held.mode, Readers.shown, SIDE = "next", "test", 1, "right"
        list(test)
"""


class Modes(HookTest):
    def told(self, **how):
        code, _, err = self.run_program(PROGRAM % how)
        self.assertEqual(code, 0, err)
        self.assert_no_errors()
        return [a for a in self.main_ring().of("attribute") if a.when == "begin"]

    def test_what_changes_between_loaders(self):
        told = self.told(toggles=True, workers=0)
        values = {}
        for a in told:
            values.setdefault(a.path, []).append((a.loader, a.pass_, a.value))
        self.assertEqual(values["dataset.part"], [(2, 0, "'next'"), (1, 1, "'history'"), (2, 1, "'next'")])
        self.assertEqual([v for _, _, v in values["dataset.held.mode"]], ["'test'", "'train'", "'test'"])
        self.assertEqual([v for _, _, v in values["dataset.shown"]], ["1", "3", "1"])
        self.assertEqual([v for _, _, v in values["__main__.SIDE"]], ["'right'", "'left'", "'right'"])
        self.assertEqual(len({a.dataset for a in told}), 1)

    def test_nothing_is_written_where_nothing_changes(self):
        self.assertEqual([a.path for a in self.told(toggles=False, workers=2)], ["dataset.reads", "dataset.reads"])


if __name__ == "__main__":
    unittest.main()
