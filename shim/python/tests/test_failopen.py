"""Whatever goes wrong in the hook, the program does not notice; what is the program's own gets through."""
import ast
import errno
import os
import resource

from harness import HookTest, layouts, versions

TRAIN = """
    if __name__ == "__main__":
        torch.manual_seed(1); random.seed(1); np.random.seed(1)
        data = Noise()
        data.names = ["name %d" % i for i in range(2000)]
        for workers in (0, 2):
            fit(DataLoader(data, batch_size=4, shuffle=True, num_workers=workers, multiprocessing_context="fork" if workers else None,
                           worker_init_fn=lambda w: np.random.seed(w)))
    """

# After each fetch, in the place of what C or its twin does for most of them.
LEAVE = "def leave(*args):\n    raise ValueError('planted')\n\n\nafter_fetch = leave\n"


class FailOpen(HookTest):
    def test_no_room_to_judge_as_the_process_ends(self):
        """A program that leaves hardly any recursion: what is called as the interpreter ends, and as it forks, fails without a word."""
        program = """
            if __name__ == "__main__":
                list(DataLoader(list(range(8)), batch_size=4))
                for limit in 8, 10, 12:
                    child = os.fork()
                    if child == 0:
                        try:
                            sys.setrecursionlimit(limit)
                        except RecursionError:
                            pass
                        sys.exit(0)
                    print(limit, os.waitpid(child, 0)[1], flush=True)
            """
        code, out, err = self.run_program(program)
        self.assertEqual((code, out), self.run_program(program, hooked=False)[:2], err)
        self.assertNotIn("dptrace", err)

    def test_every_part_of_the_hook_may_fail(self):
        broken = {"slots": ("Slots.begin", "Slots.look", "Slots.search", "Slots.end"),
                  "heap": ("look", "before_fork", "hidden", "write_walk"), "holders": ("found", "place"), "insides": ("of",), "watch/quasi": ("watch",),
                  "iterators": ("delivered", "put_indices", "pass_begins", "ended", "where_made"),
                  "fetches": ("enter", "leave", "attach", "shadow"), "discover": ("Walk.roots",), "rng": ("reader",),
                  "steps": ("entry_of", "_use", "_tell", "_wrap_step"), "ring": ("Ring.put", "Ring.pack"),
                  "forks": ("under_multiprocessing",), "wrapping": ("wrap", "around"), "failures": ("write", "uncaught"),
                  "training": ("flags", "begin", "rows", "holds", "zeroed", "restarted", "arm"),
                  "identity": ("sampling", "_whole", "paths"), "attributes": ("at_iter", "at_fetch"), "dist": ("rank_known",),
                  "extents": ("sample",), "addresses": ("members", "segments"), "pagemap": ("Extents.rows",), "worker_exits": ("asked",),
                  "pickles": ("size",),
                  "digests": ("Digests.take", "Budget.fetch"), "sample": ("bind",), "open_files": ("Files.find",)}
        plain = self.run_program(TRAIN, hooked=False)
        self.assertEqual(plain[0], 0, plain[2])
        for module, names in broken.items():
            path = self.module(module)
            with open(path) as f:
                whole = f.read()
            self.change(module, "def _planted(*args, **kwargs):\n    raise ValueError('planted')\n\n\n"
                        + "".join(n + " = _planted\n" for n in names)
                        + "before_fetch = after_fetch = _planted\n" * (module == "fetches")
                        + "handing, placed = hand, MultiProcessing.has_placed  # all of them\n" * (module == "iterators"))
            for name in names:
                self.assertIn("def %s(" % name.split(".")[-1], whole, "%s.%s is not there to be broken" % (module, name))
            hooked = self.run_program(TRAIN)
            self.assertEqual(hooked, plain, module)
            with open(path, "w") as f:
                f.write(whole)

    def test_errors_of_ours_are_told(self):
        self.change("fetches", LEAVE)
        code, _, err = self.run_program(TRAIN)
        self.assertEqual(code, 0, err)
        told = [e for r in self.rings() for e in r.of("errors")]
        self.assertTrue(told)
        self.assertIn("ValueError", told[0].last)
        self.assertIn("planted", told[0].last)

    def test_how_many_errors_is_told_as_the_process_ends(self):
        self.change("fetches", LEAVE)
        code, _, err = self.run_program("""
            if __name__ == "__main__":
                fit(DataLoader(Noise(), batch_size=4, num_workers=1, multiprocessing_context="fork"), 1)
                fit(DataLoader(Noise(12), batch_size=4), 1)
            """)
        self.assertEqual(code, 0, err)
        told = sorted([(e.count, e.disabled) for e in r.of("errors")] for r in self.rings())
        self.assertEqual(told, [[(1, False), (3, False)], [(1, False), (6, False)]], "each process's own")
        self.assertEqual({r.flags for r in self.rings()}, {layouts.FLAG_ENDED})

    def test_a_hook_that_gives_up_says_so(self):
        self.change("fetches", LEAVE)
        code, _, err = self.run_program("""
            if __name__ == "__main__":
                fit(DataLoader(Noise(40), batch_size=1), 1)
            """)
        self.assertEqual(code, 0, err)
        main = self.main_ring()
        self.assertEqual([(e.count, e.disabled) for e in main.of("errors")], [(1, False), (20, True)])
        self.assertEqual((main.flags, main.records[-1].record), (layouts.FLAG_ERRORS, "errors"))

    def test_what_is_dropped_is_counted_at_once(self):
        """Also where the process ends without a word."""
        code, _, err = self.run_program("""
            from dptrace_hook.record import ring
            for n in range(3):
                ring.put_json(ring.OPTIMIZER, {"optimizer": n, "class": "x" * ring.session()["ring"]})
            os._exit(0)
            """)
        self.assertEqual(code, 0, err)
        found, = self.rings()
        self.assertEqual((found.dropped, found.of("optimizer")), (3, []))

    def test_no_session_or_a_broken_one(self):
        plain = self.run_program(TRAIN, hooked=False)
        for text in (None, "", "{", "[]", '{"spool": 3}'):
            path = os.path.join(self.hook, "session.json")
            if text is None:
                os.unlink(path)
            else:
                with open(path, "w") as f:
                    f.write(text)
            self.assertEqual(self.run_program(TRAIN), plain, text)

    def test_the_spool_is_gone_or_goes(self):
        plain = self.run_program(TRAIN, hooked=False)
        self.session(spool=os.path.join(self.folder, "nowhere"))
        self.assertEqual(self.run_program(TRAIN), plain)
        self.session(spool=self.spool)
        program = "import shutil\nif __name__ == '__main__':\n    shutil.rmtree(%r)\n" % self.spool
        code, out, err = self.run_program(TRAIN.replace("    if __name__", "    " + program.replace("\n", "\n    ") + "if __name__", 1))
        self.assertEqual((code, out), plain[:2], err)

    def test_a_full_disk(self):
        """A limit on file sizes makes posix_fallocate fail as a full disk does (EFBIG for ENOSPC)."""
        def small():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        program = """
            if __name__ == "__main__":
                torch.manual_seed(1); random.seed(1); np.random.seed(1)
                fit(DataLoader(Noise(), batch_size=4, shuffle=True))
            """
        plain = self.run_program(program, hooked=False, before=small)
        self.assertEqual(self.run_program(program, before=small), plain)
        self.assertEqual(plain[0], 0, plain[2])
        name, = os.listdir(self.spool)  # which tells the recorder of it
        self.assertRegex(name, r"^[0-9]+\.[0-9]+\.%d\.none$" % errno.EFBIG)
        self.assertEqual(os.path.getsize(os.path.join(self.spool, name)), 0)

    def test_a_full_ring_drops_counts_and_goes_on(self):
        self.session(ring=4096)
        self.change("ring", "GONE_NS = 1 << 62\n")  # nobody looks here, and a busy machine takes its time
        plain, hooked = self.run_program(TRAIN, hooked=False), self.run_program(TRAIN)
        self.assertEqual(hooked, plain)
        main = self.main_ring()
        self.assertGreater(main.dropped, 0)
        self.assertEqual(main.flags & layouts.FLAG_UNREAD, 0)
        self.assertLess(main.head, main.capacity + 1)

    def test_without_a_recorder_it_counts_on(self):
        self.session(ring=4096)
        self.change("ring", "GONE_NS = -1\n")
        plain, hooked = self.run_program(TRAIN, hooked=False), self.run_program(TRAIN)
        self.assertEqual(hooked, plain)
        main = self.main_ring()
        self.assertEqual(main.flags, layouts.FLAG_UNREAD | layouts.FLAG_ENDED)
        self.assertGreater(main.dropped, 1)

    def test_exceptions_of_signal_handlers_reach_the_program(self):
        """torch raises "DataLoader worker is killed" from a SIGCHLD handler, at any bytecode: also at one of ours."""
        program = """
            import signal
            class Alarm(RuntimeError, OSError):  # as torch's, and as TimeoutError
                pass
            raised = caught = inside = unraisable = 0
            def ring(number, frame):
                global raised, inside
                raised += 1
                while frame is not None and "dptrace_hook" not in frame.f_code.co_filename:
                    frame = frame.f_back if "/torch/" in frame.f_code.co_filename or frame.f_code.co_filename == __file__ else None
                inside += frame is not None
                raise Alarm()
            def hook(unraisable_):
                global unraisable
                unraisable += unraisable_.exc_type is Alarm
            sys.unraisablehook = hook  # after it nobody ends the loop
            signal.signal(signal.SIGALRM, ring)
            class Plain(Dataset):
                def __len__(self):
                    return 1 << 30
                def __getitem__(self, i):
                    return i
            loader = DataLoader(Plain(), batch_size=None, collate_fn=int, sampler=range(1 << 30))
            draw = random.Random(8)
            for attempt in range(300):
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(0.0005, 0.003))
                    before = unraisable
                    for sample in loader:
                        if unraisable != before:
                            break
                except Alarm:
                    caught += 1
            print(raised, caught, unraisable)
            sys.stderr.write("inside the hook: %d\\n" % inside)
            """
        code, out, err = self.run_program(program)
        self.assertEqual(code, 0, err)
        raised, caught, unraisable = map(int, out.split())
        self.assertEqual(raised, 300)
        self.assertEqual(caught + unraisable, raised, "swallowed: %d" % (raised - caught - unraisable))
        self.assertGreater(int(err.split("inside the hook: ")[1]), 20, "too few to tell")

    def test_a_killed_worker_is_still_an_error(self):
        program = """
            import signal, time
            class Deadly(Noise):
                def __getitem__(self, i):
                    if i == 13:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return super().__getitem__(i)
            if __name__ == "__main__":
                errors = 0
                for attempt in range(5):
                    failed = 0
                    try:
                        try:
                            for batch in DataLoader(Deadly(), batch_size=4, num_workers=2, multiprocessing_context="fork"):
                                pass
                        except (OSError, EOFError):
                            failed = 1
                            time.sleep(1)  # torch's handler of SIGCHLD may raise a moment later
                    except RuntimeError:
                        failed = 1
                    errors += failed
                print(errors)
            """
        self.assertEqual(self.run_both(program), "5\n")
        codes = [w.exit_code for w in self.main_ring().of("worker") if w.phase == "exit"]
        self.assertEqual(codes.count(-9), 5, codes)

    def test_no_length_of_the_program_is_asked_for(self):
        """Truth of an object calls its __len__: of samplers, and of what a defaultdict makes when asked for what it has not."""
        program = """
            from collections import defaultdict
            from torch.utils.data import Sampler
            class Endless(Sampler):
                def __init__(self, order):
                    self.order = order
                def __iter__(self):
                    return iter(self.order)
                def __len__(self):
                    raise RuntimeError("no length")
            class Emptied(Noise):
                def __init__(self):
                    super().__init__()
                    self.made, self.rngs = [], defaultdict(self.make, {"a": random.Random(1)})
                def make(self):
                    self.made.append(1)
                def __getitem__(self, i):
                    self.rngs.pop("a", None)
                    assert not self.made
                    return super().__getitem__(i)
            if __name__ == "__main__":
                data = Emptied()
                for batch in DataLoader(data, batch_size=4, sampler=Endless(range(8))):
                    pass
                for batch in DataLoader(data, batch_sampler=Endless([[0, 1], [2, 3]])):
                    pass
                print("ok", len(data.made))
            """
        self.assertEqual(self.run_both(program), "ok 0\n")

    def test_an_error_of_the_program_keeps_its_text(self):
        program = """
            class Broken(Noise):
                def __getitem__(self, i):
                    if i == 13:
                        raise KeyError("no sample %d" % i)
                    return super().__getitem__(i)
            if __name__ == "__main__":
                for workers in (0, 2):
                    try:
                        fit(DataLoader(Broken(), batch_size=4, num_workers=workers, multiprocessing_context="fork" if workers else None))
                    except KeyError as e:
                        print(type(e).__name__, str(e).splitlines()[-1])
            """
        self.run_both(program)
        found = [e for r in self.rings() for e in r.of("exception")]
        self.assertEqual({(e.stage, e.type.split(".")[-1], e.sample) for e in found if e.sample >= 0}, {("fetch", "KeyError", 13)})
        lines = open(os.path.join(self.work, "main.py")).read().splitlines()
        for e in found:
            if e.sample >= 0:
                self.assertTrue(e.file.endswith("main.py"))
                self.assertIn("raise KeyError", lines[e.line - 1])
        self.assertEqual(len([e for e in found if e.sample >= 0]), 2)

    def test_no_threads_no_numpy_random_few_imports(self):
        program = """
            if __name__ == "__main__":
                class Quiet(Dataset):
                    def __len__(self):
                        return 16
                    def __getitem__(self, i):
                        return torch.rand(4)
                torch.manual_seed(1)  # no optimizer: importing torch's compiler loads numpy.random
                for batch in DataLoader(Quiet(), batch_size=4, num_workers=2, multiprocessing_context="fork"):
                    print(batch)
                import time
                feeders = lambda: [t for t in threading.enumerate() if t.name == "QueueFeederThread"]
                patience = time.monotonic() + 20
                tasks = lambda: len(os.listdir("/proc/self/task"))
                # torch's queues end theirs a little later, and the kernel has a thread for a moment when Python has no more
                while (feeders() or tasks() > threading.active_count()) and time.monotonic() < patience:
                    time.sleep(0.05)
                print(threading.active_count(), tasks())
                print("numpy.random" in sys.modules)
                sys.stderr.write(repr(sorted(sys.modules)))
            """
        plain, hooked = self.run_program(program, hooked=False), self.run_program(program)
        self.assertEqual(hooked[:2], plain[:2])
        if versions("numpy") >= (2, 4):  # loads it at first use; the first use may not be ours
            self.assertEqual(plain[1].splitlines()[-1], "False")
        new = {m.split(".")[0] for m in set(ast.literal_eval(hooked[2])) - set(ast.literal_eval(plain[2]))}
        self.assertLessEqual(new, {"dptrace_hook", "sitecustomize", "mmap", "json", "_json", "gc"}, "modules that only the hook loads")
