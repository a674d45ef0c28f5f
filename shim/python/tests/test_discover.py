"""What the walk over a dataset's objects knows of the modules that are loaded."""
import sys
import types
import unittest

import torch.utils.data  # noqa: F401
from harness import PYTHON

sys.path.insert(0, PYTHON)
from dptrace_hook.read import discover  # noqa: E402


class Modules(unittest.TestCase):
    def setUp(self):
        self.addCleanup(discover._modules.update, {"loaded": 0, "last": None, "inside": {}})

    def tearDown(self):
        for m in [m for m in sys.modules if m.startswith("planted")]:
            del sys.modules[m]

    def load(self, *names):
        for name in names:
            sys.modules[name] = types.ModuleType(name)

    def look(self):
        """Of our own modules, those that are still there."""
        return sorted(m for top, inside in discover.modules().items() for m in inside if top.startswith("planted") and m in sys.modules)

    def test_what_is_loaded_meanwhile(self):
        self.load("planted_a", "planted_a.x")
        self.assertEqual(self.look(), ["planted_a", "planted_a.x"])
        self.load("planted_b.y", "planted_a.z")
        self.assertEqual(self.look(), ["planted_a", "planted_a.x", "planted_a.z", "planted_b.y"])
        del sys.modules["planted_a.x"]
        self.load("planted_c", "planted_d")
        self.assertEqual(self.look(), ["planted_a", "planted_a.z", "planted_b.y", "planted_c", "planted_d"])
        del sys.modules["planted_c"]
        self.load("planted_c")  # as many as before
        self.assertEqual(discover._modules["last"], "planted_d")
        self.assertEqual(self.look(), ["planted_a", "planted_a.z", "planted_b.y", "planted_c", "planted_d"])
        self.assertEqual(discover._modules["last"], "planted_c")
        del sys.modules["planted_d"], sys.modules["planted_c"]  # the last that is known
        self.load("planted_c")
        self.load("planted_d", "planted_e", "planted_f")
        self.assertEqual(self.look(), ["planted_a", "planted_a.z", "planted_b.y", "planted_c", "planted_d", "planted_e", "planted_f"])

    @unittest.skipIf(sys.version_info < (3, 8), "dictionaries have no end there")
    def test_only_what_is_new_is_looked_at(self):
        discover.modules()
        known = len(sys.modules)
        self.load("planted_a", "planted_b")
        last = discover._modules["last"]
        self.assertEqual(discover._imported_since(last, len(sys.modules) - known), ["planted_a", "planted_b"])
        self.assertIsNone(discover._imported_since(last, 1))
        self.assertIsNone(discover._imported_since("no such module", 10))
        inside = discover._modules["inside"]
        self.assertIs(discover.modules(), inside)


if __name__ == "__main__":
    unittest.main()
