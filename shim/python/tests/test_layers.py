"""The hook's arrows: patch < record < read < watch, and no cycle between modules."""
import ast
import glob
import os
import sys
import unittest

from harness import PYTHON

HOOK = os.path.join(PYTHON, "dptrace_hook")
LAYERS = ("patch", "record", "read", "watch")  # each imports those before it, and modules of its own
ENTRY = ("record.guard", "watch.children")  # that the finder itself calls


def imported(path, package):
    """The modules of this package that a file imports, anywhere in it, as (layer, module)."""
    with open(path) as f:
        tree = ast.parse(f.read())
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        home = [package] if node.level == 1 and package else []
        names = home + (node.module.split(".") if node.module else [])
        for alias in node.names:
            whole = (names + [alias.name])[:2]
            if whole[0] in LAYERS:
                found.add(tuple(whole))
    return found


def graph(folder=HOOK):
    return {(layer, os.path.basename(path)[:-3]): imported(path, layer)
            for layer in LAYERS for path in glob.glob(os.path.join(folder, layer, "*.py"))}


def upward(edges):
    return sorted("%s.%s -> %s.%s" % (a + b) for a, to in edges.items() for b in to if LAYERS.index(b[0]) > LAYERS.index(a[0]))


def cyclic(edges):
    """Modules from which a way leads back."""
    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for following in edges.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return seen
    return sorted("%s.%s" % module for module in edges if module in reached(module))


def hidden(path):
    """Names of modules that a file imports and uses for something else, too."""
    with open(path) as f:
        tree = ast.parse(f.read())
    modules = {(a.asname or a.name).partition(".")[0] for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))
               for a in node.names}
    own = {t for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for line in node.body for t in ast.walk(line)
           if isinstance(line, ast.Assign)}  # attributes of a class
    stored = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in own}
    return sorted(modules & (stored | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}))


# What a handler may swallow without asking guard.theirs(): by these a single expression says what it has not found.
ANSWERS = {"AttributeError", "KeyError", "IndexError", "TypeError", "ValueError", "ImportError", "struct.error", "FileNotFoundError",
           "ProcessLookupError", "ChildProcessError"}
# As the interpreter starts or ends, where there may be no guard yet, or no more.
ALONE = {("patch/load.py", "(ImportError, OSError)"), ("patch/twin.py", "Exception"), ("record/guard.py", "Exception"),
         ("__init__.py", "Exception")}
ASKED = {"theirs", "goes_on", "judge"}


def swallowing(path, text):
    """The handlers that end an exception of any signal handler of the program's, which may be raised between any two instructions:
    an alarm's TimeoutError is an OSError, what torch raises for a dead worker a RuntimeError."""
    for node in ast.walk(ast.parse(text)):
        for handler in node.handlers if isinstance(node, ast.Try) else ():
            inside = list(ast.walk(handler))
            if any(isinstance(n, ast.Raise) for n in inside) or ASKED & {n.id for n in inside if isinstance(n, ast.Name)}:
                continue
            kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            loops = any(isinstance(n, (ast.For, ast.While)) for line in node.body for n in ast.walk(line))
            if loops or not {ast.unparse(k) for k in kinds if k} <= ANSWERS or None in kinds:
                if (path, ast.unparse(handler.type) if handler.type else "") not in ALONE:
                    yield "%s:%d" % (path, handler.lineno)


class Layers(unittest.TestCase):
    @unittest.skipIf(sys.version_info < (3, 9), "ast.unparse")
    def test_no_exception_of_a_signal_handler_is_swallowed(self):
        found = []
        for path in glob.glob(os.path.join(HOOK, "**", "*.py"), recursive=True):
            with open(path) as f:
                found += swallowing(os.path.relpath(path, HOOK), f.read())
        self.assertEqual(found, [])
        for bad in ("OSError", "RuntimeError", "(KeyError, OSError)", "Exception", ""):
            self.assertEqual(list(swallowing("x.py", "try:\n  f()\nexcept %s:\n  pass" % bad)), ["x.py:3"], bad)
        self.assertEqual(list(swallowing("x.py", "try:\n  for a in b:\n    f(a)\nexcept KeyError:\n  pass")), ["x.py:4"])
        self.assertEqual(list(swallowing("x.py", "try:\n  f()\nexcept OSError as e:\n  if guard.theirs(e):\n    raise")), [])

    def test_no_variable_hides_a_module(self):
        """`objects`, say: the error would be swallowed, and what was to be told missing."""
        found = {path: hidden(path) for path in glob.glob(os.path.join(HOOK, "**", "*.py"), recursive=True)}
        self.assertGreater(len(found), 40)
        self.assertEqual({path: names for path, names in found.items() if names}, {})

    def test_arrows_point_one_way(self):
        edges = graph()
        self.assertGreater(len(edges), 40)
        self.assertEqual(upward(edges), [])
        self.assertEqual(cyclic(edges), [])

    def test_each_import_leads_to_a_module(self):
        edges = graph()
        for module, to in edges.items():
            self.assertLessEqual(to, set(edges), module)

    def test_what_the_finder_loads(self):
        self.assertEqual(imported(os.path.join(HOOK, "__init__.py"), ""), {tuple(m.split(".")) for m in ENTRY})

    def test_others_are_seen(self):
        edges = {("read", "a"): {("watch", "b")}, ("watch", "b"): {("watch", "c")}, ("watch", "c"): {("watch", "b")}}
        self.assertEqual(upward(edges), ["read.a -> watch.b"])
        self.assertEqual(cyclic(edges), ["watch.b", "watch.c"])


if __name__ == "__main__":
    unittest.main()
