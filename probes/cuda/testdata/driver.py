"""A training loop that copies batches to the device of a stand-in for CUDA. usage: driver.py FOLDER SCENARIO [STEPS]"""
import ctypes
import os
import sys
import threading
import time

folder, scenario = sys.argv[1:3]
STEPS = int(sys.argv[3]) if len(sys.argv) > 3 else 30
BYTES = 1 << 20
cuda = ctypes.CDLL(os.path.join(folder, "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL(os.path.join(folder, "libcudart.so.13"))
P, Z = ctypes.c_void_p, ctypes.c_size_t
TO_DEVICE, TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3


class Dim(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


runtime.cudaLaunchKernel.argtypes = [P, Dim, Dim, P, Z, P]
runtime.cudaMemcpyAsync.argtypes = [P, P, Z, ctypes.c_int, P]
runtime.cudaMemcpy.argtypes = [P, P, Z, ctypes.c_int]
for function in cuda.cuMemcpyHtoD_v2, cuda.cuMemHostRegister_v2:
    function.argtypes = [P, P, Z]


def checked(code):
    assert code == 0, code


def made(function, *args):
    p = P()
    checked(function(ctypes.byref(p), *args))
    return p.value or 0


def device(size=BYTES):
    return made(runtime.cudaMalloc, Z(size))


def pinned(size=BYTES):
    return made(runtime.cudaHostAlloc, Z(size), 0)


kept = []


def pageable(size=BYTES):
    kept.append(ctypes.create_string_buffer(size))
    return ctypes.addressof(kept[-1])


def stream():
    return made(cuda.cuStreamCreate, 0)


def copy(to, source, size=BYTES, kind=TO_DEVICE, on=0):
    checked(runtime.cudaMemcpyAsync(to, source, size, kind, on))


def wait(on=0):
    checked(runtime.cudaStreamSynchronize(P(on)))


def compute(on=0, launches=3):
    for _ in range(launches):
        checked(runtime.cudaLaunchKernel(20, Dim(1, 1, 1), Dim(256, 1, 1), None, 0, on))


def good():
    host, side, event = [pinned(), pinned()], stream(), made(cuda.cuEventCreate, 0)
    compute()
    for i in range(STEPS):
        copy(target, host[i % 2], on=side)
        checked(cuda.cuEventRecord(P(event), P(side)))
        checked(cuda.cuStreamWaitEvent(P(0), P(event), 0))
        compute()
    wait()


def pinned_sync():
    host = pinned()
    for _ in range(STEPS):
        copy(target, host)
        wait()
        compute()


def pageable_blocking():
    host = pageable()
    for _ in range(STEPS):
        copy(target, host)
        wait()
        compute()


def pageable_nonblocking():
    host = pageable()
    for _ in range(STEPS):
        copy(target, host)
        compute()


def small():
    host = pageable(4096)
    for _ in range(STEPS):
        copy(target, host, 4096)
        compute()


def item():
    host, answer = pinned(), pageable(8)
    for _ in range(STEPS):
        copy(target, host)
        compute()
        copy(answer, target, 4, TO_HOST)
        wait()


def registered():
    host = pageable()
    checked(cuda.cuMemHostRegister_v2(host, BYTES, 0))
    for _ in range(STEPS):
        copy(target, host)
        compute()
    checked(cuda.cuMemHostUnregister(P(host)))
    copy(target, host)
    wait()


def freed():
    host = pinned()
    copy(target, host)
    checked(runtime.cudaFreeHost(P(host)))
    wait()


def failed_register():
    assert cuda.cuMemHostRegister_v2(pageable(), 0, 0) == 1


def managed():
    host = made(cuda.cuMemAllocManaged, Z(BYTES), 1)
    for _ in range(STEPS):
        copy(target, host)
        compute()


def synchronous():
    host = pinned()
    for _ in range(STEPS):
        checked(cuda.cuMemcpyHtoD_v2(target, host, BYTES))
        compute()


def captured():
    host, graph, on = pinned(), P(), stream()
    checked(cuda.cuStreamBeginCapture_v2(P(on), 0))
    copy(target, host, on=on)
    checked(cuda.cuStreamEndCapture(P(on), ctypes.byref(graph)))
    for _ in range(STEPS):
        checked(cuda.cuGraphLaunch(graph, P(on)))
    copy(target, host, on=on)


def context_sync():
    host = pinned()
    for _ in range(STEPS):
        copy(target, host)
        checked(runtime.cudaDeviceSynchronize())


def any_direction():
    host = pinned()
    for kind in TO_DEVICE, TO_HOST, DEVICE_TO_DEVICE:
        for _ in range(STEPS):
            checked(runtime.cudaMemcpy(*((target, host) if kind != TO_HOST else (host, target)), BYTES, kind))
    cuda.cuMemcpy.argtypes = [P, P, Z]
    checked(cuda.cuMemcpy(target, host, BYTES))


class Copy2D(ctypes.Structure):
    _fields_ = [("source_x", Z), ("source_y", Z), ("source_memory", ctypes.c_int), ("source_host", P), ("source_device", P),
                ("source_array", P), ("source_pitch", Z), ("target_x", Z), ("target_y", Z), ("target_memory", ctypes.c_int),
                ("target_host", P), ("target_device", P), ("target_array", P), ("target_pitch", Z), ("width", Z), ("height", Z)]


def two_dimensions():
    host = pinned()
    c = Copy2D(source_x=16, source_y=2, source_memory=1, source_host=host, source_pitch=1024, target_memory=2, target_device=target,
               target_pitch=512, width=512, height=512)
    for _ in range(STEPS):
        checked(cuda.cuMemcpy2DAsync_v2(ctypes.byref(c), P(0)))
        wait()


def batch():
    host, n = pinned(), 4
    to, source, sizes = (P * n)(*[target] * n), (P * n)(*[host] * n), (Z * n)(*[BYTES // 4] * n)
    for _ in range(STEPS):
        checked(cuda.cuMemcpyBatchAsync_v2(to, source, sizes, Z(n), None, None, Z(0), P(0)))


def threads():
    def loop():
        on, host = stream(), pinned()
        for _ in range(STEPS):
            copy(target, host, on=on)
            wait(on)
    others = [threading.Thread(target=loop) for _ in range(3)]
    for t in others:
        t.start()
    for t in others:
        t.join()


def forked():
    host = pinned()
    copy(target, host)
    wait()
    for _ in range(2):
        if os.fork() == 0:
            copy(target, host)
            wait()
            os._exit(0)
        assert os.wait()[1] == 0


def killed():
    """The process ends inside of a call."""
    host = pageable(256 << 20)
    threading.Timer(0.02, os._exit, [0]).start()
    while True:
        copy(target, host, 256 << 20)


def watched():
    """Waits until the library that this process has mapped is watched: a uprobe is a breakpoint in its code."""
    code = ctypes.cast(cuda.cuMemcpyHtoDAsync_v2, P).value
    end = time.monotonic() + 60
    while 0xCC not in ctypes.string_at(code, 16):
        assert time.monotonic() < end, "not watched"
        time.sleep(0.05)


def late():
    before = pinned()
    copy(target, before)
    watched()
    copy(target, before)
    copy(target, pinned())
    wait()


def replaced():
    """The file that is mapped is not the one at its path any more."""
    path = os.path.join(folder, "libcuda.so.1")
    with open(path, "rb") as f:
        text = f.read()
    with open(path + ".new", "wb") as f:
        f.write(text)
    os.rename(path + ".new", path)
    late()


target = device()
globals()[scenario]()
