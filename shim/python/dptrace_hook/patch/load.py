"""Which of the two is used: the helper in C (../native, made of shim/native), or its twin in Python (twin.py), which is the
reference. `native` is the one in use; `why` is empty, or says why it is the twin.
"""
import os
import sys

from . import twin

NAME = "_dptrace_native"
# By os.uname().machine, which is also a 32-bit program's: that one sees by sys.maxsize.
_FILES = {"x86_64": "x86_64.abi3.so", "aarch64": "aarch64.abi3.so"}


def _reason():
    """Why the helper is not even tried."""
    if os.environ.get("DPTRACE_NATIVE") == "0":
        return "DPTRACE_NATIVE=0"
    if sys.implementation.name != "cpython":
        return "not CPython"
    if sys.version_info < (3, 8):
        return "Python before 3.8"
    if "t" in sys.abiflags:
        return "free-threaded"
    if sys.byteorder != "little" or sys.maxsize != 2**63 - 1:
        return "not little endian of 64 bits"
    machine = os.uname().machine
    return "" if machine in _FILES else "no helper for " + machine


def load(path=None):
    """The helper, as a module that no one else sees. Raises ImportError or OSError."""
    from importlib.machinery import ExtensionFileLoader, ModuleSpec
    if path is None:
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        path = os.path.join(here, "native", _FILES[os.uname().machine])
    loader = ExtensionFileLoader(NAME, path)
    spec = ModuleSpec(NAME, loader, origin=path)
    module = loader.create_module(spec)
    loader.exec_module(module)
    return module


def choose():
    """(module, why)"""
    why = _reason()
    if not why:
        try:
            return load(), ""
        except (ImportError, OSError) as e:  # noexec, symbols that are missing, a sub-interpreter
            text = e.args[0] if e.args and type(e.args[0]) is str else ""
            why = "%s: %s" % (type(e).__name__, text[:200])
    return twin, why


native, why = choose()
