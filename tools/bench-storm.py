"""The storm that tools/bench measures: children that copy their parent's memory by writing one byte to each page of it.

usage: bench-storm.py PAGES CHILDREN ALIVE

PAGES per child, CHILDREN in all, at most ALIVE at a time. Prints one JSON line: what the children's smaps_rollup say they
have copied since the fork, in bytes, how many pages were written, and CPU seconds of parent and children together.
"""
import gc
import json
import mmap
import os
import resource
import sys
import time

PAGE = mmap.PAGESIZE


def rollup():
    with open("/proc/self/smaps_rollup") as f:
        sizes = {line.split()[0][:-1]: 1024 * int(line.split()[1]) for line in f if line.rstrip().endswith("kB")}
    return sizes["Private_Dirty"], sizes["Anonymous"]


def child(memory, pages, to):
    rollup()
    dirty, anonymous = rollup()
    memory[0:pages * PAGE:PAGE] = b"\2" * pages
    dirty_now, anonymous_now = rollup()
    # All that is private and dirty now, without what is new since the first look.
    os.write(to, b"%d\n" % (dirty_now - (anonymous_now - anonymous)))
    os._exit(0)


def main():
    pages, children, alive = (int(a) for a in sys.argv[1:])
    memory = mmap.mmap(-1, pages * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(memory, "madvise"):  # Python 3.8
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    memory[0:pages * PAGE:PAGE] = b"\1" * pages
    gc.disable()
    t0 = time.monotonic()
    before = cpu()
    reader, writer = os.pipe()
    running = 0
    for _ in range(children):
        if running == alive:
            os.wait()
            running -= 1
        if os.fork() == 0:
            child(memory, pages, writer)
        running += 1
    for _ in range(running):
        os.wait()
    os.close(writer)
    copied = 0
    with os.fdopen(reader) as f:
        copied = sum(int(line) for line in f)
    print(json.dumps({"copied": copied, "pages": pages * children, "cpu_s": cpu() - before, "seconds": time.monotonic() - t0}))


def cpu():
    return sum(u.ru_utime + u.ru_stime for u in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)))


if __name__ == "__main__":
    main()
