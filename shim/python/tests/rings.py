"""A reader of the hook's record files as PROTOCOL.md describes them, independent of both other sides."""
import json
import os
import struct

NAMES = ["pad", "process", "loader", "pass", "worker", "put", "fetch", "next", "slot", "state", "optimizer", "exception", "dist", "errors", "extent", "private",
         "dataset", "attribute", "digest", "leftover", "opened", "set_epoch"]
WHEN = ["begin", "found", "before", "after", "fork", "task", "end"]
PUT, FETCH, NEXT, STATE, DIGEST = (struct.Struct("<" + f) for f in ("IIIiqIi", "IIiIIqqqqi", "IIIiIqqQI", "IIIiIHHqq", "IIiIIHH"))


class Ring:
    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        (magic, version, self.head, self.tail, self.capacity, self.pid, self.ppid, self.flags, self.start, self.dropped, self.beat,
         self.hook_ns, self.calls, self.number) = struct.unpack_from("<4sIQQIIIIQQQQQQ", data)
        assert magic == b"DPR1" and version == 1, (magic, version)
        assert len(data) == 128 + self.capacity and self.capacity % 8 == 0, (len(data), self.capacity)
        assert self.tail == 0 and self.head <= self.capacity, "these tests do not drain: %d of %d" % (self.head, self.capacity)
        assert os.path.basename(path) == "%d.%s.ring" % (self.pid, os.path.basename(path).split(".")[1])
        self.records, at, last = [], 0, None
        while at < self.head:
            length, kind, pad, t, thread, number = struct.unpack_from("<IHHQII", data, 128 + at)
            assert length % 8 == 0 and 24 <= length <= self.head - at and pad < 8, (at, length, pad)
            if kind:
                assert number == (0 if last is None else last + 1), (number, last)
                last = number
                self.records.append(Record(NAMES[kind], t, data[128 + at + 24:128 + at + length - pad]))
            at += length
        # the header's count is brought up to date now and then, and at a good end
        assert self.number == len(self.records) or (self.number < len(self.records) and not self.flags & 1), (len(self.records), self.number)

    def of(self, kind):
        return [r for r in self.records if r.record == kind]


class Record:
    """The fields are attributes, whatever the record's encoding."""

    def __init__(self, kind, t, payload):
        self.record, self.t = kind, t
        names = {"put": "loader pass_ batch worker dur_ns first n", "fetch": "loader pass_ worker batch window wait_ns fetch_ns collate_ns put_ns samples",
                 "next": "loader pass_ batch worker status call_ns arrived_ns steps optimizer",
                 "state": "slot loader pass_ worker window when id_length pos dur_ns"}.get(kind)
        if kind == "digest":
            self.digest(payload)
            return
        if names is None:
            self.__dict__.update({"pass_" if k == "pass" else k: v for k, v in json.loads(payload.decode()).items()})
            return
        form = {"put": PUT, "fetch": FETCH, "next": NEXT, "state": STATE}[kind]
        self.__dict__.update(zip(names.split(), form.unpack_from(payload)))
        rest = payload[form.size:]
        if kind == "put":
            each = struct.Struct("<%dq" % max(self.n, 0))
            self.indices = list(each.unpack_from(rest)) if self.n >= 0 else rest.decode()
            self.ids = list(each.unpack(rest[each.size:])) if self.n >= 0 and len(rest) > each.size else []
        elif kind == "state":
            self.when, self.id, self.raw = WHEN[self.when], rest[:self.id_length], rest[self.id_length:]
        else:
            assert not rest, (kind, rest)

    def digest(self, payload):
        self.loader, self.pass_, self.worker, self.batch, self.window, n, indexed = DIGEST.unpack_from(payload)
        rest = payload[DIGEST.size:]
        numbers = struct.unpack_from("<%dq" % (n * (1 + indexed)), rest)
        self.positions, self.indices = list(numbers[:n]), list(numbers[n:])
        rest = rest[8 * len(numbers):]
        assert len(rest) == 33 * n, (n, len(rest))
        self.kinds, rest = list(rest[:n]), rest[n:]
        each = [rest[i:i + 16].hex() for i in range(0, len(rest), 16)]
        self.contents, self.metas = each[:n], each[n:]

    def __repr__(self):
        return repr(self.__dict__)


def read(spool):
    return [Ring(os.path.join(spool, name)) for name in sorted(os.listdir(spool)) if name.endswith(".ring")]
