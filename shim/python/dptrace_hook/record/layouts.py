"""The binary layouts of PROTOCOL.md, each typed once: here.

The hook packs by them and its tests unpack by them; the recorder (shim/layouts.go) reads this text, which is in its binary,
decodes by it, and fills the column that bears a field's name; PROTOCOL.md is made from it: `go test ./shim -update`. So a
field has one line, `("name", "format"),` with a format of the module struct. All is little endian, without gaps.
"""
from struct import Struct

# The types of records, by their number. Never reused, never in another order: new ones come last.
(PAD, PROCESS, LOADER, PASS, WORKER, PUT, FETCH, NEXT, SLOT, STATE, OPTIMIZER, EXCEPTION, DIST, ERRORS, EXTENT, PRIVATE,
 DATASET, ATTRIBUTE, DIGEST, LEFTOVER, OPENED, SET_EPOCH, ACT, SEARCH, SPLIT, TRANSFORM, PIN,
 BATCH_BYTES, CONTAINER, FOOTPRINT, COPY, CALL_SITE) = range(32)

HEADER_BYTES = 128  # before the ring; its fields take less

# At the begin of the file.
HEADER_FIELDS = (
    ("magic", "4s"),
    ("version", "I"),
    ("head", "Q"),
    ("tail", "Q"),
    ("capacity", "I"),
    ("pid", "I"),
    ("ppid", "I"),
    ("flags", "I"),
    ("start", "Q"),
    ("dropped", "Q"),
    ("beat", "Q"),
    ("hook_ns", "Q"),
    ("calls", "Q"),
    ("records", "Q"),
    ("bell", "Q"),
)

# At the begin of each record; of a record of type PAD only what is in front of t_ns.
RECORD_FIELDS = (
    ("length", "I"),
    ("type", "H"),
    ("pad", "H"),
    ("t_ns", "Q"),
    ("thread", "I"),
    ("number", "I"),
)

# At the begin of payloads that are no JSON.
PUT_FIELDS = (
    ("loader", "I"),
    ("pass", "I"),
    ("batch", "I"),
    ("worker", "i"),
    ("dur_ns", "q"),
    ("first", "I"),
    ("n", "i"),
)
FETCH_FIELDS = (
    ("loader", "I"),
    ("pass", "I"),
    ("worker", "i"),
    ("batch", "I"),
    ("fetch", "I"),
    ("wait_ns", "q"),
    ("fetch_ns", "q"),
    ("collate_ns", "q"),
    ("put_ns", "q"),
    ("samples", "i"),
)
NEXT_FIELDS = (
    ("loader", "I"),
    ("pass", "I"),
    ("batch", "I"),
    ("worker", "i"),
    ("status", "I"),
    ("call_ns", "q"),
    ("arrived_ns", "q"),
    ("steps", "Q"),
    ("optimizer", "I"),
    ("backwards", "Q"),
    ("grads_from", "Q"),
    ("grads_to", "Q"),
    ("restarts", "I"),
    ("rows", "i"),
)
STATE_FIELDS = (
    ("slot", "I"),
    ("loader", "I"),
    ("pass", "I"),
    ("worker", "i"),
    ("fetch", "I"),
    ("when", "H"),
    ("id_length", "H"),
    ("pos", "q"),
    ("dur_ns", "q"),
)
DIGEST_FIELDS = (
    ("loader", "I"),
    ("pass", "I"),
    ("worker", "i"),
    ("batch", "I"),
    ("fetch", "I"),
    ("n", "H"),
    ("indexed", "H"),
    ("rowed", "H"),
    ("names_length", "H"),
)
SPLIT_FIELDS = (
    ("loader", "I"),
    ("pass", "I"),
    ("worker", "i"),
    ("batch", "I"),
    ("fetch", "I"),
    ("samples", "i"),
    ("wall_ns", "q"),
    ("cpu_ns", "q"),
    ("others_ns", "q"),
    ("queue_ns", "q"),
    ("read_bytes", "q"),
    ("reads", "q"),
    ("disk_bytes", "q"),
    ("own_ns", "q"),
    ("n", "I"),
)
COPY_FIELDS = (
    ("bytes", "q"),
    ("source", "Q"),
    ("call_ns", "q"),
    ("thread", "i"),
    ("site", "I"),
    ("skipped", "I"),
    ("function", "I"),
)

# What the numbers of a field mean, from 0.
WHEN_VALUES = ("begin", "found", "before", "after", "fork", "task", "end")
STATUS_VALUES = ("stop", "ok", "error", "exit")
FUNCTION_VALUES = ("Tensor.to", "Tensor.cuda", "Tensor.copy_")
# Added to function, of a copy.
COPY_MAIN = 256
COPY_ASYNC = 512
COPY_PINNED = 1024
COPY_PAGEABLE = 2048
COPY_CAST = 4096
COPY_STRIDED = 8192
COPY_CAPTURING = 16384
COPY_CUDA = 32768
# Added to status.
STATUS_GRAD = 256
STATUS_GRAD_OFF = 512
STATUS_EVALUATING = 1024
STATUS_ALONE = 2048
STATUS_WATCHED = 4096

# Bits of the header's flags.
FLAG_ENDED = 1
FLAG_UNREAD = 2
FLAG_ERRORS = 4


def packed(fields):
    """The struct.Struct of a table of fields."""
    return Struct("<" + "".join([form for _, form in fields]))


def offsets(fields):
    """{name: where it begins}"""
    return {fields[i][0]: packed(fields[:i]).size for i in range(len(fields))}
