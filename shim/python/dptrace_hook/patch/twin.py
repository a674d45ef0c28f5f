"""The native helper in Python: the same names and the same behaviour, and the reference where they differ (shim/native).

What the twin cannot do: its wrappers are Python functions, so they are one frame in a traceback and one level of recursion, and
__code__, __defaults__ and inspect.getfullargspec() are the wrapper's; what follows __wrapped__ (inspect.signature, getsource,
unwrap, functools.wraps) finds the original.
"""
import ctypes
import struct
import time
import types
from _thread import allocate_lock, get_ident

from .twin_delivering import Delivering, Training, arriving, calling, handing, indexed, placed, placing  # noqa: F401
from .twin_referents import picked, referents  # noqa: F401
from .twin_serving import Fetching, Serving, entering, leaving, multiple  # noqa: F401

now = time.monotonic_ns
cpu = time.thread_time_ns
thread_state = int  # 0: not known in Python


def method_at(method):
    """0: where the definition of a method written in C lies is not known in Python."""
    return 0


def timed(method, always, after, theirs):
    """Has after(self, args, kwargs, result, (begin, end)) called behind a method written in C; always: also if it has given back its
    own object. Python cannot without a wrapper in the method's place, which would be seen."""
    return False


def untimed():
    """Ends that for all methods."""


PAD = 0
_RECORD = struct.Struct("<IHHQII")  # layouts.RECORD_FIELDS
_PAD = struct.Struct("<IHH")
_CODES = frozenset("BHIQhiq")
_FIELDS = 31  # at most, of a record
_INTEGERS = 4096  # at most, of a list in a record
_INT = {id(int)}  # by id: a metaclass may have a hash
UNTOLD, MERSENNE, TORCH, WORDS = range(4)  # forms of Peeks.tell()
_MERSENNE, _TORCH = struct.Struct("<i"), struct.Struct("<iII")

# Read by getattr of Python's own functions alone: no code of the program's.
# __annotate__ since 3.14: to ask for __annotations__ would evaluate them.
_COPIED = ("__module__", "__name__", "__qualname__", "__doc__", "__annotate__" if hasattr(types.FunctionType, "__annotate__")
           else "__annotations__")


def Around(original, before, after, failed, theirs):
    """A wrapper of original.

    token = before(args, kwargs) is called ahead of it, kwargs None if there are none; then after(token, result, args, kwargs), or
    failed(token, raised, args, kwargs) if it has raised. Each may be None. Of an Exception that they raise theirs(e) says whether
    it must reach the program; another is gone, and the original is called and its result or exception goes on nevertheless,
    without another callback if it was before's. What is no Exception always reaches the program.
    """
    goes_on = _goes_on  # all in the closure: this module's globals are None as the interpreter ends

    def wrapper(*args, **kwargs):
        token, tell, given = None, True, kwargs or None
        if before is not None:
            try:
                token = before(args, given)
            except Exception as e:
                reason = goes_on(theirs, e)
                if reason is e:
                    raise
                if reason is not None:
                    raise reason
                tell = False
        if not tell or failed is None:
            result = original(*args) if given is None else original(*args, **kwargs)
        else:
            try:
                result = original(*args) if given is None else original(*args, **kwargs)
            except BaseException as raised:
                try:
                    failed(token, raised, args, given)
                except Exception as e:
                    reason = goes_on(theirs, e)
                    if reason is e:
                        raise
                    if reason is not None:
                        raise reason
                raise
        if tell and after is not None:
            try:
                after(token, result, args, given)
            except Exception as e:
                reason = goes_on(theirs, e)
                if reason is e:
                    raise
                if reason is not None:
                    raise reason
        return result

    global _code
    _code = wrapper.__code__
    if type(original) is types.FunctionType or type(original) is types.BuiltinFunctionType:  # not `in`: a metaclass may have an ==
        for name in _COPIED:
            try:
                setattr(wrapper, name, getattr(original, name))
            except AttributeError:
                pass
    if type(original) is types.FunctionType:
        wrapper.__dict__.update(original.__dict__)
    wrapper.__wrapped__ = original
    return wrapper


_code = None  # of all wrappers


def _goes_on(theirs, e):
    """Of an exception of a callback: what must reach the program, itself or what theirs() has raised meanwhile; or None."""
    if theirs is None:
        return None
    try:
        return e if theirs(e) else None
    except Exception as other:
        try:
            return other if theirs(other) else None
        except Exception:
            return None


def original_of(f):
    """What an Around wraps; None for anything else. Not by __wrapped__, which functools.wraps copies."""
    if type(f) is not types.FunctionType or f.__code__ is not _code:
        return None
    return f.__closure__[_code.co_freevars.index("original")].cell_contents


class Sink:
    """The writer's end of a ring: head_word and tail_word are indices of u64 words in front of it, `after` is where it begins.
    bell: set by the hook, the head beyond which the recorder is to be woken."""

    def __init__(self, buffer, capacity, after, head_word, tail_word):
        for number in (capacity, after, head_word, tail_word):
            struct.pack("<I", number)
        self._lock = allocate_lock()
        self.head = self.tail = self.number = self.bell = 0
        self.capacity, self._head_word, self._tail_word = capacity, head_word, tail_word
        whole = memoryview(buffer)
        if whole.readonly:
            raise BufferError("not writable")
        whole = whole.cast("B")
        if not capacity or capacity % 8 or after % 8 or len(whole) < after + capacity or max(head_word, tail_word) >= after // 8:
            raise ValueError("not the shape of a ring")
        # Items of a cast memoryview are stored whole, which struct's little-endian formats do byte by byte.
        self._words, self._ring = whole[:after].cast("Q"), whole[after:after + capacity]
        self._clear = capacity  # so far nothing is unread, as far as we have looked

    def put(self, kind, payload, t=0):
        """Appends a record; t 0: now. False if there is no room."""
        payload = payload if type(payload) is bytes else bytes(memoryview(payload))
        return self._write(_RECORD, len(payload), kind, t, (), payload)

    def close(self):
        """Lets go of the buffer; nothing can be put any more."""
        self._words, self._clear, self._ring = None, 0, None

    def _write(self, packed, n, kind, t, values, tail):
        """n: bytes of values and tail; packed: the Struct of a record's head and the values."""
        # The lock is taken only when a signal handler or another thread of the program is inside: do not wait long.
        if not self._lock.acquire(False) and not self._lock.acquire(True, 0.01):
            return False
        try:
            head, whole = self.head, n + 31 & -8
            at, end = head % self.capacity, head + whole
            if end <= self._clear and at + whole <= self.capacity:  # as a rule
                # Before anything is counted: it may raise, and what is in the ring does not exist yet.
                packed.pack_into(self._ring, at, whole, kind, whole - n - 24, t or now(), get_ident() & 0xFFFFFFFF,
                                 self.number & 0xFFFFFFFF, *values)
                if tail:
                    at += n + 24
                    self._ring[at - len(tail):at] = tail
                self.number += 1
                self.head = self._words[self._head_word] = end  # last: only now it exists
                return True
            ring, need = self._ring, _RECORD.size + n
            pad = -need & 7
            if ring is None or need + pad > self.capacity:
                packed.pack(0, kind, 0, t, 0, 0, *values)  # what is no value of these is no value without a ring
                return False
            at = self.head % self.capacity
            skip = self.capacity - at if at + need + pad > self.capacity else 0
            end, tail_at = self.head + skip + need + pad, self.tail
            if not end - self.capacity <= tail_at <= self.head:
                tail_at = self._words[self._tail_word]
                if not end - self.capacity <= tail_at <= self.head:  # one in front of the head is no recorder's
                    packed.pack(0, kind, 0, t, 0, 0, *values)
                    self.tail, self._clear = tail_at, 0
                    return False
            to = 0 if skip else at
            if skip:
                _PAD.pack_into(ring, at, skip, PAD, 0)
            packed.pack_into(ring, to, need + pad, kind, pad, t or now(), get_ident() & 0xFFFFFFFF, self.number & 0xFFFFFFFF, *values)
            if tail:
                ring[to + need - len(tail):to + need] = tail
            self.number += 1
            self.head, self.tail, self._clear = end, tail_at, tail_at + self.capacity
            self._words[self._head_word] = end
            return True
        finally:
            self._lock.release()


def Record(sink, kind, form):
    """A function that packs values by a format ("I i Q q H h B", little endian, no gaps), with a tail of bytes if one more is
    given, and puts them as a record: record(t, *values) or record(t, *values, tail) -> whether there was room."""
    packed, n, size, write = _format(sink, kind, form)

    def record(t, *values):
        if len(values) == n:
            return write(packed, size, kind, t, values, b"")
        if len(values) != n + 1:
            raise struct.error("another number of values than the format has")
        tail = values[-1]
        if type(tail) is not bytes:
            tail = bytes(memoryview(tail))
        return write(packed, size + len(tail), kind, t, values[:-1], tail)
    return record


def Integers(sink, kind, form):
    """The same with one or two lists or tuples of integers behind the values, each as an i64: record(t, *values, integers) or
    record(t, *values, integers, more). None, and nothing is put, if they are anything else, too long or too large."""
    packed, n, size, write = _format(sink, kind, form)

    def record(t, *values):
        if len(values) == n + 1:
            each = values[n]
            good = (type(each) is list or type(each) is tuple) and len(each) <= _INTEGERS
        elif len(values) == n + 2:
            each, more = values[n:]
            good = all((type(e) is list or type(e) is tuple) and len(e) <= _INTEGERS for e in (each, more))
            each = list(each) + list(more) if good else ()
        else:
            raise struct.error("another number of values than the format has")
        if not good:
            return None
        values = values[:n]
        if not _INT.issuperset(map(id, map(type, each))):
            packed.pack(0, kind, 0, t, 0, 0, *values)
            return None
        try:
            tail = struct.pack("<%dq" % len(each), *each)
        except struct.error:
            packed.pack(0, kind, 0, t, 0, 0, *values)
            return None
        return write(packed, size + len(tail), kind, t, values, tail)
    return record


def _format(sink, kind, form):
    """(Struct of a record's head and the values, how many, their bytes, where they go)"""
    if type(sink) is not Sink:
        raise TypeError("wanted: a Sink, a kind, a format")
    codes = form.replace(" ", "")
    if not _CODES.issuperset(codes) or len(codes) > _FIELDS:
        raise struct.error("bad char in struct format")
    struct.pack("<H", kind)
    packed = struct.Struct(_RECORD.format + codes)
    return packed, len(codes), packed.size - _RECORD.size, sink._write


class _Numbered:
    """Things that are watched, by the index that add() gave them."""
    of = noun = None

    def __init__(self):
        self._all = []

    def add(self, *parts):
        self._all.append(self.of(*parts))
        return len(self._all) - 1

    def set(self, index, *parts):
        made = self.of(*parts)
        self._at(index)
        self._all[index] = made

    def _at(self, index):
        if not 0 <= index < len(self._all):
            raise IndexError("no such " + self.noun)
        return self._all[index]


class Peeks(_Numbered):
    """Regions of memory, up to two and 64 bytes each time, that are compared with what they were at the last look.

    through: an address where `value` is for as long as the regions are where they are, the pointer of a wrapper, say. When there
    is another, they are not read; they count as moved until they are set anew.
    """
    noun = "region"

    def of(self, address1, n1, address2, n2, keep, through=0, value=0):
        return _Peek(address1, n1, address2, n2, keep, through, value)

    def moved(self, first=0, stop=None):
        """None, or the indices of those whose bytes are others than at the last look."""
        found = None
        peeks = self._all
        for i in range(max(first, 0), len(peeks) if stop is None else min(stop, len(peeks))):
            p = peeks[i]
            if p.through is not None:
                if p.through[0] != p.value:
                    found = (found or ()) + (i,)
                    continue
            if p.first != p.was_first or p.second != p.was_second:
                p.look()
                found = (found or ()) + (i,)
        return found

    def quiet(self):
        """Whether nothing has moved."""
        for p in self._all:
            if p.moved():
                return False
        return True

    def tell(self, index, slot, form):
        """How a record of a state says what it has moved to, as long as it is not set anew: MERSENNE (four words, then i32
        position), TORCH (four words, then i32 left, seeded, u32 next), WORDS (all of it), or UNTOLD."""
        p = self._at(index)
        if not 0 <= slot < 1 << 32 or not UNTOLD <= form <= WORDS or len(p.last) != {MERSENNE: 20, TORCH: 28}.get(form, len(p.last)):
            raise ValueError("no such form")
        p.slot, p.form = slot, form

    def told(self, index):
        """Whether it was, since this was last asked."""
        p = self._at(index)
        told, p.told = p.told, False
        return told

    def _can_tell(self):
        for p in self._all:
            if p.moved() and (p.form == UNTOLD or (p.through is not None and p.through[0] != p.value)):
                return False
        return True

    def _write(self, record, number, worker, fetch, when, ns):
        """For how many there was no room."""
        lost = 0
        for p in self._all:
            if p.moved():
                p.look()
                p.told = True
                last = bytes(p.last)
                place, position = last[:16], 0
                if p.form == WORDS:
                    place = b""
                elif p.form == MERSENNE:
                    position = _MERSENNE.unpack_from(last, 16)[0]
                else:
                    left, _, position = _TORCH.unpack_from(last, 16)
                    position = 624 if left == 1 else position
                lost += not record(0, p.slot, 0, number, worker, fetch, when, len(place), position, ns, place or last)
        return lost

    def last(self, index):
        return bytes(self._at(index).last)


class _Peek:
    __slots__ = ("first", "second", "was_first", "was_second", "last", "keep", "through", "value", "slot", "form", "told")

    def __init__(self, address1, n1, address2, n2, keep, *through):
        if len(through) not in (0, 2):
            raise TypeError("wanted: address1, n1, address2, n2, keep, through=0, value=0")
        if min(address1, n1, address2, n2, *through) < 0:
            raise OverflowError("can't convert negative int to unsigned")
        if n1 + n2 > 64:
            raise ValueError("more than 64 bytes")
        self.keep = keep  # the memory is its
        self.first, self.second = _view(address1, n1), _view(address2, n2)
        self.last = bytearray(n1 + n2)
        last = memoryview(self.last)
        self.was_first, self.was_second = last[:n1], last[n1:]
        self.through, self.value = None, 0
        self.slot, self.form, self.told = 0, UNTOLD, False
        if through and through[0]:
            self.through, self.value = _view(through[0], 8).cast("Q"), through[1]
        if self.through is None or self.through[0] == self.value:
            self.look()

    def moved(self):
        return (self.through is not None and self.through[0] != self.value) or self.first != self.was_first or self.second != self.was_second

    def look(self):
        self.was_first[:], self.was_second[:] = self.first, self.second


def _view(address, n):
    return memoryview((ctypes.c_char * n).from_address(address) if n else b"").cast("B")


class Places(_Numbered):
    """Entries of dictionaries, and what they hold."""
    noun = "place"

    def of(self, d, key, o):
        if type(d) is not dict or type(key) is not str:
            raise TypeError("wanted: a dict, a str, what is there")
        return d, key, o

    def changed(self):
        """None, or the indices of those where another object is, until they are set anew; where none is there is None."""
        found = None
        for i, (d, key, o) in enumerate(self._all):
            if d.get(key) is not o:
                found = (found or ()) + (i,)
        return found

    def quiet(self):
        """Whether nothing has changed."""
        for d, key, o in self._all:
            if d.get(key) is not o:
                return False
        return True
