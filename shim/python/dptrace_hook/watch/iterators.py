"""The side of the training loop: passes, indices handed to workers, batches delivered."""
import functools
import os
import struct
import sys
import threading
import types
import weakref
from _thread import get_ident

from ..patch import wrapping
from ..patch.load import native
from ..record import layouts, ring
from ..record.ring import cpu, mono
from ..read import anew, attributes, digests, extents, growth, heap, identity, modes, objects, pinning, shuffles, slots
from ..read.notes import Notes
from ..read.quiet import Quiet, modes_in_force
from . import dist, failures, fetches, pickles, steps, training, worker_exits

_PUT_MAX = 4096  # indices in a record
_loaders = 0
_notes = Notes()  # of loaders
_running = {}  # id of an iterator with workers -> weak reference to it
_around = {"growth": None}  # growth.Growth of this process


def after_fork():
    _running.clear()


# Libraries that make loaders for a program, also where they are installed elsewhere: the line of the program that led to a
# loader of theirs is further out. Names that programs give to folders of their own (data, datasets, composer) are not among them.
_MAKERS = {"torch", "torchvision", "torchaudio", "torchtext", "torchdata", "transformers", "accelerate", "lightning",
           "pytorch_lightning", "lightning_fabric", "monai", "timm", "fastai", "ignite", "catalyst", "skorch", "webdataset", "litdata",
           "deepspeed", "trl", "setfit", "sentence_transformers", "torch_geometric", "mmengine", "detectron2", "ultralytics"}
_STDLIB = os.path.dirname(os.__file__) + os.sep


def _of_library(frame):
    """Whether a frame is of a library's code, or of the script by which a library is started."""
    file = frame.f_code.co_filename
    if "/site-packages/" in file or "/dist-packages/" in file or file.startswith(_STDLIB) or file.startswith("<frozen"):
        return True
    name = objects.plain(frame.f_globals).get("__name__")
    if type(name) is not str:
        return False
    if name == "__main__":
        return os.path.basename(os.path.dirname(file)) in ("bin", "Scripts") and not file.endswith(".py")
    return name.partition(".")[0] in _MAKERS


def where_made():
    """The callers of DataLoader(...): (the innermost that is of no library, else the innermost of all; up to 8 outside torch's
    loader and this package) as (file, line), innermost first."""
    frame, stack, place = wrapping.caller(), [], None
    while frame is not None and (len(stack) < 8 or place is None):
        file = frame.f_code.co_filename
        if "/dptrace_hook/" not in file and "/torch/utils/data/" not in file and not file.startswith("<frozen"):
            at = (file, frame.f_lineno)
            if len(stack) < 8:
                stack.append(at)
            if place is None and not _of_library(frame):
                place = at
        frame = frame.f_back
    return (place or (stack or [("", 0)])[0], stack)


def loader_made(_, result, args, kwargs):
    """After DataLoader.__init__: remembers where and when, for the first iteration."""
    note(args[0], where_made())


def note(loader, at):
    return _notes.put(loader, {"pid": ring.ring.pid, "at": at, "t": mono(), "number": 0, "passes": 0, "open": -1})


def facts_of(loader):
    """Our notes of a loader; one that came about by copying gets its own, also by a fork."""
    notes = _notes.of(loader)
    if notes is None or notes["pid"] != ring.ring.pid:
        return note(loader, copied_at(loader) if notes is None else notes["at"])
    return notes


def copied_at(loader):
    """Where a loader was made that did not come about by __init__: where the one that it has its parts from was, or where it is
    first used, which is now."""
    d = objects.attributes(loader)
    for other, notes in _notes.all():
        parts = objects.attributes(other)
        if all(parts.get(name) is d.get(name) for name in ("dataset", "sampler", "batch_sampler")):
            return notes["at"]
    return where_made()


def describe(loader, iterator, notes, origin):
    """The loader record. Only instance dictionaries are read; the length of a dataset of the user's own would be a call."""
    global _loaders
    _loaders += 1
    notes["number"] = _loaders
    d, it = objects.attributes(loader), iterator.__dict__
    batch_sampler, batched = d.get("batch_sampler"), it.get("_auto_collation")
    integer = identity.integer
    workers = integer(it.get("_num_workers"), 0)
    (file, line), stack = notes["at"]
    facts = identity.sampling(loader)
    facts.update({
        "loader": _loaders, "class": objects.name(type(loader)), "dataset_class": objects.name(type(d.get("dataset"))),
        "dataset_id": origin.number if type(origin) is identity.Leaf else 0,
        "given": identity.given.of(d.get("dataset"), loader)[0], "iterable": it.get("_dataset_kind") == 1,
        "length": identity.length(d.get("dataset")), "batch_size": integer(d.get("batch_size")),
        "num_workers": workers,
        "prefetch": integer(d.get("prefetch_factor")), "drop_last": bool(it.get("_drop_last") is True),
        "pin_memory": it.get("_pin_memory") is True,
        "persistent": d.get("persistent_workers") is True, "in_order": it.get("_in_order", True) is True,
        "batched": "" if type(batched) is not bool else "yes" if batched else "no", "len_asked": len_asked(loader),
        "start_method": start_method(loader) if workers else "",
        "batch_sampler": objects.name(type(batch_sampler)) if batch_sampler is not None else "",
        "generator": d.get("generator") is not None, "collate": callable_name(d.get("collate_fn")),
        "worker_init": callable_name(d.get("worker_init_fn")), "file": file, "line": line,
        "stack": "\n".join("%s:%d" % a for a in stack)})
    if facts["iterable"]:
        facts["shuffle"] = shuffles.named(d.get("dataset"))
    ring.put_json(ring.LOADER, facts, notes["t"])


def len_asked(loader):
    """What len() of an IterableDataset gave when the program asked for the loader's: DataLoader keeps it, to warn by."""
    return 0 if loader is None else identity.integer(objects.attributes(loader).get("_IterableDataset_len_called"), 0)


def start_method(loader):
    import multiprocessing
    context = objects.attributes(loader).get("_DataLoader__multiprocessing_context")
    method = objects.member(type(context), "_name") if context is not None else None
    return method if type(method) is str and method else multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]


def callable_name(f, depth=0):
    """The name of a function, or of the class of another callable; of a partial and of a method what it calls."""
    if f is None:
        return ""
    if type(f) is types.MethodType:
        f = f.__func__
    if issubclass(type(f), functools.partial) and depth < 4:
        return "functools.partial of " + callable_name(objects.partial(f)[0], depth + 1)
    if type(f) is types.FunctionType or type(f) is types.BuiltinFunctionType:
        return "%s.%s" % (f.__module__, f.__qualname__)
    cls = f if issubclass(type(f), type) else type(f)
    return "%s.%s" % (objects.module(cls), objects.qualname(cls))


def pass_begins(iterator, loader):
    with Quiet():
        tell_pass(iterator, loader)


def tell_pass(iterator, loader):
    notes = facts_of(loader)
    origin = identity.origin(loader, iterator)
    new = not notes["number"]
    if new:
        dist.rank_known()
        describe(loader, iterator, notes, origin)
    d = iterator.__dict__
    if notes["open"] >= 0:
        end_pass(notes["number"], notes["open"], "dropped", notes["delivered"], loader)
    number = notes["passes"]
    look_around(iterator, loader, notes, (notes["number"], max(number - 1, 0)), "begin")
    notes["passes"], notes["open"], notes["delivered"], notes["counted"] = number + 1, number, 0, 0
    notes["single"] = objects.attributes(loader).get("batch_size") == 1
    d["_dptrace_at"] = (notes["number"], number)
    d["_dptrace_of"] = weakref.ref(loader)
    d["_dptrace"] = made = native.Delivering()
    made.loader, made.number, made.worker = notes["number"], number, -2 if d.get("_num_workers") else -1
    made.single, made.notes, made.arrived, made.training = int(notes["single"]), notes, {}, steps.now
    made.ids = None if origin is None or type(origin) is identity.Leaf else origin.ids
    ready()
    if pinning.begins(notes, number, d):
        steps.now.due = 1  # the first batch is handed over by hand()
    epoch = identity.attributes(identity.sampler_of(loader)).get("epoch")
    seed = d.get("_base_seed")
    ring.put_json(ring.PASS, {"loader": notes["number"], "pass": number, "phase": "begin",
                              "sampler_epoch": epoch if type(epoch) is int else -1,
                              "base_seed": seed if type(seed) is int else 0,
                              "thread": "main" if get_ident() == threading.main_thread().ident else "other"})
    digests.pass_begins(number)
    attributes.at_iter(iterator, loader, new)
    modes.at_iter(iterator, loader)
    slots.write_order(loader, notes["number"], number)


def end_pass(number, number_of_pass, how, delivered, loader):
    ring.put_json(ring.PASS, {"loader": number, "pass": number_of_pass, "phase": "end", "end": how, "delivered": delivered,
                              "len_asked": len_asked(loader)})


def workers_started(iterator, pickled):
    """pickled: what pickles.starting has found."""
    loader, number = iterator.__dict__["_dptrace_at"]
    for i, process in enumerate(iterator._workers):
        size, ns, cpu_ns = pickled.get(id(process), (0, 0, 0))
        heap.started(process)
        ring.put_json(ring.WORKER, {"phase": "begin", "loader": loader, "pass": number, "worker": i, "pid": process.pid or 0,
                                    "pickled_bytes": size, "pickle_ns": ns, "pickle_cpu_ns": cpu_ns})


def workers_ended(iterator):
    """After _shutdown_workers, which joins them: what each left behind. It may be called again, or be broken off by
    the error of a killed worker before it has joined all."""
    for i in list(iterator.__dict__.get("_dptrace_alive") or ()):
        code = iterator._workers[i].exitcode
        if code is not None:
            worker_ended(iterator, i, code)


def worker_ended(iterator, number, code):
    d = iterator.__dict__
    d["_dptrace_alive"].discard(number)
    loader, number_of_pass = d["_dptrace_at"]
    ring.put_json(ring.WORKER, {"phase": "exit", "loader": loader, "pass": number_of_pass, "worker": number,
                                "pid": iterator._workers[number].pid or 0,
                                "exit_code": code, "asked": d["_dptrace_asked"].get(number, "")})


def put_indices(at, batch, worker, index, t0, ns, ids=None):
    """Integers as they are, in records of at most _PUT_MAX; of anything else its strings, or its types. ids: gives the ids
    of the samples of a loader whose dataset is put together of others."""
    kind = type(index)
    if kind is int:
        index = (index,)
    elif kind is not list and kind is not tuple:
        index = ()
    if 0 < len(index) <= _PUT_MAX and ids is None and ring.integers(ring.PUT, t0, *at, batch, worker, ns, 0, len(index), index):
        return
    others = [i for i in index if type(i) is not int]
    if others and any(objects.module(type(i)) != "numpy" for i in others) or kind is not int and not index:
        keys = objects.called(kind) if index is not None else ""
        if index:
            keys = ",".join(k if type(k) is str else objects.called(type(k)) for k in index[:32])
        ring.pack(ring.PUT, t0, *at, batch, worker, ns, 0, -1, keys.encode("utf-8", "replace")[:256])
        return
    n = len(index)
    for first in range(0, n, _PUT_MAX):
        part = index if n <= _PUT_MAX else index[first:first + _PUT_MAX]
        try:
            tail = struct.pack("<%dq" % len(part), *part)
        except struct.error:  # keys of more than 64 bits
            ring.pack(ring.PUT, t0, *at, batch, worker, ns, 0, -1, b"int")
            continue
        if ids is not None:
            tail += struct.pack("<%dq" % len(part), *ids(part))
        ring.pack(ring.PUT, t0, *at, batch, worker, ns, first, len(part), tail)


def ready():
    """What batches are handed over by where Python is not called: set as a pass begins, and each time that it is."""
    now, torch = steps.now, sys.modules["torch"]
    now.flags, now.rows, now.begun, now.full, now.bell = training.flags, training.rows, training.begun, ring.full, ring.bell
    now.grad, now.tensor, now.modes = torch.is_grad_enabled, torch.Tensor, modes_in_force()
    now.put, now.record, now.sink = ring.lister(ring.PUT), ring.packer(ring.NEXT), ring.sink()
    now.due = slots.QUIET


def settle(calls=0):
    """Counts what it has cost where Python was not called, and these calls of it."""
    now, r = steps.now, ring.ring
    r.calls += now.calls + calls
    r.hook_ns += now.own_ns
    now.calls = now.own_ns = 0


def delivered(made, batch, arrived, data):
    """made: of the pass, as next() was called."""
    notes, now = made.notes, steps.now
    notes["delivered"] += 1
    if now.child is not None:
        now.child.took()
    rows = training.rows(data)
    ring.pack(ring.NEXT, 0, made.loader, made.number, batch & 0xFFFFFFFF, made.worker, 1 + 256 * steps.is_grad_enabled() + made.did,
              made.t_next, arrived, now.taken, now.last, now.ran, now.grads_from, now.grads_to, now.restarts, rows)
    training.end()
    training.begin(rows, notes)


def ended(iterator, raised, made):
    at, notes, worker = (made.loader, made.number), made.notes, made.worker
    stop = issubclass(type(raised), StopIteration)
    put_end(at, worker, 0 if stop else 2, made.t_next, made.did)
    if not stop and worker == -2:
        failures.write(raised, at[0], at[1], -2, 0xFFFFFFFF, "next")
        for number, code in worker_exits.died(iterator):
            worker_ended(iterator, number, code)
    if notes["open"] == at[1]:
        notes["open"] = -1
        end_pass(at[0], at[1], "exhausted" if stop else "error", notes["delivered"], iterator.__dict__["_dptrace_of"]())
    look_around(iterator, iterator.__dict__["_dptrace_of"](), notes, at, "end")


def put_end(at, worker, status, t0, did):
    now = steps.now
    settle()
    ring.pack(ring.NEXT, 0, *at, 0xFFFFFFFF, worker, status + 256 * steps.is_grad_enabled() + did, t0, 0, now.taken, now.last,
              now.ran, now.grads_from, now.grads_to, now.restarts, -1)
    training.end()


def look_around(iterator, loader, notes, at, when):
    """Which containers have grown that the loop, or what the loader consists of, reaches. loader: None if nobody holds it any more, as
    in `for batch in DataLoader(...)`; its parts are the iterator's."""
    found = _around["growth"]
    if found is None or found.pid != ring.ring.pid:
        found = _around["growth"] = growth.Growth()
    n = notes.get("delivered", 0)
    found.served, notes["counted"] = found.served + n - notes.get("counted", 0), n
    if found.due(when != "window"):
        d = iterator.__dict__
        if loader is not None:
            d = objects.attributes(loader)
            found.look(at, when, growth.roots(d.get("dataset"), d.get("collate_fn"))[:2] + (
                (d.get("sampler"), "sampler", "order"), (d.get("batch_sampler"), "batch_sampler", "order")), wrapping.caller())
        else:
            found.look(at, when, growth.roots(d.get("_dataset"), d.get("_collate_fn"))[:2] + (
                (d.get("_index_sampler"), "batch_sampler", "order"),), wrapping.caller())


def process_ends():
    """What was done with the last batch is known now; and a worker's death may have ended the program outside of next()."""
    for reference in list(_running.values()):
        iterator = reference()
        for number, code in worker_exits.died(iterator, waits=True) if iterator is not None else ():
            worker_ended(iterator, number, code)
    if steps.now.delivered:
        put_end((0, 0), -1, layouts.STATUS_VALUES.index("exit"), mono(), training.flags())


def call(args, kwargs):
    """Before an iterator's _next_data: gives what is known of its pass."""
    made = args[0].__dict__["_dptrace"]
    made.t_next = mono()
    made.did = training.flags()
    return made


def hand(made, data, args, kwargs):
    """After it: of one batch in QUIET, and where there is more to do than to write it."""
    d, quiet = args[0].__dict__, steps.now.calls
    c0 = cpu() if quiet or not ring.ring.calls & 7 else 0
    if made.worker == -1:
        batch, arrived = made.notes["delivered"], 0
        index, made.index = made.index, None
        put_indices((made.loader, made.number), batch, -1, index, made.t_next, 0, made.ids)
    else:
        batch = made.got if d.get("_in_order") is False else d["_rcvd_idx"] - 1
        arrived = made.arrived.pop(batch, 0)
    delivered(made, batch, arrived, data)
    look_around(args[0], d["_dptrace_of"](), made.notes, (made.loader, made.number), "window")
    ready()
    settle(1)
    if c0:
        ring.ring.cost(cpu() - c0, 1 if quiet else 8)
    if made.notes.get("pins"):
        made.notes["pins"] -= 1
        pinning.look(made.loader, made.number, batch, data, wrapping.caller())
        steps.now.due = 1 if made.notes["pins"] else slots.QUIET


def failed(made, raised, args, kwargs):
    ended(args[0], raised, made)


calling, handing = native.calling(call), native.handing(hand)


class MultiProcessing:
    """Around the methods of _MultiProcessingDataLoaderIter, and of torchdata's copy of it."""

    @staticmethod
    def begin(args, kwargs):
        pickled = pickles.starting.found = {}
        return pickled

    @staticmethod
    def begun(pickled, result, args, kwargs):
        pickles.starting.found = fetches.here.inherited = None
        d = args[0].__dict__
        d["_dptrace_asked"], d["_dptrace_alive"] = {}, set(range(len(d["_workers"])))
        _running[id(args[0])] = weakref.ref(args[0])
        workers_started(args[0], pickled)

    @staticmethod
    def not_begun(pickled, raised, args, kwargs):
        pickles.starting.found = fetches.here.inherited = None

    @staticmethod
    def reset(args, kwargs):
        """_reset(loader, first_iter=False)"""
        if not (args[2] if len(args) > 2 else (kwargs or {}).get("first_iter", False)):
            pass_begins(args[0], args[1])

    @staticmethod
    def place(args, kwargs):
        """Before _try_put_index."""
        d = args[0].__dict__
        made = d["_dptrace"]
        made.sending, made.t_put = d["_send_idx"], mono()
        return made

    @staticmethod
    def has_placed(made, result, args, kwargs):
        d, batch = args[0].__dict__, made.sending
        if d["_send_idx"] != batch:
            t1, info = mono(), d["_task_info"].get(batch)
            index, made.index = made.index, None
            put_indices((made.loader, made.number), batch, info[0] if info else -2, index, made.t_put, t1 - made.t_put, made.ids)

    @staticmethod
    def arrive(_, result, args, kwargs):
        """After _try_get_data: (whether there is anything, (batch, data)), or (True, (what resumes an iterator, None))."""
        batch = result[1][0] if result[0] else None
        if type(batch) is int:
            made = args[0].__dict__["_dptrace"]
            made.got = batch
            made.arrived[batch] = mono()

    @staticmethod
    def mark_worker_as_unavailable(args, kwargs):
        """It asks one worker to end: of all at the shutdown, of each that has reached its end of an IterableDataset."""
        worker_exits.note(args[0], args[1] if len(args) > 1 else kwargs["worker_id"])

    @staticmethod
    def shutdown(args, kwargs):
        if not sys.is_finalizing():
            for i in list(args[0].__dict__.get("_dptrace_alive", ())):
                worker_exits.note(args[0], i)

    @staticmethod
    def has_shut_down(_, result, args, kwargs):
        if not sys.is_finalizing():
            workers_ended(args[0])
            _running.pop(id(args[0]), None)

    @staticmethod
    def has_not_shut_down(_, raised, args, kwargs):
        MultiProcessing.has_shut_down(_, None, args, kwargs)


class SingleProcess:
    """Around the methods of _SingleProcessDataLoaderIter. Its __init__ makes the fetcher, after that of the base class has begun
    the pass."""

    @staticmethod
    def begin(args, kwargs):
        before, fetches.here.single = fetches.here.single, ()
        return (before,)

    @staticmethod
    def begun(before, result, args, kwargs):
        fetches.here.single = before[0]

    not_begun = begun


def base_made(_, result, args, kwargs):
    """After _BaseDataLoaderIter.__init__(loader)."""
    iterator, loader = args[0], args[1] if len(args) > 1 else kwargs["loader"]
    pass_begins(iterator, loader)
    at = iterator.__dict__["_dptrace_at"]
    anew.look_for(loader, at)
    if fetches.here.single is not None:
        heap.look_for(loader, at)
        fetches.here.single = at
    elif iterator.__dict__.get("_num_workers") and start_method(loader) == "fork":
        slots.before_fork()
        heap.look_for(loader, at)
        fetches.here.inherited = extents.before_fork(loader, *at)


placing, placed, arriving = [make(f) for make, f in ((native.placing, MultiProcessing.place), (native.placed, MultiProcessing.has_placed),
                                                     (native.arriving, MultiProcessing.arrive))]
