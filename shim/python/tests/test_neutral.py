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
                list(DataLoader(Noise(), batch_size=4))
                for generation in range(3):
                    child = os.fork()
                    if child:
                        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) if hasattr(os, "waitstatus_to_exitcode")
                                 else os.waitpid(child, 0)[1] >> 8)
                    torch.manual_seed(1); random.seed(1); np.random.seed(1)
                    print(sum(batch.sum().item() for batch in DataLoader(Noise(), batch_size=4)))
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


class Marks(HookTest):
    """Nothing of ours is found in what the program has."""

    def both(self, program, **options):
        out = self.run_both(program, **options)
        self.assert_no_errors()
        return out

    def test_vars_of_a_loader(self):
        """As they are printed, copied, compared, and handed to a constructor."""
        self.both("""
            import copy
            def again(loader):
                keep = ("dataset", "num_workers", "collate_fn", "worker_init_fn", "batch_sampler")
                return type(loader)(**{k: v for k, v in vars(loader).items() if k in keep})
            if __name__ == "__main__":
                loader = DataLoader(list(range(8)), batch_size=4)
                for l in loader, copy.copy(loader), copy.deepcopy(loader), again(loader):
                    print(sorted(vars(l)), [b.tolist() for b in l], sorted(vars(l)), sorted(k for k in dir(l) if "dptrace" in k))
                print(vars(loader) == vars(copy.copy(loader)), vars(loader).keys() == vars(again(loader)).keys())
            """)
        self.assertEqual([l.loader for l in self.main_ring().of("loader")], [1, 2, 3, 4])

    def test_a_loader_that_minds_what_is_set_and_asked(self):
        self.both("""
            class Strict(DataLoader):
                allowed = None
                def __setattr__(self, name, value):
                    print("set", name)
                    super().__setattr__(name, value)
                def __getattribute__(self, name):
                    if name[:2] != "__" or name == "__dict__":
                        print("get", name)
                    return super().__getattribute__(name)
                def __delattr__(self, name):
                    print("delete", name)
                    super().__delattr__(name)
                def __eq__(self, other):
                    raise TypeError("compared")
                def __hash__(self):
                    raise TypeError("hashed")
                def __len__(self):
                    raise TypeError("how long?")
                def __bool__(self):
                    raise TypeError("true?")
                def __repr__(self):
                    raise TypeError("shown")
            if __name__ == "__main__":
                for workers in (0, 1):
                    torch.manual_seed(1)
                    loader = Strict(list(range(8)), batch_size=4, shuffle=True, num_workers=workers, multiprocessing_context="fork" if workers else None)
                    for epoch in range(2):
                        for b in loader:
                            print(b)
            """)

    def test_a_loader_whose_dictionary_is_something_else(self):
        self.both("""
            class Barred(DataLoader):
                @property
                def __dict__(self):
                    raise TypeError("no dictionary")
            class Slotted(DataLoader):
                __slots__ = ("extra",)
            if __name__ == "__main__":
                for made in Barred, Slotted:
                    for epoch in range(2):
                        print([b.tolist() for b in made(list(range(8)), batch_size=4)])
            """)

    def test_pickles_of_loaders(self):
        """As many bytes, and nothing in them of us; a loader that is sent to a process that is spawned."""
        self.both("""
            import pickle, multiprocessing
            def there(loader, queue):
                queue.put((sorted(vars(loader)), [b.tolist() for b in loader]))
            if __name__ == "__main__":
                loader = DataLoader(list(range(8)), batch_size=4)
                for epoch in range(2):
                    text = pickle.dumps(loader)
                    print(len(text), b"dptrace" in text, [b.tolist() for b in pickle.loads(text)], [b.tolist() for b in loader])
                spawn = multiprocessing.get_context("spawn")
                queue = spawn.Queue()
                child = spawn.Process(target=there, args=(loader, queue))
                child.start()
                print(queue.get())
                child.join()
            """)

    def test_vars_of_processes_iterators_fetchers_and_optimizers(self):
        self.both("""
            import multiprocessing
            class Inheriting(multiprocessing.get_context("fork").Process):
                def __setattr__(self, name, value):
                    if not name.startswith("_"):
                        raise AttributeError(name)
                    super().__setattr__(name, value)
            names = ["name %d" % i for i in range(200000)]
            def run():
                print(sorted(vars(multiprocessing.current_process())), len(names), flush=True)
            if __name__ == "__main__":
                list(DataLoader(torch.ones(8, 4), batch_size=4))
                p = Inheriting(target=run)
                print(sorted(vars(p)), flush=True)
                p.start()
                there = sorted(vars(p))
                p.join()
                print(there, sorted(vars(p)), p.exitcode)
                o = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
                o.zero_grad(); o.step()
                print(sorted(vars(o)))
            """)

    def test_notes_go_with_their_objects(self):
        """Of all loaders none is kept, and no note of one."""
        code, out, err = self.run_program("""
            import gc, weakref
            from dptrace_hook.watch import iterators
            if __name__ == "__main__":
                alive = []
                for n in range(2000):
                    loader = DataLoader([1, 2])
                    alive.append(weakref.ref(loader))
                    if n % 20 == 0:
                        loader.itself = loader
                        list(loader)
                del loader
                gc.collect()
                print(sum(r() is not None for r in alive), len(iterators._notes.kept))
            """)
        self.assertEqual((code, out), (0, "0 0\n"), err)

    def test_a_copy_is_placed_where_its_original_was_made(self):
        """Which it has its parts from; of one that shares nothing it is told where it is first used."""
        code, _, err = self.run_program("""
            import copy, pickle
            loader = DataLoader(list(range(8)), batch_size=4)  # made
            list(loader)
            list(copy.copy(loader))
            list(pickle.loads(pickle.dumps(loader)))  # used
            """)
        self.assertEqual(code, 0, err)
        lines = open(self.work + "/main.py").read().splitlines()
        self.assertEqual([lines[l.line - 1].partition("  # ")[2] for l in self.main_ring().of("loader")], ["made", "made", "used"])
