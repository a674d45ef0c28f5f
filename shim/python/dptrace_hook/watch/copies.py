"""Copies from the memory of the host to a device that the program asks torch for: Tensor.to(), cuda() and copy_(), where
`dptrace record --copies` says so. Nothing of torch is replaced that anyone could see, and nothing is waited for.
"""
import binascii
import sys
import threading
import _thread

from ..patch.load import native, why
from ..patch import wrapping
from ..record import guard, layouts, ring
from ..record.ring import cpu, mono
from ..read import crossing
from . import steps

_SHARE = 100  # of its time a process spends one part on this, after the first
_FIRST_NS = 20 * 10**6
_SITES_ALL, _SITES_EACH = 64, 16  # places: of so many copies all are looked at, then one of so many
_MAX_FRAMES = 12
_MAX_SITES = 1024
_HOOK_SITE = 1 << 31

state = {"on": "", "spent": 0, "since": 0, "copies": 0, "skipped": 0, "step": -1, "open": True}
_sites = set()
_latest = {}  # id of a thread -> when the copy that was told last began


def watch():
    """torch is there. Does nothing where nobody has asked for it."""
    if not ring.session().get("copies"):
        return
    base = sys.modules["torch"]._C._TensorBase
    methods = [base.__dict__.get(name) for name in ("to", "cuda", "copy_")]
    addresses = [native.method_at(m) if m is not None else 0 for m in methods]
    if not all(addresses):
        state["on"] = why or "torch's methods are of another shape"
    elif not _writable(addresses):
        state["on"] = "torch's methods lie in memory that may not be written to"
    else:
        state["on"], state["since"] = "on", mono()
        for number, method in enumerate(methods):
            native.timed(method, number == 2, _TELL[number], guard.theirs)
    ring.ring.copies = state["on"]


def _writable(addresses):
    left = set(addresses)
    with open("/proc/self/maps") as f:
        for line in f:
            span, access = line.split(" ", 2)[:2]
            begin, end = [int(n, 16) for n in span.split("-")]
            if access[:2] == "rw":
                left = {a for a in left if not begin <= a < end}
    return not left


def after_fork():
    state.update(spent=0, since=mono(), copies=0, skipped=0, step=-1, open=True)
    _sites.clear()
    _latest.clear()
    ring.ring.copies = state["on"]


def ended():
    """The process ends. What was left out is told."""
    if state["skipped"] and state["on"] == "on":
        _put(0, 0, 0, 0, 0)
    native.untimed()


def _asked(args, kwargs):
    """Whether non_blocking was asked for: by its name, or as torch's parsers find it among the arguments without names:
    to(device, dtype, non_blocking), to(dtype, non_blocking), to(other, non_blocking), cuda(device, non_blocking),
    copy_(src, non_blocking). It is the first of them that is a bool."""
    if kwargs is not None:
        value = kwargs.get("non_blocking")
        if value is not None:
            return value is True
    for value in args:
        if value is True or value is False:
            return value
    return False


def _telling(number):
    """after() of timed(), for one of the methods."""
    look, asked, s, counted = crossing.crossed, _asked, state, [0]

    def told(this, args, kwargs, result, times):
        counted[0] += 1
        c0 = 0 if counted[0] & 7 else cpu()
        if number < 2:
            source, target = this, result
        else:
            source, target = args[0] if args else kwargs.get("other", kwargs.get("src")) if kwargs else None, this
        if not guard.off:
            found = look(source, target, asked(args, kwargs))
            if found is not None:
                _crossed(number, found, times, s)
        if c0:
            ring.ring.cost(cpu() - c0)
    return told


_TELL = [_telling(number) for number in range(3)]


def _crossed(number, found, times, s):
    begin, end = times
    me = _thread.get_ident()
    if _latest.get(me, 0) >= begin:  # told already, by a call inside of this one
        return
    if len(_latest) > 256:
        _latest.clear()
    _latest[me] = begin
    step = steps.now.delivered
    if step != s["step"]:  # all copies of a batch, or none
        s["step"], s["open"] = step, s["spent"] <= _FIRST_NS + (begin - s["since"]) // _SHARE
    if not s["open"]:
        s["skipped"] += 1
        return
    s["copies"] += 1
    site = 0
    if s["copies"] <= _SITES_ALL or not s["copies"] % _SITES_EACH:
        site = _site(wrapping.caller())
    how = number
    how |= layouts.COPY_ASYNC * (not found.waits) | layouts.COPY_CAST * found.cast | layouts.COPY_STRIDED * found.strided
    how |= layouts.COPY_CAPTURING * found.capturing | layouts.COPY_CUDA * found.cuda
    if found.pinned is not None:
        how |= layouts.COPY_PINNED if found.pinned else layouts.COPY_PAGEABLE
    if threading.current_thread() is threading.main_thread():
        how |= layouts.COPY_MAIN
    _put(begin, found.bytes, found.source, end - begin, site, how)
    s["spent"] += mono() - end


def _put(begin, size, source, took, site, how=0):
    skipped, state["skipped"] = state["skipped"], 0
    ring.pack(ring.COPY, begin, size, source, took, _native_id(), site, skipped, how)
    ring.bell()


def _native_id():
    ask = _thread.__dict__.get("get_native_id")
    return ask() if ask is not None else 0


def _site(frame):
    """A number for the lines that lead here, whose text is written once."""
    lines = []
    while frame is not None and len(lines) < _MAX_FRAMES:
        code = frame.f_code
        lines.append("%s:%d %s" % (code.co_filename, frame.f_lineno or 0, code.co_name))
        frame = frame.f_back
    text = "\n".join(lines)
    site = _HOOK_SITE | 0x7FFFFFFF & binascii.crc32(text.encode("utf-8", "replace"))
    if site not in _sites:
        if len(_sites) >= _MAX_SITES:
            return 0
        _sites.add(site)
        ring.put_json(ring.CALL_SITE, {"site": site, "frames": text})
    return site
