"""What is said of where the time of a fetch goes: as each thread's own counters have it."""
import os

from harness import HookTest

# Of each batch of four: 40 ms asleep, 20 ms of work, and one call that reads 100,000 bytes for each sample.
PROGRAM = """
import time

class Slow(Noise):
    def __init__(self, n=32):
        super().__init__(n)
        with open("data", "wb") as f:
            f.write(bytes(100000))
    def __getitem__(self, i):
        time.sleep(0.01)
        end = time.thread_time() + 0.005
        while time.thread_time() < end:
            pass
        fd = os.open("data", os.O_RDONLY)
        os.read(fd, 200000)
        os.close(fd)
        return super().__getitem__(i)

class Pairs(Slow):
    def __getitem__(self, i):
        return super().__getitem__(i), i

def seeded(worker):
    np.random.seed(worker)  # a spawned one's is anything, before torch 1.9

def first(pairs):
    return torch.stack([x for x, _ in pairs])

if __name__ == "__main__":
    torch.manual_seed(1); random.seed(1); np.random.seed(1)
    how = HOW
    options = {} if how == "none" else {"num_workers": 2, "multiprocessing_context": how, "worker_init_fn": seeded}
    fit(DataLoader(Pairs() if how == "none" else Slow(), batch_size=4, collate_fn=first if how == "none" else None, **options), 1)
"""


class Splits(HookTest):
    def splits(self, how, **options):
        """(split, the fetch it is of) of all, and how many fetches there were"""
        self.run_both(PROGRAM.replace("HOW", repr(how)), **options)
        self.assert_no_errors()
        found, fetches = [], 0
        for ring in self.rings():
            of = {(f.loader, f.pass_, f.worker, f.fetch): f for f in ring.of("fetch")}
            fetches += len(of)
            found += [(s, of[s.loader, s.pass_, s.worker, s.fetch]) for s in ring.of("split")]
        return found, fetches

    def test_by_how_the_time_was_spent(self):
        for how in ("none", "fork", "spawn"):
            for native in ("0", "1") if how == "fork" else ("1",):
                found, fetches = self.splits(how, env={"DPTRACE_NATIVE": native})
                self.assertEqual(fetches, 8)
                self.assertGreaterEqual(len(found), 1 if how == "none" else 2)  # the second fetch of each worker in any case
                for split, fetch in found:
                    self.assertEqual((split.batch, split.samples, split.t, split.wall_ns), (fetch.batch, 4, fetch.t, fetch.fetch_ns))
                    self.assertGreaterEqual(split.cpu_ns, 20e6)
                    self.assertGreaterEqual(split.others_ns, 0)
                    self.assertGreaterEqual(split.queue_ns, 0)
                    # Of a sleep as much is spent waiting for a processor as the thread has waited for one on the way into it.
                    self.assertGreaterEqual(split.wall_ns - split.cpu_ns, 38e6)
                    self.assertGreaterEqual(split.wall_ns - split.cpu_ns - split.queue_ns, 1e6)
                    self.assertEqual((split.read_bytes, split.reads), (400000, 4), (how, native))
                    self.assertGreaterEqual(split.disk_bytes, 0)
                for name in os.listdir(self.spool):
                    os.unlink(os.path.join(self.spool, name))

    def test_never_two_in_a_row(self):
        self.session(digest="full")  # else as many as a share of the time allows
        for how in ("none", "fork"):
            found, fetches = self.splits(how)
            self.assertEqual(sorted(s.fetch for s, _ in found), [1, 3, 5, 7] if how == "none" else [1, 1, 3, 3])
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))

    def test_few_where_fetches_are_short(self):
        """It costs more than a fetch of a few samples that lie in memory takes."""
        self.run_both("fit(DataLoader(torch.arange(8000.0).reshape(-1, 4), batch_size=4), 1)")
        ring = self.main_ring()
        self.assertEqual(len(ring.of("fetch")), 500)
        self.assertLessEqual(len(ring.of("split")), 100)
        self.assertGreaterEqual(len(ring.of("split")), 1)

    def test_what_the_kernel_does_not_say(self):
        self.change("splits", """
            _SCHEDSTAT, _IO = "/proc/thread-self/no-such-file", "/proc/thread-self/nor-this"
            """)
        found, _ = self.splits("none")
        self.assertGreaterEqual(len(found), 1)
        for split, _ in found:
            self.assertEqual((split.queue_ns, split.read_bytes, split.reads, split.disk_bytes), (-1, -1, -1, -1))
            self.assertGreaterEqual(split.cpu_ns, 20e6)

    def test_digests_are_as_without(self):
        """Looking takes the place of what digests are called by, for as long as a fetch."""
        def digests():
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))
            self.splits("none", env={"DPTRACE_NATIVE": native})
            return [(d.fetch, d.positions, d.contents, d.rows) for d in self.main_ring().of("digest")]
        for native in ("0", "1"):
            with_them = digests()
            text = open(self.module("splits")).read()
            self.change("splits", "FIRST = 1 << 62")
            without = digests()
            with open(self.module("splits"), "w") as f:
                f.write(text)
            self.assertEqual(with_them, without)
            self.assertGreater(len(without), 0)

    def test_errors_of_fetch_and_collate(self):
        """Of a fetch that ends in an error nothing is said, and the next are as ever."""
        out = self.run_both("""
            class Bad(Noise):
                def __getitem__(self, i):
                    if i in (5, 13):
                        raise KeyError(i)
                    return super().__getitem__(i)

            def collate(samples):
                if calls.append(0) or len(calls) == 6:
                    raise ValueError("collate")
                return torch.stack(samples)

            calls = []
            loader = DataLoader(Bad(40), batch_size=2, collate_fn=collate)
            for _ in range(1):
                batches = iter(loader)
                while True:
                    try:
                        next(batches)
                        print("ok")
                    except StopIteration:
                        break
                    except (KeyError, ValueError) as e:
                        print(type(e).__name__, e, flush=True)
            """)
        self.assertEqual(out.count("ok"), 17)
        self.session(digest="full")
        self.assert_no_errors()

    def test_a_fault_of_ours(self):
        """Errors in what looks, at each of its places: the program does not notice."""
        text = open(self.module("splits")).read()
        for place in ("def begin(self, fetches):\n        \"\"\"A fetch is about to begin.\"\"\"\n",
                      "def stop(self, fetches):\n        \"\"\"The samples are there.\"\"\"\n",
                      "def back(self, fetches):\n", "def collating(fetches, data):\n", "def _queue():\n"):
            head, mark, rest = text.partition(place)
            self.assertTrue(mark, place)
            indent = " " * (4 if place.startswith("def collating") or place.startswith("def _queue") else 8)
            body = rest
            if body.lstrip().startswith('"""'):
                begin = body.index('"""') + 3
                end = body.index('"""', begin) + 4
                mark, body = mark + body[:end], body[end:]
            with open(self.module("splits"), "w") as f:
                f.write(head + mark + indent + "raise RuntimeError('ours')\n" + body)
            for native in ("0",) if "begin" in place else ("1",):
                self.run_both(PROGRAM.replace("HOW", "'none'").replace("0.01", "0").replace("0.005", "0"), env={"DPTRACE_NATIVE": native})
            self.assertTrue(any(r.of("errors") for r in self.rings()))
            for name in os.listdir(self.spool):
                os.unlink(os.path.join(self.spool, name))
