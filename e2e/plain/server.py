"""Runs programs without dptrace, each in a fork of this interpreter, which has imported torch: that takes longer than most
of the programs do.

usage: PYTHON server.py SOCKET    serves until its stdin is closed

A request is one line of JSON: {"folder": …, "program": …, "args": […], "ranks": N, "limit": seconds}; ranks 0 is a plain
run, N are N of them with the environment that torchrun gives them. The answer is JSON, too: {"code": …, "stdout": …,
"stderr": …, "done": whether all ended within the limit}. All have the same seed of str's hash, unlike interpreters of their own.
"""
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
import types

import numpy  # noqa: F401
import torch.distributed
import torch.utils.data  # noqa: F401


def serve(path):
    """Returns in the forked programs only: what they are to run."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [], 0.5)
        while reap(-1, os.WNOHANG):
            pass
        if sys.stdin in ready:
            os._exit(0)
        if listener not in ready:
            continue
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            request = json.loads(connection.makefile().readline())
            if answer(connection, request):
                return request
        connection.close()


def answer(connection, request):
    """True in the processes of the program."""
    out, err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    # The rank that listens takes this port while we hold it: as long as nobody listens, two may.
    port = socket.socket()
    port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port.bind(("", 0))
    ranks = []
    for rank in range(max(request["ranks"], 1)):
        pid = os.fork()
        os.setpgid(pid, ranks[0] if ranks else pid)  # by both, whichever comes first
        if pid == 0:
            if request["ranks"]:
                number = str(request["ranks"])
                os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=number, LOCAL_WORLD_SIZE=number, GROUP_RANK="0",
                                  MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port.getsockname()[1]))
            for file, to in (open(os.devnull), 0), (out, 1), (err, 2):
                os.dup2(file.fileno(), to)
            connection.close()
            return True
        ranks.append(pid)
    codes, end = [], time.monotonic() + request["limit"]
    while len(codes) < len(ranks) and time.monotonic() < end:
        pid, code = reap(-1, os.WNOHANG) or (0, 0)
        if pid:
            codes.append(code)
            if code and len(ranks) > 1:  # as torchrun does
                kill(ranks[0], signal.SIGTERM)
        else:
            time.sleep(0.01)
    done = len(codes) == len(ranks)
    if not done:
        kill(ranks[0], signal.SIGKILL)
    code = codes[0] if len(ranks) == 1 and codes else int(any(codes))
    connection.sendall(json.dumps({"code": code, "stdout": text(out), "stderr": text(err), "done": done}).encode())
    os._exit(0)


def reap(pid, options=0):
    """(pid, exit code) of a child that has ended, or None."""
    try:
        pid, status = os.waitpid(pid, options)
    except ChildProcessError:
        return None
    if pid == 0:
        return None
    return pid, os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)


def kill(group, number):
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def text(file):
    file.seek(0)
    return file.read().decode("utf-8", "replace")


request = serve(sys.argv[1])
# From here on this is the program, which ends as an interpreter does.
os.chdir(request["folder"])
sys.argv = [request["program"]] + request["args"]
sys.path[0] = os.path.abspath("")
if "numpy.random" in sys.modules:  # seeded as it was imported; random sees to it itself
    sys.modules["numpy.random"].seed()
main = sys.modules["__main__"] = types.ModuleType("__main__")
main.__file__ = os.path.abspath(request["program"])
main.__builtins__ = __builtins__
with open(request["program"]) as f:
    source = f.read()
exec(compile(source, request["program"], "exec"), vars(main))
