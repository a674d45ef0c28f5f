"""The native helper beside its twin: the same random programs give the same with both. Needs no torch; it and test_native_*.py may
be run by themselves with any Python from 3.8 on."""
import collections.abc
import ctypes
import gc
import os
import random
import struct
import unittest

from native_lives import Iterating, Programs, Worker
from native_values import Index, TYPES, heap_of, integers, value
from twins import BOTH, NATIVE, PROGRAMS, outcome


class Differential(unittest.TestCase):
    maxDiff = None

    @NATIVE
    def test_wrappers(self):
        ends = collections.Counter()
        for seed in range(PROGRAMS):
            results = [Programs(module, seed).run() for module in BOTH.values()]
            self.assertEqual(results[0], results[1], "seed %d" % seed)
            ends[results[0][1][0]] += 1
        self.assertGreater(min(ends.values()), PROGRAMS // 10, ends)

    @NATIVE
    def test_records(self):
        put = refused = 0
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            capacity = r.choice([64, 256, 512, 4096])
            before = os.urandom(128 + capacity)
            rings = [bytearray(before), bytearray(before)]
            for ring in rings:
                ring[8:24] = bytes(16)
            sinks = [module.Sink(ring, capacity, 128, 1, 2) for module, ring in zip(BOTH.values(), rings)]
            formats = ["".join(r.choice("BHIQhiq") for _ in range(r.randint(0, 12))) for _ in range(3)]
            records = [[module.Record(sink, kind + 1, form) for kind, form in enumerate(formats)] for module, sink in zip(BOTH.values(), sinks)]
            lists = [[module.Integers(sink, 9, form) for form in formats] for module, sink in zip(BOTH.values(), sinks)]
            for step in range(100):
                kind = r.randrange(3)
                t, values = r.randrange(1, 1 << 64), [value(code, r) for code in formats[kind]]
                if r.random() < 0.05 and values:
                    values[r.randrange(len(values))] = r.choice([1 << 64, -1 << 63, -(1 << 63) - 1, -1, 1 << 63, 1.5, None, "1", True, Index(3)])
                if r.random() < 0.02:
                    values = values[:-1] if values else values + [1, b""]
                payload = r.choice([bytes, bytearray, memoryview])(os.urandom(r.choice([0, 1, 7, 8, 40, r.randrange(200), 5000])))
                if r.random() < 0.5:
                    values.append(payload)
                does, snapshot = r.random(), bytes(rings[0])
                if does < 0.2:
                    seen = [outcome(sink.put, kind, payload, t) for sink in sinks]
                elif does < 0.4:
                    values = values[:len(formats[kind])] + [integers(r) for _ in range(r.choice([0, 1, 1, 1, 1, 1, 2, 2, 2, 3]))]
                    seen = [outcome(made[kind], t, *values) for made in lists]
                elif does < 0.9:
                    seen = [outcome(made[kind], t, *values) for made in records]
                else:  # the recorder has come so far
                    tail = r.choice([sinks[0].head, r.randint(0, sinks[0].head), r.randrange(1 << 64)] if r.random() < 0.1 else [sinks[0].head])
                    for ring in rings:
                        struct.pack_into("<Q", ring, 16, tail)
                    seen = [0, 0]
                self.assertEqual(seen[0], seen[1], (seed, step))
                states = [(s.head, s.tail, s.number, s.capacity) for s in sinks]
                self.assertEqual(states[0], states[1], (seed, step))
                if seen[0] not in (0, ("gave", True)):  # what is no record yet may have been begun
                    last = sinks[0].head
                    first = max(min(max(sinks[0].tail, struct.unpack_from("<Q", snapshot, 16)[0]), last), last - capacity)
                    for ring in rings:
                        self.assertEqual(ring[:128], snapshot[:128])
                        for at in range(first, last):
                            self.assertEqual(ring[128 + at % capacity], snapshot[128 + at % capacity])
                    rings[1][:] = rings[0]
                self.assertEqual(rings[0], rings[1], (seed, step))
                put, refused = put + (seen[0] == ("gave", True)), refused + (seen[0] == ("gave", False))
        self.assertGreater(min(put, refused), PROGRAMS // 10)

    @NATIVE
    def test_looks_at_memory(self):
        found = 0
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            memory = (ctypes.c_ubyte * 512)(*r.choices(range(256), k=512))
            start = ctypes.addressof(memory)
            looks = [module.Peeks() for module in BOTH.values()]
            n = 0

            def region():
                n1, n2 = r.randint(0, 32), r.randint(0, 34)
                known = [start + r.randrange(400) if n1 else 0, n1, start + r.randrange(400) if n2 else 0, n2, memory]
                if r.random() < 0.3:
                    at = 8 * r.randrange(60)
                    pointer = int.from_bytes(bytes(memory[at:at + 8]), "little")
                    known += [start + at, pointer if r.random() < 0.9 else 5]
                return known
            for step in range(60):
                does = r.random()
                if does < 0.1 or not n:
                    given = region()
                    seen = [outcome(p.add, *given) for p in looks]
                    n += seen[0][0] == "gave"
                elif does < 0.2:
                    given = [r.randrange(n + 1)] + region()
                    seen = [outcome(p.set, *given) for p in looks]
                elif does < 0.3:
                    seen = [outcome(p.last, step % (n + 1)) for p in looks]
                elif does < 0.6:
                    for _ in range(r.randint(0, 3)):
                        memory[r.randrange(512)] ^= r.randrange(256)
                    seen = [0, 0]
                else:
                    some = r.choice([(), (), (r.randint(-1, n),), (r.randint(0, n), r.randint(-2, n + 2))])
                    seen = [outcome(p.moved, *some) for p in looks]
                    found += seen[0] != ("gave", None)
                self.assertEqual(seen[0], seen[1], (seed, step))
        self.assertGreater(found, PROGRAMS // 10)

    @NATIVE
    def test_places(self):
        found = 0
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            dicts, objects, n = [{} for _ in range(3)], [object() for _ in range(4)] + [None], 0
            places = [module.Places() for module in BOTH.values()]
            for step in range(50):
                does = r.random()
                place = [r.choice(dicts + [type("D", (dict,), {})()] * (does < 0.01)), r.choice(["a", "b", "c"]), r.choice(objects)]
                if does < 0.15:
                    seen = [outcome(p.add, *place) for p in places]
                    n += seen[0][0] == "gave"
                elif does < 0.3:
                    index = r.randint(-1, n)
                    seen = [outcome(p.set, index, *place) for p in places]
                elif does < 0.5:
                    place[0][place[1]] = place[2]
                    seen = [0, 0]
                elif does < 0.6:
                    place[0].pop(place[1], None)
                    seen = [0, 0]
                else:
                    seen = [outcome(p.changed) for p in places]
                    found += seen[0][1] is not None
                self.assertEqual(seen[0], seen[1], (seed, step))
        self.assertGreater(found, PROGRAMS // 10)

    @NATIVE
    def test_fetches_of_a_worker(self):
        kinds = collections.Counter()
        for seed in range(PROGRAMS // 10):
            seen = []
            for module in BOTH.values():
                worker = Worker(module, seed)
                seen.append((worker.run(), worker.events))
            for one, other in zip(*[events for _, events in seen]):
                self.assertEqual(one, other, seed)
            self.assertEqual(seen[0], seen[1], seed)
            kinds.update([e[0] for e in seen[0][1]] + [record[0] for record in seen[0][0][0]])
        self.assertGreater(min(kinds[k] for k in ("enter", "leave", "look", "waiting", "ask", "full", "quiet", "raised", 6, 9)), PROGRAMS // 50, kinds)

    @NATIVE
    def test_batches_of_an_iterator(self):
        kinds = collections.Counter()
        for seed in range(PROGRAMS // 10):
            seen = []
            for module in BOTH.values():
                iterating = Iterating(module, seed)
                seen.append((iterating.run(), iterating.events))
            for one, other in zip(*[events for _, events in seen]):
                self.assertEqual(one, other, seed)
            self.assertEqual(seen[0], seen[1], seed)
            kinds.update([e[0] for e in seen[0][1]] + [record[0] for record in seen[0][0]])
        wanted = ("place", "placed", "arrive", "call", "hand", "rows", "flags", "begun", "full", "bell", "raised", 5, 7)
        self.assertGreater(min(kinds[k] for k in wanted), PROGRAMS // 50, kinds)

    @NATIVE
    def test_multiple(self):
        for seed in range(PROGRAMS):
            r = random.Random(seed)
            given, mask = integers(r), r.choice([0, 1, 3, 15, 255, -1, r.randrange(1 << 62)])
            self.assertEqual(*[outcome(module.multiple, given, mask) for module in BOTH.values()])

    @NATIVE
    def test_referents(self):
        hits = collections.Counter()
        for seed in range(PROGRAMS // 10):
            r = random.Random(seed)
            some = heap_of(r)
            types = r.sample(TYPES, r.randint(0, 6)) + [type(r.choice(some)) for _ in range(r.choice([0, 0, 3]))]
            always, untracked = tuple(types[:r.randint(0, 6)]), tuple(types[r.randint(0, 6):])
            given = r.choice([some] * 20 + [tuple(some), None]), r.choice([always] * 20 + [list(always)]), untracked
            for name in ("picked", "referents"):
                seen = [outcome(getattr(module, name), *given) for module in BOTH.values()]
                self.assertEqual(*[(how, list(map(id, found)) if how == "gave" else found) for how, found in seen], (seed, name))
                hits[name] += len(seen[0][1]) if seen[0][0] == "gave" else 0
            self.assertEqual(*[outcome(module.picked, some, always) for module in BOTH.values()])
        self.assertGreater(min(hits.values()), PROGRAMS // 10, hits)
        types = tuple(TYPES[:3]), tuple(TYPES[3:])
        everything = gc.get_objects()  # all of this process; less what is made as it is looked at
        self.assertEqual(*[len(module.picked(everything, *types)) for module in BOTH.values()])
        found = [module.referents(everything, *types) for module in BOTH.values()]
        both = [collections.Counter(map(id, each)) for each in found]
        self.assertGreater(len(found[0]), 1000)
        self.assertLess(sum(((both[0] - both[1]) + (both[1] - both[0])).values()), 50)


if __name__ == "__main__":
    unittest.main()
