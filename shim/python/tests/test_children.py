"""What a Python does to others: signals that it sends, bad ends of its children and whether the program looks at them."""
import os

from harness import HookTest


class Children(HookTest):
    def learned(self, text, **options):
        """{exit code: whether it was read}, of a program's children."""
        self.run_both(text, **options)
        self.assert_no_errors()
        found = {}
        for ring in self.rings():
            for act in ring.of("act"):
                if act.op == "status":
                    found[act.exit_code] = "yes" if found.get(act.exit_code) == "yes" else act.read
        return found

    def test_what_is_looked_at(self):
        program = """
            import os, sys, subprocess, multiprocessing
            def end(code):
                os._exit(code)
            if __name__ == "__main__":
                bad = lambda n: [sys.executable, "-c", "import os; os._exit(%d)" % n]
                subprocess.call(bad(11))
                code = subprocess.call(bad(12))
                subprocess.run(bad(13))
                print(subprocess.run(bad(14)).returncode)
                p = subprocess.Popen(bad(15))
                while p.poll() is None:
                    pass
                p = subprocess.Popen(bad(16))
                p.communicate()
                if p.returncode:
                    print("read")
                try:
                    subprocess.check_call(bad(17))
                except subprocess.CalledProcessError as e:
                    print(e.returncode)
                output = subprocess.run(bad(18), stdout=subprocess.PIPE).stdout
                os.system("exit 19")
                status = os.system("exit 20")
                for n in (21, 22):
                    p = multiprocessing.get_context("fork").Process(target=end, args=(n,))
                    p.start()
                    p.join()
                    if n == 22:
                        print(p.exitcode)
                subprocess.call([sys.executable, "-c", ""])
            """
        found = {11: "no", 12: "yes", 13: "no", 14: "yes", 15: "no", 16: "yes", 17: "yes", 18: "", 19: "no", 20: "yes",
                 21: "no", 22: "yes"}
        self.assertEqual(self.learned(program), found)
        self.forget()
        self.assertEqual(self.learned(program, prelude=""), found, "without torch")

    def test_a_child_that_is_let_go_as_the_interpreter_ends(self):
        """A function keeps the globals of __main__, and the Popen in them, until the modules are gone, ours with them."""
        found = self.learned("""
            import subprocess, sys
            def job():
                pass
            p = subprocess.Popen([sys.executable, "-c", "import os; os._exit(11)"])
            print(p.wait())
        """, prelude="")
        self.assertEqual(found, {11: "yes"})

    def test_what_nobody_can_say(self):
        """A library waits, the child may have said it through a pipe or a queue, or what was printed is read."""
        program = """
            import argparse, asyncio, functools, os, sys, subprocess, multiprocessing
            context = multiprocessing.get_context("fork")
            queue = context.SimpleQueue()
            def end(code, *args):
                os._exit(code)
            def tells(code):
                queue.put(code)
                end(code)
            def calls(code):
                tells(code)
            class Training(context.Process):
                def run(self):
                    os._exit(self.code)
            def join(process):
                process.start()
                process.join()
            async def wait(n, **options):
                p = await asyncio.create_subprocess_exec(*bad(n), **options)
                await p.communicate()
                print(p.returncode)
            if __name__ == "__main__":
                bad = lambda n: [sys.executable, "-c", "import os; os._exit(%d)" % n]
                asyncio.run(wait(11))
                asyncio.run(wait(12, stderr=subprocess.PIPE))
                subprocess.Popen(bad(13), stderr=subprocess.PIPE).communicate()
                subprocess.run(bad(14), capture_output=True)
                join(context.Process(target=end, args=(15, [{"queue": queue}])))
                join(context.Process(target=calls, args=(16,)))
                join(context.Process(target=functools.partial(end, 17, queue)))
                join(context.Process(target=end, args=(18,), kwargs={}))
                join(context.Process(target=end, args=(19, argparse.Namespace(done=context.Event()))))
                for code in 20, 21:
                    process = Training()
                    process.code, process.more = code, queue if code == 20 else [list(range(1000000)), "two", {"three": [4.0]}]
                    join(process)
                join(context.Process(target=lambda: end(22, queue)))
                def local(receive, send):
                    join(context.Process(target=lambda: end(23) or send.send("ok")))
                local(*context.Pipe())
                with multiprocessing.get_context("fork").Pool(1) as pool:
                    pool.map(abs, [1])
            """
        found = {code: "" for code in range(11, 24)}
        found.update({18: "no", 21: "no"})
        learned = self.learned(program)
        self.assertEqual({code: read for code, read in learned.items() if read or code in found}, found)

    def forget(self):
        for name in os.listdir(self.spool):
            os.unlink(os.path.join(self.spool, name))

    def test_results_are_as_without_us(self):
        self.learned("""
            import copy, pickle, subprocess
            if __name__ == "__main__":
                r = subprocess.run([sys.executable, "-c", "import os; os._exit(3)"])
                print(sorted(vars(r)), r.returncode, copy.copy(r).returncode, pickle.loads(pickle.dumps(r)).returncode)
                p = subprocess.Popen(r.args)
                print(vars(p)["returncode"], p.wait(), p.poll(), vars(p)["returncode"])
                del r.returncode
                print(hasattr(r, "returncode"), subprocess.call.__name__, os.system("exit 4"), os.kill.__module__)
            """)

    def test_signals_that_are_sent(self):
        self.run_both("""
            import signal, subprocess
            if __name__ == "__main__":
                p = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
                os.kill(p.pid, 0)
                p.kill()
                print(p.wait())
                signal.signal(signal.SIGUSR1, lambda *a: print("got it"))
                os.kill(os.getpid(), signal.SIGUSR1)
            """)
        self.assert_no_errors()
        main, = [r for r in self.rings() if r.of("act")]
        self.assertEqual([(a.signal, a.pid == main.pid) for a in main.of("act") if a.op == "signal"], [(9, False), (10, True)])

    def test_an_end_in_good_order(self):
        for end, orderly in (("sys.exit(3)", True), ("pass", True), ("os._exit(3)", False), ("raise KeyError(3)", False)):
            self.run_program("""
                if __name__ == "__main__":
                    %s
                """ % end)
            self.assertEqual([a.op for r in self.rings() for a in r.of("act")], ["end"] * orderly, end)
            self.forget()

