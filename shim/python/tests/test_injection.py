"""How the hook gets into a program, and that it leaves everything else there as it was."""
import json
import glob
import os
import subprocess
import sys
import unittest

from harness import HookTest

IS_ON = "import sys; print(any(type(f).__module__ == 'dptrace_hook' for f in sys.meta_path))"


class Injection(HookTest):
    def python(self, program, hooked=True, **options):
        return self.run_program(program, hooked, prelude="", **options)

    def test_on_by_pythonpath_and_off_where_python_ignores_it(self):
        self.assertEqual(self.python(IS_ON)[1], "True\n")
        for flag in ("-I", "-E", "-S"):
            code, out, err = self.python(IS_ON, flags=[flag])
            self.assertEqual((code, out, err), (0, "False\n", ""), flag)

    def test_users_sitecustomize_and_usercustomize_run(self):
        user = os.path.join(self.work, "site")
        self.write("site/sitecustomize.py", "import sys; sys.path.append('added by the user'); print('sitecustomize ran')")
        self.write("site/usercustomize.py", "print('usercustomize ran')")
        program = "import sitecustomize, sys; print(sitecustomize.__file__, sys.path[-1])"
        plain = self.python(program, hooked=False, path=[user])
        hooked = self.python(program, path=[user])
        self.assertIn("sitecustomize ran", plain[1])
        self.assertEqual(hooked, plain)
        self.assertEqual(self.python(IS_ON, path=[user])[1].splitlines()[-1], "True")

    def test_a_broken_sitecustomize_says_what_it_says_without_us(self):
        user = os.path.join(self.work, "site")
        for text in ("import nosuchmodule", "raise ImportError('theirs')", "1/0"):
            self.write("site/sitecustomize.py", text)
            plain, hooked = self.python("print(1)", hooked=False, path=[user]), self.python("print(1)", path=[user])
            self.assertIn("rror", plain[2])
            self.assertEqual(hooked, plain)
            self.assertEqual(self.python(IS_ON, path=[user])[1], "True\n", "the hook is in nevertheless")

    def test_without_a_sitecustomize_importing_it_behaves_the_same(self):
        program = "try:\n    import sitecustomize\n    print('there')\nexcept ImportError as e:\n    print(e)"
        self.assertIn(self.python(program)[1], ("there\n", self.python(program, hooked=False)[1]))

    def test_a_program_without_torch_loads_nothing_and_leaves_nothing(self):
        program = "import sys, json; print(json.dumps(sorted(sys.modules)))"
        plain, hooked = (set(json.loads(self.python(program, hooked=h)[1])) for h in (False, True))
        self.assertLessEqual(hooked - plain, {"dptrace_hook", "sitecustomize"})
        self.assertEqual(os.listdir(self.spool), [])

    def compiled(self):
        """What is compiled of the hook: when it was."""
        files = glob.glob(os.path.join(self.hook, "dptrace_hook", "*", "__pycache__", "*.pyc"))
        return {os.path.relpath(file, self.hook): os.stat(file).st_mtime_ns for file in files}

    def test_what_is_compiled_of_it_is_kept_and_nothing_of_the_programs(self):
        """The harness sets PYTHONDONTWRITEBYTECODE."""
        self.write("own.py", "")
        program = """
            import own, sys, torch.utils.data
            from dptrace_hook.watch import steps
            loaders = [type(m.__loader__).__name__ for m in (own, steps)]
            print(steps.settle.__code__.co_filename == steps.__file__, sys.dont_write_bytecode, *loaders)
        """
        expected = "True True SourceFileLoader Loader\n"
        self.assertEqual(self.python(program), (0, expected, ""))
        kept = self.compiled()
        self.assertGreater(len(kept), 30)
        self.assertEqual(glob.glob(os.path.join(self.work, "**", "*.pyc"), recursive=True), [])
        os.rename(self.hook, self.hook + "2")  # as the next recording has it elsewhere
        self.hook += "2"
        self.assertEqual(self.python(program), (0, expected, ""))
        self.assertEqual(self.compiled(), kept, "none is compiled again")
        self.change("guard", "theirs = None.nothing")
        self.assertIn("AttributeError", self.python(program)[2], "what has changed is")

    def test_torch_without_its_loader_module_is_no_error(self):
        self.write("torch/__init__.py", "")
        self.write("torch/utils/__init__.py", "")
        self.write("torch/utils/data/__init__.py", "value = 3")
        code, out, err = self.python("import torch.utils.data as d; print(d.value)")
        self.assertEqual((code, out, err), (0, "3\n", ""))

    def test_children_of_any_kind_have_it(self):
        program = """
            import os, subprocess, sys
            subprocess.run([sys.executable, "-c", %r])
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            subprocess.run([sys.executable, "-c", %r], env=env)
            """ % (IS_ON, IS_ON)
        self.assertEqual(self.python(program)[1], "True\nFalse\n")

    def test_twice_on_the_path_is_once_in_the_program(self):
        program = "import sys; print(sum(type(f).__module__ == 'dptrace_hook' for f in sys.meta_path))"
        self.assertEqual(self.python(program, path=[self.hook])[1], "1\n")

    def test_modules_look_untouched(self):
        program = """
            import importlib, inspect, pickle, sys, torch.utils.data as d
            from torch.utils.data import dataloader, _utils
            print(type(d.__loader__).__name__, type(d.__spec__).__name__, "exec_module" in vars(d.__loader__))
            print(len(inspect.getsource(d)) > 0, len(inspect.getsource(_utils.worker)) > 0)
            f = _utils.worker._worker_loop
            print(f.__module__, f.__qualname__, pickle.loads(pickle.dumps(f)) is f, f is dataloader._utils.worker._worker_loop)
            print(inspect.signature(f), inspect.signature(d.DataLoader.__init__))
            importlib.reload(_utils.worker)
            f = _utils.worker._worker_loop
            print(f.__module__, f.__qualname__, pickle.loads(pickle.dumps(f)) is f)
            print(sorted(n for n in vars(d.DataLoader) if "dptrace" in n))
            """
        plain, hooked = (self.python(program, hooked=h) for h in (False, True))
        self.assertEqual(plain[0], 0, plain[2])
        self.assertEqual(hooked[1], plain[1], hooked[2])

    def test_a_reloaded_worker_module_is_hooked_again(self):
        # litdata reloads it inside its workers
        self.run_program("""
            import importlib
            from torch.utils.data import _utils
            importlib.reload(_utils.worker)
            if __name__ == "__main__":
                fit(DataLoader(Noise(), batch_size=8, num_workers=1, multiprocessing_context="fork"), 1)
            """)
        self.assertEqual([w.phase for r in self.rings() for w in r.of("worker") if w.phase in ("ready", "end")], ["ready", "end"])


class Compiles(unittest.TestCase):
    def test_on_every_python_here(self):
        """3.8 is the oldest that must run it; sitecustomize.py must also compile where the hook stays off."""
        here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        files = [os.path.join(here, "sitecustomize.py")] + sorted(glob.glob(os.path.join(here, "dptrace_hook", "**", "*.py"), recursive=True))
        self.assertGreater(len(files), 40)
        program = "import sys\nfor f in sys.argv[1:]: compile(open(f, 'rb').read(), f, 'exec')\nprint('%d.%d' % sys.version_info[:2])"
        roots = [os.path.join(os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv")), "versions")]
        pythons = [sys.executable] + [os.path.join(r, v, "bin", "python") for r in roots if os.path.isdir(r) for v in sorted(os.listdir(r))]
        done = set()
        for python in pythons:
            if not os.access(python, os.X_OK):
                continue
            version = subprocess.run([python, "-c", "import sys; print('%d %d' % sys.version_info[:2])"], stdout=subprocess.PIPE,
                                     universal_newlines=True).stdout
            old = tuple(map(int, version.split())) < (3, 8)
            env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
            p = subprocess.run([python, "-c", program] + (files[:1] if old else files), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=env, universal_newlines=True)
            self.assertEqual(p.returncode, 0, python + p.stderr)
            done.add(p.stdout.strip())
        print("compiled by Python " + ", ".join(sorted(done)), file=sys.stderr)
