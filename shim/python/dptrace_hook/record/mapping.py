"""The memory of a file, without a descriptor of it.

mmap.mmap keeps a duplicate of its descriptor, and closes that number as it is let go of: in a forked child, say. A program
that closes all its descriptors, as daemons do, has something of its own under the number by then.
"""
import mmap
import os
import sys

from . import guard

_TRACKED = sys.version_info < (3, 13)  # from then on mmap.mmap does without
_calls = []  # mmap(2)
_kept = []  # maps whose descriptors may not be closed: for as long as the process lives


def of(fd, size):
    """A writable buffer, the first bytes of a file. The descriptor may be closed."""
    if not _TRACKED:
        return memoryview(mmap.mmap(fd, size, trackfd=False))
    try:
        found = _by_address(fd, size)
    except (ImportError, AttributeError, TypeError) as e:  # no ctypes, or no such function
        if guard.theirs(e):
            raise
        found = None
    if found is None:
        found = mmap.mmap(fd, size)
        _kept.append(found)
    return memoryview(found)


def _by_address(fd, size):
    """By mmap(2) itself. Never unmapped: a forked child lets go of its parent's, and others may know the address."""
    import ctypes
    if not _calls:  # which a worker has of its parent
        call = ctypes.CDLL(None, use_errno=True).mmap
        call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
        call.restype = ctypes.c_void_p
        _calls.append(call)
    at = _calls[0](None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if at is None or at == ctypes.c_void_p(-1).value:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return memoryview((ctypes.c_char * size).from_address(at)).cast("B")
