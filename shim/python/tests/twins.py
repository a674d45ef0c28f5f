"""The native helper and its twin, for their tests. DPTRACE_TEST_NATIVE names another build of the helper (tools/native-test
makes one with AddressSanitizer), DPTRACE_TEST_PROGRAMS how many random programs are run."""
import functools
import os
import sys
import unittest

PYTHON = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, PYTHON)
from dptrace_hook.patch import load, twin  # noqa: E402

BUILD = os.environ.get("DPTRACE_TEST_NATIVE")
native = load.load(BUILD) if BUILD else load.native
BOTH = {"native": native, "twin": twin} if native is not twin else {"twin": twin}
NATIVE = unittest.skipIf(native is twin, "no native helper here: " + load.why)
PROGRAMS = int(os.environ.get("DPTRACE_TEST_PROGRAMS", "3000"))


def each(test):
    """The test once with each of the two."""
    @functools.wraps(test)
    def both(self):
        for name, module in BOTH.items():
            with self.subTest(name):
                test(self, module)
    return both


def described(e, seen=()):
    """All that a program can see of an exception, but for frames of the twin's."""
    if e is None or e in seen:
        return e and "again"
    frames, tb = [], e.__traceback__
    while tb is not None:
        if tb.tb_frame.f_code.co_filename != twin.__file__:
            frames.append((tb.tb_frame.f_code.co_name, tb.tb_lineno))
        tb = tb.tb_next
    seen += (e,)
    return type(e).__name__, repr(e.args), frames, e.__suppress_context__, described(e.__cause__, seen), described(e.__context__, seen)


def outcome(function, *args):
    try:
        return "gave", function(*args)
    except Exception as e:
        return "raised", type(e)


def sample(a: int, b=(1, 2), *, c: "int" = 3) -> str:
    """What it says."""
    return a, b, c


class Holder:
    def method(self, a, *, b=2):
        """A method's."""
        return self, a, b


def plain(module, original):
    return module.Around(original, None, None, None, None)
