"""How workers and processes end: whether their parent asked for it, and what nobody caught."""
import os
import sys

from harness import HookTest, layouts


class Asked(HookTest):
    def exits(self):
        return [(w.exit_code, w.asked) for w in self.main_ring().of("worker") if w.phase == "exit"]

    def test_workers_that_were_done_or_left_early_were_asked(self):
        for method in ("fork", "spawn", "forkserver"):
            self.run_both("""
                if __name__ == "__main__":
                    for batch in DataLoader(Noise(), batch_size=4, num_workers=2, multiprocessing_context=%r):
                        pass
                    for batch in DataLoader(Noise(), batch_size=4, num_workers=2, multiprocessing_context=%r):
                        break
                """ % (method, method))
            self.assert_no_errors()
            self.assertEqual(self.exits(), [(0, "yes")] * 4, method)
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))

    def test_workers_of_an_iterable_are_asked_one_by_one(self):
        self.run_both("""
            import time
            class Stream(IterableDataset):
                def __iter__(self):
                    worker = torch.utils.data.get_worker_info().id
                    for i in range(3 + 6 * worker):
                        time.sleep(0.05)
                        yield i
            if __name__ == "__main__":
                for batch in DataLoader(Stream(), num_workers=2, multiprocessing_context="fork"):
                    pass
            """)
        self.assert_no_errors()
        self.assertEqual(self.exits(), [(0, "yes")] * 2)

    def test_a_worker_that_dies_was_not(self):
        program = """
            import signal, time
            class Deadly(Noise):
                def __getitem__(self, i):
                    if i == 13:
                        HOW
                    time.sleep(0.01)
                    return super().__getitem__(i)
            if __name__ == "__main__":
                failed = 0
                try:
                    try:
                        for batch in DataLoader(Deadly(), batch_size=4, num_workers=2, multiprocessing_context=METHOD):
                            pass
                    except (OSError, EOFError):
                        failed = 1
                        time.sleep(1)  # torch's handler of SIGCHLD may raise a moment later
                except RuntimeError:
                    failed = 1
                print("failed" * failed)
            """
        for how, code in (("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os._exit(3)", 3)):
            for method in ("fork", "forkserver"):
                out = self.run_both(program.replace("HOW", how).replace("METHOD", repr(method)))
                self.assertEqual(out, "failed\n")
                self.assert_no_errors()
                exits = sorted((w.worker, w.exit_code, w.asked) for w in self.main_ring().of("worker") if w.phase == "exit")
                died = [e for e in exits if e[0] == 1]  # index 13 is of the second worker's second batch
                self.assertEqual(died, [(1, code if method == "fork" or code > 0 else died[0][1], "no")], method)
                self.assertTrue(all(e[1:] == (0, "yes") for e in exits if e[0] == 0), exits)
                for name in os.listdir(self.spool):
                    os.unlink(os.path.join(self.spool, name))

    def test_a_death_that_ends_the_program_too(self):
        for how, code in (("os.kill(os.getpid(), signal.SIGKILL)", -9), ("os._exit(3)", 3), ("os.abort()", -6)):
            self.run_program("""
                import signal
                class Deadly(Noise):
                    def __getitem__(self, i):
                        if i == 13:
                            HOW
                        return super().__getitem__(i)
                if __name__ == "__main__":
                    for batch in DataLoader(Deadly(), batch_size=4, num_workers=2, multiprocessing_context="fork"):
                        pass
                """.replace("HOW", how))
            self.assert_no_errors()
            exits = [(w.worker, w.exit_code, w.asked) for w in self.main_ring().of("worker") if w.phase == "exit"]
            self.assertIn((1, code, "no"), exits)
            self.assertFalse([e for e in exits if e[0] == 0 and e[2] == "no"], exits)
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))

    def test_a_death_that_ends_the_program_between_two_batches(self):
        """torch's SIGCHLD handler raises wherever the program is; the iterator lives on in whatever holds it, until nothing more is written."""
        code, _, err = self.run_program("""
            import time
            class Deadly(Noise):
                def __getitem__(self, i):
                    if i == 13:
                        os._exit(3)
                    return super().__getitem__(i)
            if __name__ == "__main__":
                import builtins
                builtins.kept = iter(DataLoader(Deadly(), batch_size=4, num_workers=2, multiprocessing_context="fork"))
                for batch in builtins.kept:
                    time.sleep(100)
            """)
        self.assertEqual(code, 1, err)
        self.assertIn("exited unexpectedly", err)
        self.assert_no_errors()
        exits = [(w.worker, w.exit_code, w.asked) for w in self.main_ring().of("worker") if w.phase == "exit"]
        self.assertIn((1, 3, "no"), exits)
        self.assertFalse([e for e in exits if e[0] == 0 and e[2] == "no"], exits)

    def test_the_exit_status_is_left_for_the_program(self):
        out = self.run_both("""
            import signal
            if __name__ == "__main__":
                iterator = iter(DataLoader(Noise(), batch_size=4, num_workers=1, multiprocessing_context="fork"))
                next(iterator)
                process = iterator._workers[0]
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.kill(process.pid, signal.SIGKILL)
                os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
                iterator._shutdown_workers()
                print(process._popen.returncode, process.exitcode)
                iterator._shutdown_workers()
            """)
        self.assertEqual(out, "-9 -9\n")
        self.assert_no_errors()
        self.assertEqual(self.exits(), [(-9, "no")])


class Uncaught(HookTest):
    def ended(self, text, code=1, **options):
        got, out, err = self.run_program(text, **options)
        self.assertEqual(got, code, err)
        self.assert_no_errors()
        found = [(r, e) for r in self.rings() for e in r.of("exception") if e.stage == "exit"]
        for ring, e in found:
            self.assertEqual((e.loader, e.pass_, e.worker, e.sample), (0, 0, -1, -1))
            self.assertEqual((ring.records[-1].record, ring.flags), ("exception", layouts.FLAG_ENDED),
                             "it must be there before the ring is closed")
        return [e for _, e in found]

    def test_what_ended_the_program(self):
        e, = self.ended("""
            def train():
                raise KeyError("weights", 7)
            if __name__ == "__main__":
                train()
            """)
        self.assertEqual((e.type, e.message, e.func), ("KeyError", "weights, 7", "train"))
        self.assertIn("raise KeyError", open(e.file).read().splitlines()[e.line - 1])

    def test_what_a_worker_raised_ends_the_program(self):
        e, = self.ended("""
            class Broken(Noise):
                def __getitem__(self, i):
                    raise ValueError("broken")
            if __name__ == "__main__":
                fit(DataLoader(Broken(), num_workers=1, multiprocessing_context="fork"))
            """)
        self.assertEqual(e.type, "ValueError")

    def test_ctrl_c(self):
        e, = self.ended("""
            import signal
            if __name__ == "__main__":
                os.kill(os.getpid(), signal.SIGINT)
                import time
                time.sleep(5)
            """, code=-2)
        self.assertEqual((e.type, e.message), ("KeyboardInterrupt", ""))

    def test_run_as_a_module(self):
        self.write("job.py", "import torch.utils.data\nraise OSError('as a module')\n")
        e, = self.ended("""
            if __name__ == "__main__":
                os.execv(sys.executable, [sys.executable, "-m", "job"])
            """)
        self.assertEqual((e.type, e.message), ("OSError", "as a module"))

    def test_a_fork(self):
        found = self.ended("""
            if __name__ == "__main__":
                pid = os.fork()
                if not pid:
                    raise RuntimeError("in the child")
                os.waitpid(pid, 0)
            """, code=0)
        self.assertEqual([e.message for e in found], ["in the child"])

    def test_a_child_of_multiprocessing(self):
        program = """
            import multiprocessing
            def work(how):
                if how == "raise":
                    raise RuntimeError("in the child")
                if how == "exit":
                    sys.exit(3)
            if __name__ == "__main__":
                for how in ("raise", "exit", "end"):
                    p = multiprocessing.get_context(%r).Process(target=work, args=(how,))
                    p.start(); p.join()
                    print(p.exitcode)
            """
        for method in ("fork", "spawn"):
            code, out, err = self.run_program(program % method)
            self.assertEqual((code, out), (0, "1\n3\n0\n"), err)
            found = [(e.message, e.func) for r in self.rings() for e in r.of("exception")]
            self.assertEqual(found, [("in the child", "work")])
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))

    def test_what_leaves_the_worker_loop(self):
        self.change("fetches", """
            def _planted(args, kwargs):
                def broken(*a, **k):
                    raise MemoryError("in torch itself")
                sys.modules["torch.utils.data._utils.worker"].ManagerWatchdog = broken  # which the loop makes first
                return _serve(args, kwargs)
            _serve, serve = serve, _planted
            """)
        code, out, err = self.run_program("""
            if __name__ == "__main__":
                try:
                    for batch in DataLoader(Noise(), num_workers=1, multiprocessing_context="fork"):
                        pass
                except RuntimeError:
                    print("failed")
            """)
        self.assertEqual((code, out), (0, "failed\n"), err)
        found = [(r, e) for r in self.rings() for e in r.of("exception") if e.stage == "exit"]
        self.assertEqual([(e.type, e.message) for _, e in found], [("MemoryError", "in torch itself")])
        self.assertEqual(found[0][0].of("worker")[-1].phase, "end")

    def test_what_was_caught_printed_or_meant(self):
        """sys.last_value is set by others than the interpreter's end: they all go on, or end well."""
        for text in ("sys.exit(1)", "sys.exit('message')", "os._exit(1)", """
                     def test():
                         raise ValueError("a failing test")
                     def runner():
                         try:
                             test()
                         except ValueError as e:
                             sys.last_type, sys.last_value, sys.last_traceback = type(e), e, e.__traceback__
                             sys.last_exc = e
                     runner()
                     sys.exit(1)
                     """, """
                     import code
                     code.InteractiveInterpreter().runcode("1/0")
                     sys.exit(1)
                     """, """
                     import threading
                     def work():
                         raise ValueError("in a thread")
                     t = threading.Thread(target=work)
                     t.start(); t.join()
                     sys.exit(1)
                     """):
            lines = text.splitlines() if "\n" in text else ["", " " * 21 + text]
            self.assertEqual(self.ended("\n".join(line[21:] for line in lines)), [], text)

    def test_a_console(self):
        self.assertEqual(self.ended("1/0\n", flags=["-i"], code=0), [])

    def test_properties_of_the_exception_are_not_asked(self):
        e, = self.ended("""
            class Loud(Exception):
                @property
                def args(self):
                    print("args")
                @property
                def __traceback__(self):
                    print("traceback")
                @property
                def __class__(self):
                    print("class")
                    return int
            if __name__ == "__main__":
                sys.excepthook = lambda *a: None
                raise Loud("text")
            """)
        self.assertEqual((e.type, e.message), ("__main__.Loud", "text"))
