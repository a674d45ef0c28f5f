#!/usr/bin/env python3
"""Writes vectors.json: states of real generators (NumPy, Python) and what they draw next.

python3 vectors.py > vectors.json   (made with NumPy 1.24.2 and Python 3.11.2)
"""
import json
import random
import struct

import numpy as np


def mt(key, pos):
    return struct.pack("<624Ii", *[int(w) for w in key], int(pos)).hex()


def pcg(g):
    s = g.state
    t = s["state"]
    return (t["state"].to_bytes(16, "little") + t["inc"].to_bytes(16, "little") + struct.pack("<II", s["has_uint32"], s["uinteger"])).hex()


def philox(g):
    s = g.state
    words = [int(w) for part in (s["state"]["counter"], s["state"]["key"], s["buffer"]) for w in part]
    return struct.pack("<10QIIII", *words, s["buffer_pos"], s["has_uint32"], s["uinteger"], 0).hex()


def sfc(g):
    s = g.state
    return struct.pack("<4QII", *[int(w) for w in s["state"]["state"]], s["has_uint32"], s["uinteger"]).hex()


def legacy(r):
    _, key, pos = r.get_state()[:3]
    return mt(key, pos)


def python(r):
    state = r.getstate()[1]
    return mt(state[:-1], state[-1])


out = {"walks": [], "seeds": []}

# 32-bit draws first, an odd number of them, so that a half word is left; then whole words.
for kind, cls, pack in (("pcg64", np.random.PCG64, pcg), ("pcg64dxsm", np.random.PCG64DXSM, pcg),
                        ("philox", np.random.Philox, philox), ("sfc64", np.random.SFC64, sfc)):
    for seed in (1, 20261121):
        g = cls(seed)
        generator = np.random.Generator(g)
        start = pack(g)
        small = [int(v) for v in generator.integers(0, 1 << 32, 3, dtype=np.uint32)]
        odd = pack(g)
        big = [int(v) for v in g.random_raw(5)]
        after = pack(g)
        g.random_raw(100003)
        out["walks"].append({"kind": kind, "seed": seed, "start": start, "draws32": small, "odd": odd, "draws64": big,
                             "after": after, "later": pack(g), "laterWords": 2 * 100003})

# A jumped generator keeps its increment or its key but is on another stretch.
for kind, cls, pack in (("pcg64", np.random.PCG64, pcg), ("pcg64dxsm", np.random.PCG64DXSM, pcg), ("philox", np.random.Philox, philox)):
    g = cls(5)
    out.setdefault("jumped", []).append({"kind": kind, "start": pack(g), "jumped": pack(g.jumped())})

for seed in (0, 42, 2**32 - 1):
    r = np.random.RandomState(seed)
    start = legacy(r)
    draws = [int(v) for v in r.randint(0, 1 << 32, 700, dtype=np.uint32)]
    out["seeds"].append({"by": "numpy", "seed": seed, "start": start, "draws32": draws[:5] + draws[620:630], "after": legacy(r)})
for seed in (0, 5, 2**32 + 17):
    r = random.Random(seed)
    start = python(r)
    draws = [r.getrandbits(32) for _ in range(700)]
    out["seeds"].append({"by": "python", "seed": seed, "start": start, "draws32": draws[:5] + draws[620:630], "after": python(r)})

print(json.dumps(out, indent=0))
