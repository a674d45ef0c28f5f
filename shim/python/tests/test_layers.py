"""The hook's arrows: patch < record < read < watch, and no cycle between modules."""
import ast
import glob
import os
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


class Layers(unittest.TestCase):
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
