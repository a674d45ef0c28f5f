"""Data files that this process holds open, as /proc/self/fd shows them: after fetches 1, 2, 4, 8 and so on.

What is opened and closed within one fetch is not seen here.
"""
import os
import re
import stat

from ..record import guard, ring
from ..record.ring import cpu

MAX_FILES = 64  # that a process tells
MAX_OPEN = 1024  # descriptors that are looked at
_FD = "/proc/self/fd"

# What is no data, as probes/files of the recorder has it, which takes the kernel's word: a test of its holds both together.
SYSTEM = (
    "/proc/", "/sys/", "/dev/", "/etc/", "/run/", "/bin/", "/sbin/", "/lib/", "/lib32/", "/lib64/",
    "/usr/bin/", "/usr/sbin/", "/usr/lib", "/usr/local/lib", "/usr/share/", "/usr/libexec/",
)
INSIDE = ("/site-packages/", "/dist-packages/", "/lib/python3.", "/__pycache__/", ".dist-info/", ".egg-info/")
ENDS = (".py", ".pyc", ".pyo", ".pyd", ".so", "/pyvenv.cfg", ".egg-link")
VERSIONED = (".so", "/bin/python")  # and numbers after it
SHARED = ("torch_", "sem.", "psm_", "pym-", "nccl-", "__KMP_")  # torch's and multiprocessing's in /dev/shm; others are the user's
_SHM = "/dev/shm/"

_OWN = os.path.dirname(os.__file__) + os.sep
_DELETED = " (deleted)"
# By a file of such a name, gone at once, tempfile finds a folder that can be written (_get_default_tempdir, Python 3.6 to
# 3.14); multiprocessing asks for one in the thread that sends a worker's batches.
_PROBE = re.compile("[a-z0-9_]{8}$")


class Files:
    """What is known of one process."""

    def __init__(self, fetches):
        self.pid = os.getpid()
        self.fetches, self.next = fetches, 1
        self.known = set()  # (descriptor, path)
        self.told = set()

    def look(self, more=1):
        """Another fetch is over, or some; a worker is about to wait for the next, which it also is before its first."""
        self.fetches += more
        if self.fetches < self.next:
            return
        self.next = 2 * self.fetches
        c0 = cpu()
        try:
            self.find()
        except Exception as e:
            self.next = 1 << 62
            unreadable = (type(e) is FileNotFoundError or type(e) is PermissionError) and e.filename == _FD  # as in some sandboxes: no error of ours
            if not unreadable and not guard.none_left(e) and guard.theirs(e):
                raise
        finally:
            ring.ring.hook_ns += cpu() - c0

    def find(self):
        folder = os.open(_FD, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)  # the way there is half of what a link's reading takes
        try:
            self.known = self.among([name for name in os.listdir(folder)[:MAX_OPEN] if name != str(folder)], folder)
        finally:
            os.close(folder)

    def among(self, names, folder):
        known = set()
        for name in names:
            try:
                path = os.readlink(name, dir_fd=folder)
                if path[:1] == "/":
                    known.add((name, path))
                    if (name, path) not in self.known and path not in self.told and read_as_data(name, path, folder):
                        if len(self.told) >= MAX_FILES:
                            self.next = 1 << 62
                            break
                        self.told.add(path)
                        ring.put_json(ring.OPENED, {"path": path})
            except OSError as e:  # closed meanwhile
                if e.filename != name and guard.theirs(e):
                    raise
        return known


def data(path):
    """Reports whether a file may belong to a dataset."""
    if path.startswith(_SHM):
        return not path.startswith(SHARED, len(_SHM))
    if path.startswith(SYSTEM) or path.endswith(ENDS) or path.rstrip(".0123456789").endswith(VERSIONED):
        return False
    return not any(part in path for part in INSIDE)


def read_as_data(name, path, folder):
    """Reports whether a descriptor is of a regular file that is read, and neither the system's nor code nor ours."""
    if name in ("0", "1", "2") or path.endswith(_DELETED) or path.startswith((_OWN, ring.session()["spool"])) or not data(path):
        return False
    mode = os.lstat(name, dir_fd=folder).st_mode  # the link's own mode says how the file was opened (proc_pid_fd(5))
    if mode & stat.S_IWUSR and _PROBE.match(os.path.basename(path)):
        return False
    return bool(mode & stat.S_IRUSR) and stat.S_ISREG(os.stat(name, dir_fd=folder).st_mode)


_main = None


def main():
    """The Files of a process without workers."""
    global _main
    if _main is None or _main.pid != os.getpid():
        _main = Files(0)
    return _main
