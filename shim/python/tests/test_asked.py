"""No module of the hook asks an object or a class of the program's for an attribute: read/objects.py has what can be known without."""
import ast
import glob
import os
import unittest

from harness import PYTHON

HOOK = os.path.join(PYTHON, "dptrace_hook")
ASKING = {"getattr", "hasattr", "setattr", "delattr", "isinstance", "vars", "dir", "callable"}
OF_A_CLASS = {"__module__", "__qualname__", "__name__", "__mro__", "__dict__", "__flags__", "__bases__", "__class__", "__subclasses__", "__code__"}

# What may be asked after all: how it is called here, and what it is.
FINE = {
    "f": "types.FunctionType, exactly", "function": "the same", "cached": "the same", "handler": "the same",
    "module": "a module of Python's, torch's or cv2's that was imported, or of the exact type", "numpy": "the module",
    "torch": "the module", "sys": "the module", "gc": "the module", "builtins": "the module", "functional": "torch.nn.functional",
    "modes": "torch.autograd.grad_mode", "autograd": "torch.autograd", "c": "torch._C", "c10d": "torch.distributed.distributed_c10d",
    "dist": "torch.distributed", "type": "Python's", "iterator": "torch's _BaseDataLoaderIter", "fetcher": "torch's _BaseDatasetFetcher",
}
FINE_IN = {
    "read/anew.py": {"what": "the module numpy"},
    "read/attributes.py": {"owner": "a module of the exact type"},
    "read/bytecode.py": {"found": "the module builtins"},
    "read/chains.py": {"obj": "a function of the exact type", "call": "the same"},
    "read/contents.py": {"value": "torch.Tensor, exactly"},
    "read/crossing.py": {"torch._C._TensorBase": "torch's base class of tensors"},
    "read/digests.py": {"known": "torch.utils.data._utils.collate"},
    "read/discover.py": {"owner": "a module or a function of the exact type"},
    "read/heap.py": {"process": "the module multiprocessing.process"},
    "read/held.py": {"types.SimpleNamespace": "Python's", "value": "a function or a module of the exact type", "holder": "a function"},
    "read/holders.py": {"m": "a module of the exact type", "holder": "a function", "obj": "a function or generator of the exact type"},
    "read/identity.py": {"base": "torch's Subset or ConcatDataset"},
    "read/modes.py": {"objects.members(k)[n]": "a function of the exact type"},
    "read/objects.py": {"functools.partial": "Python's", "owner": "a module of the exact type"},
    "read/pinning.py": {"torch._C._TensorBase": "torch's base class of tensors"},
    "read/quiet.py": {"dispatch": "torch's", "self.dispatch": "torch's"},
    "read/reads.py": {"obj": "a module of the exact type", "collate": "a function of the exact type"},
    "read/rng.py": {"random.Random": "Python's"},
    "read/sample.py": {"base": "torch's base class of tensors"},
    "read/shared.py": {"storage": "a torch storage", "base": "torch's base class of tensors"},
    "read/short_digests.py": {"value": "a function of the exact type"},
    "read/sizes.py": {"torch.Tensor": "torch's", "storage": "a torch storage"},
    "record/ring.py": {"_thread": "the module", "v": "the version of torch or NumPy", "sys.modules[name]": "torch or NumPy"},
    "watch/children.py": {"base": "multiprocessing's BaseProcess", "cls": "subprocess's own", "module.Popen": "subprocess's",
                          "target": "a function of the exact type"},
    "watch/copies.py": {"_thread": "the module", "base": "torch's base class of tensors"},
    "watch/dataloader.py": {"worker": "the module torch.utils.data._utils.worker", "sys.modules['torch.utils.data']": "the module"},
    "watch/dist.py": {"module.GroupMember": "torch's", "sys.modules['torch.distributed']": "the module"},
    "watch/collectives.py": {"sys.modules['torch.distributed']": "the module"},
    "watch/fetches.py": {"args[0]": "torch's _BaseDatasetFetcher"},
    "watch/iterators.py": {"args[0]": "torch's _BaseDataLoaderIter"},
    "watch/steps.py": {"optimizer": "torch's Optimizer", "sys.modules['torch']": "the module", "sys.modules['torch.optim.optimizer']": "the module"},
    "watch/training.py": {"cls": "torch's set_grad_enabled", "ours": "a class of ours", "autograd.backward": "torch's"},
}
LIBRARIES = ("sys.modules.get(", "getattr(c10d")  # modules of torch's, NumPy's or SciPy's, and what is there


def spelled(node):
    """As ast.unparse of Python 3.9 writes what occurs here."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return "%s.%s" % (spelled(node.value), node.attr)
    if isinstance(node, ast.Constant):
        return repr(node.value)
    if isinstance(node, ast.Subscript):
        inner = node.slice.value if type(node.slice).__name__ == "Index" else node.slice
        return "%s[%s]" % (spelled(node.value), spelled(inner))
    if isinstance(node, ast.Call):
        return "%s(%s)" % (spelled(node.func), ", ".join(map(spelled, node.args)))
    return "?"


def asked(text):
    """(line, what is asked, how) of all that a module asks."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ASKING and node.args:
            yield node.lineno, spelled(node.args[0]), node.func.id
        elif isinstance(node, ast.Attribute) and node.attr in OF_A_CLASS:
            yield node.lineno, spelled(node.value), node.attr
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)) and spelled(node.left).startswith(("type(", "cls")):
            yield node.lineno, spelled(node.left), "in"  # which its metaclass may have a hash or an == for
        elif isinstance(node, ast.Call) and spelled(node.func) == "set" and spelled(node.args[0] if node.args else node.func).startswith("map(type,"):
            yield node.lineno, "types", "hash"


def program(found, file):
    return [(line, what, how) for line, what, how in found
            if not (what in FINE or what in FINE_IN.get(file, ()) or what.startswith(LIBRARIES)) or how in ("in", "hash")]


class Asked(unittest.TestCase):
    def test_nothing_of_the_program(self):
        read = used = 0
        for path in sorted(glob.glob(os.path.join(HOOK, "*", "*.py"))):
            file = os.path.relpath(path, HOOK)
            if file.startswith("patch"):
                continue
            with open(path) as f:
                found = list(asked(f.read()))
            self.assertEqual(program(found, file), [], file)
            stale = set(FINE_IN.get(file, ())) - {what for _, what, _ in found}
            self.assertEqual(stale, set(), "no longer asked in " + file)
            read, used = read + 1, used + len(found)
        self.assertGreater(read, 40)
        self.assertGreater(used, 100)

    def test_others_are_seen(self):
        text = "cls.__module__\ngetattr(x, 'a')\nisinstance(x, int)\ntype(x) in (int, str)\nset(map(type, x))\nx.__dict__\n" \
               "cls in ATOMS\ntype(x).__name__\nf.__code__\nid(cls) in ATOMS\n"
        self.assertEqual([line for line, _, _ in sorted(program(asked(text), "read/other.py"))], [1, 2, 3, 4, 5, 6, 7, 8])


if __name__ == "__main__":
    unittest.main()
