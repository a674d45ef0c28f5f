"""Starts a training and does not, or does, say how it ended.

usage: wrapper.py WHAT HOW    WHAT: swallows (exits 0 whatever happened), reports (its exit code), retries (until it ends well),
reads (and deals with it)
"""
import subprocess
import sys

what, how = sys.argv[1:]
command = [sys.executable, "train.py", how]
if what == "swallows":
    subprocess.call(command, stderr=subprocess.DEVNULL)
    sys.exit(0)
code = subprocess.call(command, stderr=subprocess.DEVNULL)
if what == "retries":
    while code:
        code = subprocess.call(command, stderr=subprocess.DEVNULL)
if what == "reads":
    print({0: "time is up", 7: "converged"}.get(code, "failed, without this one then"))
    code = 0
sys.exit(abs(code))
