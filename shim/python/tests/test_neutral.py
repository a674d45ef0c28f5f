"""What a program may do, and find, as if the hook were not there: each of these once broke under it, or showed it."""
from harness import HookTest


class Descriptors(HookTest):
    def test_one_that_closes_all_of_them(self):
        """As daemons do. The numbers are the program's from then on: in the process that closed them, and in its workers."""
        self.run_both("""
            class Files(Noise):
                def __init__(self, files):
                    super().__init__()
                    self.files = files
                def __getitem__(self, i):
                    for f in self.files:
                        assert os.fstat(f).st_ino == os.stat(__file__).st_ino and os.pread(f, 3, 0)
                    return super().__getitem__(i)
            if __name__ == "__main__":
                os.closerange(3, 4096)
                files = [os.open(__file__, os.O_RDONLY) for _ in range(12)]
                for workers in (0, 2, 2):
                    torch.manual_seed(1); random.seed(1); np.random.seed(1)
                    fit(DataLoader(Files(files), batch_size=4, num_workers=workers, multiprocessing_context="fork" if workers else None), 1)
            """)
        self.assert_no_errors()
        self.assertEqual(len([r for r in self.rings() if r.of("fetch")]), 5)

    def test_of_a_child_that_is_no_worker(self):
        """What the child lets go of is its parent's ring."""
        self.run_both("""
            if __name__ == "__main__":
                os.closerange(3, 4096)
                files = [os.open(__file__, os.O_RDONLY) for _ in range(12)]
                torch.manual_seed(1); random.seed(1); np.random.seed(1)
                fit(DataLoader(Noise(), batch_size=4), 1)
                for generation in range(3):
                    child = os.fork()
                    if child:
                        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if hasattr(os, "waitstatus_to_exitcode")
                                 else os.waitpid(child, 0)[1] >> 8)
                    torch.manual_seed(1); random.seed(1); np.random.seed(1)
                    fit(DataLoader(Noise(), batch_size=4), 1)
                    print(generation, [os.fstat(f).st_ino == os.stat(__file__).st_ino for f in files], flush=True)
            """)
        self.assert_no_errors()

    def test_none_is_open_more_than_in_a_plain_run(self):
        """But for sockets and torch's shared memory, of which there are more or fewer by the moment."""
        program = """
            def files():
                found = set()
                for f in os.listdir("/proc/self/fd"):
                    try:
                        found.add(os.readlink("/proc/self/fd/" + f).partition("[")[0].replace(str(os.getpid()), "PID"))
                    except OSError:
                        pass
                return sorted(f for f in found if not f.startswith(("/dev/shm/", "/torch_", "socket:", "pipe:")))
            class Told(Noise):
                def __getitem__(self, i):
                    return files()
            if __name__ == "__main__":
                for workers in (0, 1):
                    print(files(), list(DataLoader(Told(4), num_workers=workers, multiprocessing_context="fork" if workers else None,
                                                   collate_fn=list)))
            """
        self.run_both(program)

    def test_without_ctypes_and_without_a_map_that_needs_no_descriptor(self):
        """Then a descriptor is kept, and never closed: its number may be the program's by now."""
        with open(self.module("mapping")) as f:
            self.assertIn("def _by_address(", f.read())
        self.change("mapping", "def _by_address(fd, size):\n    return None\n\n\n_TRACKED = True\n")
        self.test_of_a_child_that_is_no_worker()
