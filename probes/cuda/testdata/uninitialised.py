"""Calls NVIDIA's own libcuda where there may be no device, and no context in any case: each call is refused (error 3). usage: FILE"""
import ctypes
import sys

cuda = ctypes.CDLL(sys.argv[1])
P, Z = ctypes.c_void_p, ctypes.c_size_t
for _ in range(5):
    assert cuda.cuMemHostAlloc(ctypes.byref(P()), Z(1 << 20), 0) == 3
for _ in range(7):
    assert cuda.cuMemcpyHtoDAsync_v2(P(0x7000), P(0x1234), Z(1 << 20), P(0x77)) == 3
assert cuda.cuStreamSynchronize(P(0x77)) == 3
