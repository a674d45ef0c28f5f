"""Where the native helper is taken, where its twin, and what its files want of an interpreter."""
import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

from twins import BOTH, NATIVE, PYTHON, native, twin


class Loading(unittest.TestCase):
    def python(self, program, **environ):
        run = subprocess.run([sys.executable, "-c", "import sys; sys.path.insert(0, %r)\n" % PYTHON + program], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=dict(os.environ, **environ))
        self.assertEqual((run.returncode, run.stderr.decode()), (0, ""))
        return run.stdout.decode().split("\n")[0]

    PRINT = "from dptrace_hook.patch import load; print(load.native.__name__, load.why, '_dptrace_native' in sys.modules)"

    @NATIVE
    def test_native_is_taken_where_it_can_be(self):
        self.assertEqual(self.python(self.PRINT, DPTRACE_NATIVE=""), "_dptrace_native  False")

    def test_the_twin_on_request(self):
        self.assertEqual(self.python(self.PRINT, DPTRACE_NATIVE="0"), "dptrace_hook.patch.twin DPTRACE_NATIVE=0 False")

    @NATIVE
    def test_a_file_that_cannot_be_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            to = os.path.join(folder, "dptrace_hook")
            shutil.copytree(os.path.join(PYTHON, "dptrace_hook"), to)
            with open(os.path.join(to, "native", os.uname().machine + ".abi3.so"), "r+b") as f:
                f.truncate(100)
            said = self.python("sys.path[0] = %r\n" % folder + self.PRINT)
            self.assertRegex(said, "^dptrace_hook.patch.twin ImportError: .*abi3.so")
            shutil.rmtree(os.path.join(to, "native"))
            said = self.python("sys.path[0] = %r\n" % folder + self.PRINT)
            self.assertRegex(said, "^dptrace_hook.patch.twin ImportError: .*abi3.so")

    def test_other_machines(self):
        said = self.python("import os\nos.uname = lambda u=os.uname(): type(u)(u[:4] + ('riscv64',))\n" + self.PRINT)
        self.assertRegex(said, "^dptrace_hook.patch.twin ")

    @NATIVE
    def test_one_interpreter_only(self):
        said = self.python("""
try:
    import _xxsubinterpreters as several
except ImportError:
    import _interpreters as several
from dptrace_hook.patch import load
assert load.why == ""
try:
    one = several.create("legacy") if sys.version_info >= (3, 13) else several.create(isolated=False)
except TypeError:
    one = several.create()
several.run_string(one, "import sys; sys.path.insert(0, %r); from dptrace_hook.patch import load; print(load.native.__name__, load.why)" % sys.path[0])
several.destroy(one)
""")
        self.assertEqual(said, "dptrace_hook.patch.twin ImportError: loaded before in this process")

    def test_at_the_end_of_the_interpreter(self):
        """The globals of the callbacks' module are None: the original is called, and nothing is said."""
        for name in BOTH:
            said = self.python("""
import types
from dptrace_hook.patch import load, twin
M = twin if %r == "twin" else load.native
other = types.ModuleType("other")
exec('''
def needed(*args): raise ValueError
def before(args, kwargs): return needed.x
def after(token, result, args, kwargs): return needed.x
def failed(token, raised, args, kwargs): return needed.x
def theirs(e): return needed.x
def original(text, ok):
    write(1, text)
    return {}["none"] if not ok else 5
''', other.__dict__)
class Late:
    def __init__(self):
        self.write, self.KeyError = __import__("os").write, KeyError
        other.original.__globals__["write"] = self.write
        self.wrapped = [M.Around(other.original, other.before, other.after, other.failed, other.theirs),
                        M.Around(other.original, None, other.after, other.failed, other.theirs)]
        self.cleared = other.__dict__
    def __del__(self):
        for name in list(self.cleared):
            if name != "write" and not name.startswith("__"):
                self.cleared[name] = None
        if type(self.wrapped[0]).__name__ == "function":
            for name in list(self.wrapped[0].__globals__):
                if name != "__builtins__":
                    self.wrapped[0].__globals__[name] = None
        for each in self.wrapped:
            each(b"called ", True)
            try:
                each(b"raised ", False)
            except self.KeyError:
                self.write(1, b"as it should ")
sys.late = Late()
""" % name)
            self.assertEqual(said, 2 * "called raised as it should ", name)

    def test_the_files(self):
        """They want no library and no version of a symbol, and the same of the interpreter on each machine."""
        wanted = []
        for machine in ("x86_64", "aarch64"):
            with open(os.path.join(PYTHON, "dptrace_hook", "native", machine + ".abi3.so"), "rb") as f:
                tags, undefined = elf(f.read())
            self.assertFalse(tags & {1, 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFC, 15, 29}, machine)
            wanted.append(undefined)
        self.assertEqual(wanted[0], wanted[1])
        self.assertGreater(len(wanted[0]), 40)
        if native is not twin:
            here = ctypes.CDLL(None)
            weak = {name for name, binding in wanted[0] if binding == 2}
            self.assertEqual(weak, {"Py_EnterRecursiveCall", "Py_LeaveRecursiveCall", "PyObject_GC_IsTracked"})
            self.assertEqual([name for name, _ in wanted[0] if name not in weak and not hasattr(here, name)], [])


def elf(data):
    """(tags of the dynamic section, {(name, binding) of each undefined symbol})"""
    sections, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    found = [struct.unpack_from("<IIQQQQIIQQ", data, sections + i * size) for i in range(count)]
    tags, undefined = set(), set()
    for _, kind, _, _, at, length, link, _, _, _ in found:
        if kind == 6:
            tags |= {struct.unpack_from("<q", data, at + i)[0] for i in range(0, length, 16)}
        if kind == 11:
            for i in range(24, length, 24):
                name, info, _, section = struct.unpack_from("<IBBH", data, at + i)
                if section == 0:
                    begin = found[link][4] + name
                    undefined.add((data[begin:data.index(b"\0", begin)].decode(), info >> 4))
    return tags, undefined


if __name__ == "__main__":
    unittest.main()
