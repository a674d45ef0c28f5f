"""Starts a training and does not, or does, say how it ended.

usage: wrapper.py WHAT HOW    WHAT: swallows (exits 0 whatever happened), reports (its exit code), retries (until it ends well)
"""
import subprocess
import sys

what, how = sys.argv[1:]
command = [sys.executable, "train.py", how]
code = subprocess.call(command, stderr=subprocess.DEVNULL)
if what == "retries":
    while code:
        code = subprocess.call(command, stderr=subprocess.DEVNULL)
if what == "swallows":
    code = 0
sys.exit(abs(code))
