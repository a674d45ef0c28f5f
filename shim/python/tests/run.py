"""The hook's own tests: programs run as subprocesses by this interpreter, with the hook and without.

usage: PYTHON run.py [-v] [NAME...]    NAME: a part of a test's name; needs torch and numpy, no other package

The last line is "N passed, N failed"; what was skipped is said before it.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)


def flat(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flat(each)
        else:
            yield each


def main():
    verbose = "-v" in sys.argv[1:]
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    tests = [t for t in flat(unittest.defaultTestLoader.discover(HERE, "test_*.py")) if not names or any(n in t.id() for n in names)]
    result = unittest.TextTestRunner(verbosity=2 if verbose else 1).run(unittest.TestSuite(tests))
    for test, reason in result.skipped:
        print("skipped %s: %s" % (test.id(), reason))
    failed = len({t.id().partition(" ")[0] for t, _ in result.failures + result.errors})
    print("%d passed, %d failed" % (result.testsRun - len(result.skipped) - failed, failed))
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())
