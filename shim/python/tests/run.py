"""The hook's own tests: programs run as subprocesses by this interpreter, with the hook and without.

usage: PYTHON run.py [-v] [--often] [--jobs N] [NAME...]    NAME: a part of a test's name; needs torch and numpy, no other package

--often leaves out most of the classes that are in OFTEN. N interpreters run the tests side by side (default: one per CPU, at most 4).
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

# Of these classes, whose tests start one or more interpreters with torch each, `make test` runs only those that are named: of each
# part of the hook what breaks first. The others are left to `make test-all`.
OFTEN = {
    "test_attributes.Persistent": {"test_fork", "test_spawn"},
    "test_attributes.Ranks": {"test_contents"},
    "test_chains.Chains": {"test_nothing_is_left_behind", "test_sequential_and_chains_in_chains"},
    "test_children.Children": {"test_what_is_looked_at"},
    "test_digests.Leftovers": {"test_nothing_is_kept_alive"},
    "test_digests.Records": {"test_positions_are_those_before_collate", "test_once_there_is_no_time", "test_by_index"},
    "test_endings.Asked": {"test_a_death_that_ends_the_program_between_two_batches"},
    "test_endings.Uncaught": {"test_what_ended_the_program", "test_ctrl_c", "test_what_a_worker_raised_ends_the_program"},
    "test_failopen.FailOpen": {"test_what_is_dropped_is_counted_at_once", "test_a_hook_that_gives_up_says_so", "test_errors_of_ours_are_told",
                               "test_an_error_of_the_program_keeps_its_text", "test_without_a_recorder_it_counts_on",
                               "test_no_threads_no_numpy_random_few_imports"},
    "test_growth.Growth": {"test_what_is_told"},
    "test_identity.Columns": {"test_set_epoch", "test_evil_classes_are_left_alone"},
    "test_identity.Groups": {"test_gradients_one_by_one"},
    "test_identity.Identity": {"test_one_number_for_one_object", "test_random_split_in_workers"},
    "test_injection.Injection": {"test_twice_on_the_path_is_once_in_the_program", "test_users_sitecustomize_and_usercustomize_run",
                                 "test_a_program_without_torch_loads_nothing_and_leaves_nothing", "test_modules_look_untouched",
                                 "test_on_by_pythonpath_and_off_where_python_ignores_it"},
    "test_memory.Copied": {"test_what_a_worker_copies_is_what_the_kernel_says"},
    "test_memory.Extents": {"test_of_every_kind_and_wherever_they_hang", "test_nothing_of_the_program_is_called"},
    "test_memory.Forked": {"test_wherever_it_hangs"},
    "test_memory.Pickled": {"test_forked_workers_are_sent_nothing"},
    "test_modes.Modes": {"test_what_changes_between_loaders"},
    "test_neutral.Asked": {"test_objects_of_a_loader"},
    "test_neutral.Descriptors": {"test_none_is_open_more_than_in_a_plain_run"},
    "test_neutral.Kept": set(),
    "test_neutral.Marks": {"test_notes_go_with_their_objects", "test_vars_of_a_loader"},
    "test_neutral.Raised": {"test_handlers_of_all_kinds", "test_what_another_thread_has_raised_here"},
    "test_pinning.Pinning": {"test_batches"},
    "test_reads.Reads": {"test_cases"},
    "test_records.Children": {"test_a_bare_fork_and_a_process"},
    "test_records.Records": {"test_main_process", "test_fork", "test_forkserver", "test_persistent", "test_a_pass_that_is_left_early"},
    "test_shared.Shared": {"test_what_goes_through_the_pipe_takes_nothing"},
    "test_splits.Splits": {"test_errors_of_fetch_and_collate"},
    "test_training.Training": {"test_rows", "test_grad_mode", "test_datasets_as_they_are_given"},
}


def flat(suite):
    for each in suite:
        if isinstance(each, unittest.TestSuite):
            yield from flat(each)
        else:
            yield each


def is_rare(test):
    of, _, name = test.rpartition(".")
    return of in OFTEN and name not in OFTEN[of]


def chosen(names, often=False):
    tests = list(flat(unittest.defaultTestLoader.discover(HERE, "test_*.py")))
    gone = {"%s.%s" % (of, name) for of, those in OFTEN.items() for name in those} - {t.id() for t in tests}
    if often and gone:
        sys.exit("OFTEN names tests that are not there: %s" % ", ".join(sorted(gone)))
    return [t for t in tests if not (often and is_rare(t.id())) and (not names or any(n in t.id() for n in names))]


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
