"""Windows of one series, told from other samples that look alike."""
import sys
import unittest

import numpy as np
import torch

from harness import PYTHON

sys.path.insert(0, PYTHON)
from dptrace_hook.read import overlaps, sample  # noqa: E402

SERIES = torch.rand(400, 3, generator=torch.Generator().manual_seed(1))


def follow(samples):
    """Which samples follow the one before them."""
    sample.bind()
    found = overlaps.Windows()
    return [found.follows(a, b) for a, b in zip(samples, samples[1:])]


class Windows(unittest.TestCase):
    def test_windows(self):
        array, words = SERIES.numpy(), torch.arange(300) * 7 % 101
        for name, samples in {
            "views": [SERIES[i:i + 20] for i in range(9)],
            "copies": [SERIES[i:i + 20].clone() for i in range(9)],
            "of NumPy": [array[i:i + 20] for i in range(9)],
            "with a target": [(SERIES[i:i + 20], SERIES[i + 20]) for i in range(9)],
            "after a label": [[i % 2, SERIES[i:i + 20]] for i in range(9)],
            "in a dictionary": [{"id": i, "past": SERIES[i:i + 20, 0].clone()} for i in range(9)],
            "half of a window further": [SERIES[10 * i:10 * i + 20] for i in range(9)],
            "tokens": [words[i:i + 24] for i in range(9)],
        }.items():
            with self.subTest(name):
                self.assertEqual(follow(samples), [True] * 8)

    def test_the_end_of_a_series(self):
        samples = [SERIES[i:i + 20] for i in (0, 1, 2, 100, 101)]
        self.assertEqual(follow(samples), [True, True, False, True])

    def test_others(self):
        noise = torch.rand(9, 40, generator=torch.Generator().manual_seed(2))
        for name, samples in {
            "noise": list(noise),
            "the same": [SERIES[:20]] * 9,
            "zeros": [torch.zeros(40) for _ in range(9)],
            "one-hot": [torch.eye(40)[i] for i in range(9)],
            "apart": [SERIES[20 * i:20 * i + 20] for i in range(9)],
            "less than half in common": [SERIES[12 * i:12 * i + 20] for i in range(9)],
            "few rows": [SERIES[i:i + 6] for i in range(9)],
            "columns": [SERIES[:, i % 3] for i in range(9)],
            "other lengths": [SERIES[i:i + 20 + i] for i in range(9)],
            "other types": [SERIES[i:i + 20].to(torch.float32 if i % 2 else torch.float64) for i in range(9)],
            "numbers": list(range(9)),
            "no samples": [None] * 9,
            "empty": [torch.zeros(0, 3)] * 9,
            "scalars": [torch.tensor(1.0)] * 9,
            "sparse": [torch.eye(20).to_sparse()] * 9,
            "objects": [np.array([None] * 20)] * 9,
        }.items():
            with self.subTest(name):
                self.assertEqual(follow(samples), [False] * 8)


if __name__ == "__main__":
    unittest.main()
