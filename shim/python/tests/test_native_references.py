"""No reference is lost by the native helper; needs an interpreter that counts them all."""
import copy
import ctypes
import gc
import os
import struct
import sys
import unittest
import weakref

from native_lives import Iterating, Worker
from native_values import Index
from twins import native, sample, twin


@unittest.skipUnless(hasattr(sys, "gettotalrefcount") and native is not twin, "no interpreter that counts all references")
class References(unittest.TestCase):
    CALLS = int(os.environ.get("DPTRACE_TEST_CALLS", "100000"))

    def everything(self):
        """Calls that together go through every line of the helper's that is not an interpreter's failure."""
        M = native
        ring = bytearray(128 + 512)
        sink = M.Sink(ring, 512, 128, 1, 2)
        record = M.Record(sink, 3, "BHIQhiq")
        memory = (ctypes.c_ubyte * 64)()
        at = ctypes.addressof(memory)
        peeks = M.Peeks()
        peeks.add(at, 8, at + 8, 8, memory)
        peeks.add(at, 8, at + 8, 8, memory, at + 16, 0)

        integers, places, place = M.Integers(sink, 3, "I"), M.Places(), {}
        workers = [Worker(M, i) for i in range(8)] + [Iterating(M, i) for i in range(8)]
        places.add(place, "a", None)

        class Own:
            pass

        def nothing(*args):
            return None

        def raises(*args, **kwargs):
            raise ValueError(args)

        def interrupts(*args):
            raise KeyboardInterrupt

        def tried(function, *args, **kwargs):
            try:
                function(*args, **kwargs)
            except BaseException:
                pass
        held = [{1: (2, 3)}, ({}, 5), sample, int, Own, 7] * 20
        callbacks = (None, nothing, raises, interrupts)
        arounds = [M.Around(f, b, a, fa, t) for f in (sample, raises) for b in callbacks for a in callbacks for fa in callbacks[1:]
                   for t in (None, nothing, lambda e: True, raises, interrupts)]

        def step(i):
            around = arounds[i % len(arounds)]
            tried(around, i, c=i)
            tried(around, *[i])
            Own.method = around
            tried(Own().method, i)
            tried(Own().method.__func__, i)
            tried(M.Around, sample, nothing, None, None, None)
            tried(M.Around, sample)
            tried(M.Around, sample, 1, 2, 3, 4, a=5)
            tried(getattr, around, "__code__")
            tried(getattr, around, "none")
            tried(getattr, around, "__call__")
            tried(setattr, around, "x", i)
            tried(delattr, around, "x")
            tried(repr, around)
            tried(copy.copy, around)
            tried(weakref.ref, around)
            tried(M.original_of, around)
            tried(M.original_of, i)
            tried(M.now)
            tried(M.cpu)
            tried(sink.put, 1, b"abc", 7)
            tried(sink.put, 1, bytearray(9))
            tried(sink.put, 1, "abc")
            tried(sink.put, -1, b"abc")
            tried(sink.put)
            tried(record, i, 1, 2, 3, 4, 5, 6, 7)
            tried(record, i, 1, 2, 3, 4, 5, 6, 1 << 64, b"abc")
            tried(record, i, 1, 2, 3, 4, 5, Index(6), 7, bytearray(3))
            tried(record, i, 1, 2, 3, 4, 5, None, 7)
            tried(record, i, 1, 2, 3, 4, 5, 6, 7, "abc")
            tried(record, 1)
            struct.pack_into("<Q", ring, 16, sink.head)
            memory[i % 32] = i & 255
            tried(peeks.moved)
            tried(peeks.moved, 1, 2)
            tried(peeks.moved, "x")
            tried(peeks.last, 0)
            tried(peeks.last, 9)
            tried(peeks.set, 1, at, 8, at + 8, 8, memory, at + 16, memory[16])
            tried(peeks.set, 9, at, 8, at + 8, 8, memory)
            tried(peeks.set, 0, at, 80, at + 8, 8, memory)
            tried(peeks.add, at, "x", at, 8, memory)
            tried(integers, i, 1, [1, 2, i])
            tried(integers, i, 1, (1, 2, i), [])
            tried(integers, i, 1, [1, 2, 1 << 63])
            tried(integers, i, 1, 2)
            tried(integers, i)
            tried(integers, i, -1, [1])
            tried(M.multiple, [1, i], 3)
            tried(M.multiple, [1, 1 << 64], 3)
            workers[i % len(workers)].random.seed(i)
            for _ in range(4):
                tried(workers[i % len(workers)].step)
            del workers[i % len(workers)].events[:], workers[i % len(workers)].records[:]
            place["a"] = i if i & 1 else None
            tried(places.changed)
            tried(places.set, 0, place, "a", i if i & 1 else None)
            tried(places.changed)
            tried(places.set, 1, place, "a", i)
            tried(places.set, 1, place, 3, i)
            tried(M.picked, held, (dict, int), (tuple,))
            tried(M.picked, held, (dict, int))
            tried(M.picked, held, [dict], ())
            tried(M.referents, held, (dict, int), (tuple,))
            tried(M.referents, held, (dict,), [tuple])
            tried(M.referents, tuple(held), (), ())
            if i % 16 == 0:
                tried(M.Places().add, place, "a", i)
                other = M.Sink(bytearray(200), 64, 128, 1, 2)
                tried(M.Record(other, 1, "I"), 1, 2)
                other.close()
                tried(M.Sink, memoryview(bytearray(200)), 64, 128, 1, 2)
                tried(M.Sink, bytearray(200), 64, 128, 1, 200)
                tried(M.Sink, bytes(200), 64, 128, 1, 2)
                tried(M.Record, other, 1, "z")
                new = M.Peeks()
                new.add(0, 0, 0, 0, new)
        return step

    def test_none_is_lost(self):
        step = self.everything()
        for i in range(2000):
            step(i)
        totals = []
        for part in range(4):
            for i in range(self.CALLS // 80):  # a step is about twenty calls
                step(i)
            gc.collect()
            totals.append(sys.gettotalrefcount())
        self.assertLess(max(totals) - min(totals), 100, totals)


if __name__ == "__main__":
    unittest.main()
