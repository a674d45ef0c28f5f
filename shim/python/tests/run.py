"""The hook's own tests: programs run as subprocesses by this interpreter, with the hook and without.

usage: PYTHON run.py [-v] [--often] [--jobs N] [NAME...]    NAME: a part of a test's name; needs torch and numpy, no other package

--often leaves out what is in RARE. N interpreters run the tests side by side (default: one per CPU, at most 4).
DPTRACE_TESTS_AGAIN=N: up to N tests that failed are run once more, alone; what fails then has failed (see tools/go-test).
The last line is "N passed, N failed"; what was skipped is said before it.
"""
import argparse
import os
import re
import signal
import struct
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

AGAIN = int(os.environ.get("DPTRACE_TESTS_AGAIN") or 0)
CRASHED = "an-interpreter"  # in the place of a test's name: one that ran tests did not come to its end

# Tests that start dozens of interpreters: `make test` leaves them to `make test-all`.
RARE = {
    "test_digests.Records.test_workers_that_do_not_share_the_work",
    "test_endings.Asked.test_a_worker_that_dies_was_not",
    "test_endings.Asked.test_workers_that_were_done_or_left_early_were_asked",
    "test_failopen.FailOpen.test_every_part_of_the_hook_may_fail",
    "test_failopen.FailOpen.test_exceptions_of_signal_handlers_reach_the_program",
}


def flat(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flat(each)
        else:
            yield each


def chosen(names, often=False):
    tests = list(flat(unittest.defaultTestLoader.discover(HERE, "test_*.py")))
    gone = RARE - {t.id() for t in tests}
    if often and gone:
        sys.exit("RARE names tests that are not there: %s" % ", ".join(sorted(gone)))
    return [t for t in tests if not (often and t.id() in RARE) and (not names or any(n in t.id() for n in names))]


def run(tests, verbose):
    """(passed, names of those that failed)"""
    def each(result):
        for test in tests:  # one by one: which are ours is not known before
            unittest.TestSuite([test])(result)
    result = unittest.TextTestRunner(verbosity=2 if verbose else 1).run(each)
    for test, reason in result.skipped:
        print("skipped %s: %s" % (test.id(), reason))
    failed = sorted({t.id().partition(" ")[0] for t, _ in result.failures + result.errors})
    return result.testsRun - len(result.skipped) - len(failed), failed


def said(passed, failed):
    """The last lines of a run."""
    return "".join("failed %s\n" % name for name in failed) + "%d passed, %d failed" % (passed, len(failed))


def side_by_side(jobs, tests, options):
    """Interpreters that each take the next test when they are through with one; what they say is printed in the end."""
    to_do, numbers = os.pipe()
    os.write(numbers, struct.pack("<%dI" % len(tests), *range(len(tests))))  # a pipe has room for 16384
    os.close(numbers)
    again = [sys.executable, os.path.abspath(__file__)] + ["-v"] * options.verbose + ["--often"] * options.often + options.names
    parts = [subprocess.Popen(again + ["--from", str(to_do)], pass_fds=[to_do], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
             for _ in range(jobs)]
    passed, failed = 0, []
    for part in parts:
        text = part.communicate()[0].decode("utf-8", "replace")
        end = re.search(r"((?:failed \S+\n)*)(\d+) passed, (\d+) failed\s*\Z", text)
        print(text[:end.start()] if end else text, end="")
        passed += int(end.group(2)) if end else 0
        failed += re.findall(r"failed (\S+)", end.group(1)) if end else [CRASHED]
    return passed, failed


def once_more(tests, failed, verbose):
    """Those of the failed tests that fail a second time, alone."""
    twice = []
    for name in failed:
        print("\nonce more, alone: %s" % name, flush=True)
        if run([t for t in tests if t.id() == name], verbose)[0] != 1:
            twice.append(name)
        else:
            print("RED ONCE, green alone: %s" % name)
    return twice


def taken(tests, to_do):
    """The tests whose numbers come out of a pipe, each when the one before it is through."""
    os.set_inheritable(to_do, False)
    while True:
        number = os.read(to_do, 4)
        if not number:
            return
        yield tests[struct.unpack("<I", number)[0]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--often", action="store_true")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    parser.add_argument("--from", dest="to_do", type=int, help=argparse.SUPPRESS)  # a pipe with the numbers of the tests
    options = parser.parse_args()
    tests = chosen(options.names, options.often)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background: then no program would see Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if options.to_do is not None:
        passed, failed = run(taken(tests, options.to_do), options.verbose)
    elif len(tests) < 2 * options.jobs:
        passed, failed = run(tests, options.verbose)
    else:
        passed, failed = side_by_side(options.jobs, tests, options)
    if options.to_do is None and 0 < len(failed) <= AGAIN and CRASHED not in failed:
        twice = once_more(tests, failed, options.verbose)
        passed, failed = passed + len(failed) - len(twice), twice
    print(said(passed, failed))
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
