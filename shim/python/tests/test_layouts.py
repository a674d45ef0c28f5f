"""What the hook packs is what its layouts call it: here each value is another one. No program is run."""
import os
import struct
import sys
import tempfile
import unittest
from types import SimpleNamespace as Some
from unittest import mock

import torch.utils.data  # the hook's modules are for programs that have it
from harness import PYTHON

sys.path.insert(0, PYTHON)
import rings  # noqa: E402
from dptrace_hook.patch import twin_delivering, twin_serving  # noqa: E402
from dptrace_hook.record import layouts, ring  # noqa: E402
from dptrace_hook.read import digests, open_files, slots, splits  # noqa: E402
from dptrace_hook.watch import fetches, iterators, steps, training  # noqa: E402


class Payloads(unittest.TestCase):
    def setUp(self):
        self.written = []
        for name, written in ("put", self.put), ("pack", self.pack), ("integers", self.integers):
            patch = mock.patch.object(ring, name, written)
            patch.start()
            self.addCleanup(patch.stop)

    def put(self, kind, payload, t=0):
        self.written.append(rings.Record(rings.TYPES[kind], t, payload))

    def pack(self, kind, t, *values):
        packed = layouts.packed(vars(layouts)[rings.TYPES[kind].upper() + "_FIELDS"])
        n = len(packed.unpack(bytes(packed.size)))
        self.put(kind, packed.pack(*values[:n]) + b"".join(values[n:]), t)
        return True

    def integers(self, kind, t, *values):
        """As native.Integers: nothing where these are none."""
        if any(type(i) is not int for i in values[-1]):
            return False
        return self.pack(kind, t, *values[:-1], struct.pack("<%dq" % len(values[-1]), *values[-1]))

    def check(self, kind, t, **fields):
        record = self.written.pop(0)
        names = {rings.attributes({name: 0}).popitem()[0] for name, _ in vars(layouts)[kind.upper() + "_FIELDS"]}
        self.assertLessEqual(names, set(fields), "a field that nobody looks at")
        found = vars(record)
        self.assertEqual((record.record, record.t, {name: found[name] for name in fields}), (kind, t, fields))

    def test_put(self):
        iterators.put_indices((1, 2), 3, 4, [70, 71], 5, 6, lambda indices: [80, 81])
        self.check("put", 5, loader=1, pass_=2, batch=3, worker=4, dur_ns=6, first=0, n=2, indices=[70, 71], ids=[80, 81])
        iterators.put_indices((1, 2), 3, 4, list(range(5000)), 5, 6)
        self.check("put", 5, loader=1, pass_=2, batch=3, worker=4, dur_ns=6, first=0, n=4096, ids=[])
        self.check("put", 5, loader=1, pass_=2, batch=3, worker=4, dur_ns=6, first=4096, n=904, ids=[])
        iterators.put_indices((1, 2), 3, 4, ["a", "b"], 5, 6)
        self.check("put", 5, loader=1, pass_=2, batch=3, worker=4, dur_ns=6, first=0, n=-1, indices="a,b")

    def test_fetch_of_a_worker(self):
        """Of twin.Serving, which is what the helper in C is held to by test_native."""
        worker, one = twin_serving.Serving(), twin_serving.Fetching()
        one.number, one.worker, one.fetch, one.samples = 1, 2, 3, 5
        worker.record = lambda t, *values: self.pack(layouts.FETCH, t, *values)
        worker.done, worker.done_t, worker.done_fetch_ns, worker.done_collate_ns = one, 1000, 7, 8
        worker.t_put, worker.put_ns, worker.batch = 900, 9, 4
        worker.putting((), None)
        self.check("fetch", 1000, loader=0, pass_=1, worker=2, batch=4, fetch=3, wait_ns=100, fetch_ns=7, collate_ns=8, put_ns=9, samples=5)

    def test_fetch_of_the_main_process(self):
        one = Some(fetch=3, slots=mock.Mock(), asked=[], t_fetch=1000, t_collate=1007, t_collated=1015, digest_ns=0, digests=None,
                   serving=None, loader=6, number=1, samples=5, calls=0, own_ns=0, entered_ns=0,
                   split=Some(running=False, next=9))
        with mock.patch.object(open_files, "main"):
            fetches.leave(one, None, (Some(),), None)
        self.check("fetch", 1000, loader=6, pass_=1, worker=-1, batch=3, fetch=3, wait_ns=0, fetch_ns=7, collate_ns=8, put_ns=0, samples=5)

    def test_split(self):
        one = Some(fetch=3, loader=6, number=1, worker=-1, samples=5, t_fetch=1000)
        split = splits.Split(False)
        split.running, split.row = True, ((70, 20, 3, -1, 9, 2, 4096, 8, 2), {1: [5, 60], 4: [6, 50]})
        split.end(one, 4, 100)
        self.check("split", 1000, loader=6, pass_=1, worker=-1, batch=4, fetch=3, samples=5, wall_ns=70, cpu_ns=20, others_ns=3, queue_ns=-1,
                   read_bytes=9, reads=2, disk_bytes=4096, own_ns=8, n=2, spent={1: (5, 60), 4: (6, 50)})

    def test_next(self):
        now = twin_delivering.Training()
        made = twin_delivering.Delivering()
        made.loader, made.number, made.notes = 1, 2, {"delivered": 0, "open": -1, "single": False}
        for grad in (False, True):
            with mock.patch.multiple(steps, is_grad_enabled=lambda: grad, now=now), mock.patch.object(training, "now", now):
                now.taken, now.last, now.grads_from, now.grads_to, now.ran, now.delivered, now.restarts, now.watched = 8, 9, 10, 11, 12, 1, 13, 1
                now.bits = layouts.STATUS_GRAD_OFF | layouts.STATUS_EVALUATING | layouts.STATUS_ALONE
                made.worker, made.t_next, made.did = -2, 6, training.flags()
                iterators.delivered(made, 3, 7, torch.zeros(14, 2))
                self.assertEqual(training.flags() - layouts.STATUS_WATCHED, 0, "told once")
                self.assertEqual((now.grads_from, now.grads_to), (0, 0))
                made.worker, made.did = -1, 0
                iterators.ended(Some(_dptrace_of=lambda: None), StopIteration(), made)
                iterators.process_ends()
            ok, stop, last = map(layouts.STATUS_VALUES.index, ("ok", "stop", "exit"))
            more = layouts.STATUS_GRAD * grad
            same = {"steps": 8, "optimizer": 9, "backwards": 12, "restarts": 13}
            bits = sum(value for name, value in vars(layouts).items() if name.startswith("STATUS_") and type(value) is int)
            self.check("next", 0, loader=1, pass_=2, batch=3, worker=-2, status=ok + bits - layouts.STATUS_GRAD + more, call_ns=6,
                       arrived_ns=7, grads_from=10, grads_to=11, rows=14, **same)
            self.check("next", 0, loader=1, pass_=2, batch=0xFFFFFFFF, worker=-1, status=stop + more, call_ns=6, arrived_ns=0,
                       grads_from=0, grads_to=0, rows=-1, **same)
            ended = self.written[0].call_ns
            self.check("next", 0, loader=0, pass_=0, batch=0xFFFFFFFF, worker=-1, status=last + layouts.STATUS_WATCHED + more,
                       call_ns=ended, arrived_ns=0, grads_from=0, grads_to=0, rows=-1, **same)

    def test_next_and_put_without_python(self):
        """Of twin.Delivering, which is what the helper in C is held to by test_native."""
        now, made = twin_delivering.Training(), twin_delivering.Delivering()
        made.loader, made.number, made.worker, made.notes, made.arrived, made.training = 1, 2, -2, {"delivered": 7}, {3: 70}, now
        now.put, now.record = [lambda t, *values, kind=kind, put=put: put(kind, t, *values)
                               for kind, put in ((layouts.PUT, self.integers), (layouts.NEXT, self.pack))]
        now.due, now.rows, now.grad, now.tensor, now.modes = 99, training.rows, lambda: True, torch.Tensor, lambda: 0
        now.taken, now.last, now.grads_from, now.grads_to, now.ran, now.restarts = 8, 9, 10, 11, 12, 13
        now.watched, now.bits = 1, layouts.STATUS_GRAD_OFF
        now.sink = Some(head=1, bell=1)
        iterator = Some(_dptrace=made, _send_idx=3, _rcvd_idx=4, _task_info={3: (4,)})
        python = mock.Mock(side_effect=AssertionError)
        with mock.patch.object(twin_delivering, "now", iter([500, 506, 507, 600, 601, 601, 602]).__next__):
            twin_delivering.indexed(None, [70, 71], (iterator,), None)
            token = twin_delivering.placing(python)((iterator,), None)
            iterator._send_idx = 4
            twin_delivering.placed(python)(token, None, (iterator,), None)
            token = twin_delivering.calling(python)((iterator,), None)
            twin_delivering.handing(python)(token, [torch.zeros(14, 2)], (iterator,), None)
        self.check("put", 500, loader=1, pass_=2, batch=3, worker=4, dur_ns=6, first=0, n=2, indices=[70, 71], ids=[])
        self.check("next", 0, loader=1, pass_=2, batch=3, worker=-2,
                   status=layouts.STATUS_VALUES.index("ok") + layouts.STATUS_GRAD + layouts.STATUS_GRAD_OFF + layouts.STATUS_WATCHED,
                   call_ns=600, arrived_ns=70, steps=8, optimizer=9, backwards=12, grads_from=10, grads_to=11, restarts=13, rows=14)

    def test_state(self):
        watched = slots.Slots(2, 3, 4)
        reader = Some(place=lambda peeked: (b"place", 7), raw=lambda: b"raw")
        for when in layouts.WHEN_VALUES:
            watched.write(Some(reader=reader, last=b"", number=1, found=Some(role="order")), getattr(slots, when.upper()), 5, 8)
            self.check("state", 0, slot=1, loader=2, pass_=3, worker=4, fetch=5, when=when, id_length=5, pos=7, dur_ns=8, id=b"place",
                       raw=b"raw")

    def test_digest(self):
        one = Some(loader=1, number=2, worker=3, fetch=5, serving=Some(batch=4))
        rows = [(1, (6, b"c" * 16, b"m" * 16, 0, b"")), (3, (7, b"d" * 16, b"n" * 16, 0, b"p" * 8 + b"q" * 8))]
        for indices, found, indexed, became, names in ((None, [], 0, None, b""), ([50, 51, 52, 53], [51, 53], 1, None, b"x,id"),
                                                       (None, [], 0, [(1, b"r" * 16), (0, b"s" * 16)], b"")):
            taken = digests.Digests(digests.Budget(digests.FREE_NS, digests.SHARE), False)
            taken.named = names
            taken.write(one, rows, 40, indices, became, 0, 0)
            self.assertEqual(taken.named, b"")
            self.check("digest", 0, loader=1, pass_=2, worker=3, batch=4, fetch=5, n=2, indexed=indexed, positions=[41, 43], indices=found,
                       rowed=int(became is not None), names_length=len(names), names=names.decode(), row_kinds=[1, 0] if became else [],
                       rows=[(b"r" * 16).hex(), (b"s" * 16).hex()] if became else [], parts=[[], [(b"p" * 8).hex(), (b"q" * 8).hex()]],
                       kinds=[6, 7], contents=[(b"c" * 16).hex(), (b"d" * 16).hex()], metas=[(b"m" * 16).hex(), (b"n" * 16).hex()])


class File(unittest.TestCase):
    def test_header_and_records(self):
        with tempfile.TemporaryDirectory() as spool:
            with mock.patch.object(ring, "_session", {"spool": spool, "ring": 8192, "rings": 1}):
                one = ring.Ring()
                one.put(layouts.OPTIMIZER, b'{"optimizer": 5}', 77)
            one.hook_ns, one.calls = 11, 12
            one.drop()
            one.close()
            found, = rings.read(spool)
        told = vars(found)
        process, optimizer = told.pop("records")
        self.assertEqual((process.record, process.pid), ("process", os.getpid()))
        self.assertEqual((optimizer.record, optimizer.t, optimizer.optimizer), ("optimizer", 77, 5))
        started = told.pop("start")
        self.assertGreater(started, 0)
        self.assertEqual(told, {"magic": b"DPR1", "version": 1, "head": one.sink.head, "tail": 0, "capacity": 8192, "pid": os.getpid(),
                                "ppid": os.getppid(), "flags": layouts.FLAG_ENDED, "dropped": 1, "beat": started, "hook_ns": 11,
                                "calls": 12, "number": 2, "bell": 2048})

    def test_the_recorders_fields(self):
        """What is written into the ring from outside is where the hook looks."""
        with tempfile.TemporaryDirectory() as spool:
            with mock.patch.object(ring, "_session", {"spool": spool, "ring": 4096, "rings": 1}):
                one = ring.Ring()
                one.make()
            at = layouts.offsets(layouts.HEADER_FIELDS)
            with open(os.path.join(spool, os.listdir(spool)[0]), "r+b") as f:
                for name, value in (("tail", one.words[at["head"] // 8] - 8), ("beat", 1)):
                    f.seek(at[name])
                    f.write(value.to_bytes(8, "little"))
            while not one.dropped:
                self.assertEqual(one.flags[0], 0)
                one.put(layouts.OPTIMIZER, b"{}")
            self.assertGreater(one.words[at["head"] // 8], 4096, "the tail was looked at")
            self.assertEqual((one.dropped, one.flags[0]), (1, layouts.FLAG_UNREAD), "the last look was long ago")
            one.put(layouts.OPTIMIZER, b"{}")
            self.assertEqual(one.dropped, 2, "it counts on")
            one.words[at["tail"] // 8] = head = one.words[at["head"] // 8]
            one.put(layouts.OPTIMIZER, b"{}")
            self.assertEqual((one.dropped, one.words[at["head"] // 8] > head), (2, True), "it goes on when the recorder is back")

    def test_types(self):
        self.assertEqual([getattr(ring, name.upper()) for name in rings.TYPES], list(range(len(rings.TYPES))))


if __name__ == "__main__":
    unittest.main()
