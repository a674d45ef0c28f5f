"""A reader of the hook's record files as PROTOCOL.md describes them: by the hook's own layouts, and by nothing else of it."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from dptrace_hook.record import layouts  # noqa: E402

RECORD_BYTES = layouts.packed(layouts.RECORD_FIELDS).size
# The first numbers of the module are the types of records; 0 is the first, and they end where they no longer rise by one.
TYPES = [name.lower() for at, (name, number) in enumerate((n, v) for n, v in vars(layouts).items() if type(v) is int) if number == at]


def unpacked(fields, data, at=0):
    return dict(zip([name for name, _ in fields], layouts.packed(fields).unpack_from(data, at)))


def attributes(facts):
    """By names that Python has no other use for."""
    return {"pass_" if name == "pass" else name: value for name, value in facts.items()}


class Ring:
    def __init__(self, path):
        with open(path, "rb") as f:
            data = f.read()
        self.__dict__.update(unpacked(layouts.HEADER_FIELDS, data))
        assert self.magic == b"DPR1" and self.version == 1, (self.magic, self.version)
        self.number, begin = self.__dict__.pop("records"), layouts.HEADER_BYTES
        assert len(data) == begin + self.capacity and self.capacity % 8 == 0, (len(data), self.capacity)
        assert self.tail == 0 and self.head <= self.capacity, "these tests do not drain: %d of %d" % (self.head, self.capacity)
        assert os.path.basename(path) == "%d.%s.ring" % (self.pid, os.path.basename(path).split(".")[1])
        self.records, at, last = [], 0, None
        while at < self.head:
            record = unpacked(layouts.RECORD_FIELDS, data, begin + at)
            length, kind, pad, number = (record[name] for name in ("length", "type", "pad", "number"))
            assert length % 8 == 0 and RECORD_BYTES <= length <= self.head - at and pad < 8, (at, length, pad)
            if kind:
                assert number == (0 if last is None else last + 1), (number, last)
                last = number
                self.records.append(Record(TYPES[kind], record["t_ns"], data[begin + at + RECORD_BYTES:begin + at + length - pad]))
            at += length
        # the header's count is brought up to date now and then, and at a good end
        more = len(self.records) - self.number
        assert more == 0 or (more > 0 and not self.flags & layouts.FLAG_ENDED), (len(self.records), self.number)

    def of(self, kind):
        return [r for r in self.records if r.record == kind]


class Record:
    """The fields are attributes, whatever the record's encoding."""

    def __init__(self, kind, t, payload):
        self.record, self.t = kind, t
        fields = vars(layouts).get(kind.upper() + "_FIELDS")
        if fields is None:
            self.__dict__.update(attributes(json.loads(payload.decode())))
            return
        self.__dict__.update(attributes(unpacked(fields, payload)))
        getattr(self, "rest_of_" + kind, self.nothing)(payload[layouts.packed(fields).size:])

    def nothing(self, rest):
        assert not rest, (self.record, rest)

    def rest_of_put(self, rest):
        each = struct.Struct("<%dq" % max(self.n, 0))
        self.indices = list(each.unpack_from(rest)) if self.n >= 0 else rest.decode()
        self.ids = list(each.unpack(rest[each.size:])) if self.n >= 0 and len(rest) > each.size else []

    def rest_of_split(self, rest):
        numbers = struct.unpack("<%dq" % (3 * self.n), rest)
        self.spent = {numbers[i]: numbers[i + 1:i + 3] for i in range(0, len(numbers), 3)}

    def rest_of_state(self, rest):
        self.when, self.id, self.raw = layouts.WHEN_VALUES[self.when], rest[:self.id_length], rest[self.id_length:]

    def rest_of_digest(self, rest):
        n = self.n
        numbers = struct.unpack_from("<%dq" % (n * (1 + self.indexed)), rest)
        self.positions, self.indices = list(numbers[:n]), list(numbers[n:])
        rest = rest[8 * len(numbers):]
        self.kinds, rest = list(rest[:n]), rest[n:]
        each = [rest[i:i + 16].hex() for i in range(0, 32 * n, 16)]
        self.contents, self.metas, rest = each[:n], each[n:], rest[32 * n:]
        self.row_kinds, self.rows = [], []
        if self.rowed:
            self.row_kinds, self.rows, rest = list(rest[:n]), [rest[n + 16 * i:n + 16 * i + 16].hex() for i in range(n)], rest[17 * n:]
        self.names, rest = rest[:self.names_length].decode(), rest[self.names_length:]
        counts, rest = rest[:n], rest[n:]
        assert len(rest) == 8 * sum(counts), (n, counts, len(rest))
        starts = [8 * sum(counts[:i]) for i in range(n)]
        self.parts = [[rest[at + 8 * i:at + 8 * i + 8].hex() for i in range(c)] for at, c in zip(starts, counts)]

    def __repr__(self):
        return repr(self.__dict__)


def read(spool):
    return [Ring(os.path.join(spool, name)) for name in sorted(os.listdir(spool)) if name.endswith(".ring")]
