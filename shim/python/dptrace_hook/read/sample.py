"""Reads one sample: no copy that is not needed, and nothing of the program's is called.

Only exact types are known, and for each its own builtin way to its bytes. Tensors are read at their address and not
through Tensor.numpy(), which forbids their storage to be resized from then on.
"""
import ctypes
import struct
import sys
from collections import OrderedDict, defaultdict

from . import objects
from .notes import Notes

SMALL = 4 << 10  # bytes of an array that always go in whole
LONG = 64 << 10  # bytes of a text, or of a list of numbers, that do
CHUNKS, CHUNK = 8, 512
MAX_COPY = 32 << 20  # bytes: an array that is not contiguous is copied to be read whole
MAX_DEPTH = 6
MAX_LEAVES = 256
PACKED = 16  # a list of more numbers than this is one leaf
DIGESTED = 512  # bytes: more of an array go in by their own digest
MAX_PARTS = 12  # leaves that have a digest of their own
FEW = 32  # bytes: the digest of no more is remembered
SHORT = 1 << 10  # bytes: with less a sample may be no more than the name of what collate reads
ALL, SOME, LITTLE, STRINGS, INTEGERS, LEFT, FOLLOWS, BRIEF = 1, 2, 4, 8, 16, 32, 64, 128  # kinds of PROTOCOL.md
PIECES, INTEGER, TEXT, OTHER = 1, 2, 4, 6  # of a part: pieces of it; and what it is, 0 being an array or a list of numbers
_NONE = bytes(16)
_SIZES = {1: "bool uint8 int8 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz", 2: "int16 uint16 float16 bfloat16",
          4: "int32 uint32 float32", 8: "int64 uint64 float64 complex64", 16: "complex128"}  # of torch's types, by bytes
_MAX_HEADS = 1024
_DICTS = (id(dict), id(OrderedDict), id(defaultdict))
_TENSORS = ("torchvision.", "monai.")  # whose classes of tensors are plain ones with notes attached

_string_at = ctypes.string_at
_double = struct.Struct("<d").pack
_UNSEEN = object()
_heads = {}  # (dtype, shape) -> (piece, bytes of an item, bytes), None: cannot be read
_keys = {}  # key of a dict -> piece
_places = {}  # (bytes of an array, of an item, ...) -> slices: see _eighths
_short_parts, _short_metas = {}, {}  # (piece of a part, what it is) -> its digest; metas of a sample -> theirs: labels come again and again
_classes = Notes()  # of a class how its instances are read: see _how
_view = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int)(("PyMemoryView_FromMemory", ctypes.pythonapi))
_READ = 0x100  # PyBUF_READ

blake2b = tensor = base = cpu = strided = None
ndarray = memmap = None
_scalars, _integers, _plain = {}, {}, {}  # the first two by id: to hash or compare a class of the program's may call its metaclass
_negated = _nested = False


def bind():
    """Looks up the types of the libraries that are loaded. hashlib is not loaded: it takes 9 ms with OpenSSL."""
    global blake2b, tensor, base, cpu, strided, _plain, _negated, _nested
    if blake2b is None:
        torch = sys.modules["torch"]
        try:
            from _blake2 import blake2b as found
        except ImportError:
            from hashlib import blake2b as found
        tensor, base, cpu, strided = torch.Tensor, torch._C._TensorBase, torch.device("cpu"), torch.strided
        _negated, _nested = hasattr(base, "is_neg"), hasattr(base, "is_nested")
        for item, names in _SIZES.items():
            for name in names.split():
                dtype = torch.__dict__.get(name)
                if dtype is not None:
                    _plain[dtype] = name, item
        blake2b = found
    integers()


def integers():
    """NumPy's integer types, if it is loaded."""
    global ndarray, memmap, _scalars, _integers
    numpy = sys.modules.get("numpy")
    if ndarray is None and numpy is not None and "memmap" in numpy.__dict__ and "sctypeDict" in numpy.__dict__:
        _scalars = {id(t): t for t in numpy.sctypeDict.values()}
        _integers = {i: t for i, t in _scalars.items() if issubclass(t, numpy.integer) and t is not numpy.timedelta64}
        memmap, ndarray = numpy.memmap, numpy.ndarray
    return _integers


def read(obj, room):
    """(kind, digest of its contents, of its metas, bytes of `room` used, digests of its parts). Kind 0: nothing in it
    can be read. room: bytes of large leaves that may go in whole."""
    r = _Reader(room)
    r.read(obj, 0, b"")
    if r.leaves == MAX_LEAVES:
        return 0, _NONE, _NONE, 0, b""
    kind = (SOME if r.chunked else ALL) | (LEFT if r.left else 0)
    if not r.varied and (r.text if r.arrays else r.text + r.other) < 4:
        kind |= LITTLE
    if r.size + r.text + r.other < SHORT:
        kind |= BRIEF
    metas = _NONE
    if r.metas:
        kind |= STRINGS if r.strings else INTEGERS
        joined = b"".join(r.metas)
        metas = _short_metas.get(joined)
        if metas is None:
            metas = blake2b(joined, digest_size=16).digest()
            if len(joined) <= FEW and len(_short_metas) < _MAX_HEADS:
                _short_metas[joined] = metas
    return kind, blake2b(b"".join(r.pieces), digest_size=16).digest(), metas, room - r.room, r.parts() if len(r.ends) > 1 else b""


class _Reader:
    __slots__ = ("room", "pieces", "metas", "ends", "leaves", "left", "chunked", "strings", "arrays", "varied", "size", "text", "other")

    def __init__(self, room):
        self.room = room
        self.pieces, self.metas = [], []
        self.ends = []  # of each leaf: where its last piece is, and what it is
        self.leaves = MAX_LEAVES  # that may still follow
        self.left = self.chunked = self.strings = False
        self.arrays = self.varied = False
        self.size = self.text = self.other = 0  # bytes of arrays and lists of numbers, of texts, of single values

    # key: the piece of the dictionary's key that leads here
    def read(self, obj, depth, key):
        cls = type(obj)
        if cls is tensor:
            self.tensor(obj)
        elif cls is int:
            self.integer(obj, key)
        elif cls is tuple or cls is list:
            self.sequence(obj, depth, key)
        elif cls is str:
            self.string(obj, b"s", key)
        elif id(cls) in _DICTS:
            self.dictionary(list(dict.items(obj)), depth)
        elif cls is ndarray or (cls is memmap and memmap is not None):
            self.array(obj)
        elif cls is float:
            self.single(b"f" + _double(obj))
        elif cls is bytes or cls is bytearray:
            self.string(obj, b"b", key)
        elif cls is bool or obj is None:
            self.single(b"T" if obj is True else b"F" if obj is False else b"N")
        elif cls is complex:
            self.single(b"c" + _double(obj.real) + _double(obj.imag))
        elif id(cls) in _scalars:
            self.scalar(obj, cls, key)
        else:
            self.other_class(obj, cls, depth)

    def leaf(self):
        if self.leaves == 0:
            self.left = True
            return False
        self.leaves -= 1
        return True

    def parts(self):
        """8 bytes for each of the first leaves; 3 bits of the first one tell what it is."""
        parts, pieces = [], self.pieces
        for end, what in self.ends[:MAX_PARTS]:
            piece = pieces[end] if what > 1 else pieces[end - 1] + pieces[end]
            part = _short_parts.get((piece, what))
            if part is None:
                digest = blake2b(piece, digest_size=8).digest()
                part = bytes((digest[0] & 0xF8 | what,)) + digest[1:]
                if len(piece) <= FEW and len(_short_parts) < _MAX_HEADS:
                    _short_parts[piece, what] = part
            parts.append(part)
        return b"".join(parts)

    def single(self, piece):
        if self.leaf():
            self.ends.append((len(self.pieces), OTHER))
            self.pieces.append(piece)
            self.other += len(piece) - 1

    def integer(self, value, key):
        if self.leaf():
            bits = value.bit_length()
            piece = b"i%d;" % value if bits < 64 else b"I%d;" % bits + value.to_bytes(bits // 8 + 1, "little", signed=True)
            self.ends.append((len(self.pieces), INTEGER))
            self.pieces.append(piece)
            self.other += len(piece) - 2
            self.metas += (key, piece)

    def string(self, value, mark, key):
        if not self.leaf():
            return
        n, what = len(value), TEXT
        if n > LONG:
            if n > self.room:
                value = _spread(value, n)
                self.chunked, what = True, TEXT | PIECES
            else:
                self.room -= n
        data = value.encode("utf-8", "surrogatepass") if mark == b"s" else value
        piece = b"%b%d,%d:%b" % (mark, n, len(data), data)
        self.ends.append((len(self.pieces), what))
        self.pieces.append(piece)
        self.text += len(data)
        if n <= LONG:
            self.strings = True
            self.metas += (key, piece)

    def sequence(self, obj, depth, key):
        if depth >= MAX_DEPTH:
            self.left = True
            return
        if len(obj) > PACKED and self.numbers(obj, key):
            return
        self.pieces.append(b"(")
        for each in obj:
            self.read(each, depth + 1, b"")
        self.pieces.append(b")")

    def numbers(self, obj, key):
        """A list of numbers of one type, as it comes from a tokenizer. False: it is none."""
        n = len(obj)
        part = obj
        whole = 8 * n <= LONG or 8 * n <= self.room
        if not whole:
            part = _spread(obj, n)
        cls = type(part[0])
        if set(map(id, map(type, part))) != {id(cls)}:
            return False
        if cls is int and -2**63 <= min(part) and max(part) < 2**63:
            form, mark = "<%dq", b"q"
        elif cls is float:
            form, mark = "<%dd", b"d"
        elif cls is bool:
            form, mark = "<%d?", b"?"
        else:
            return False
        if self.leaf():
            data = struct.pack(form % len(part), *part)
            piece = b"%b%d:" % (mark, n)
            self.ends.append((len(self.pieces) + 1, 0 if whole else PIECES))
            self.pieces += (piece, _short(data))
            self.size += 8 * n
            self.vary(data)
            if not whole:
                self.chunked = True
            elif 8 * n > LONG:
                self.room -= 8 * n
            if cls is int and 8 * n <= LONG:
                self.metas += (key, piece, data)
        return True

    def dictionary(self, items, depth):
        if depth >= MAX_DEPTH:
            self.left = True
            return
        self.pieces.append(b"{")
        for name, value in items:
            piece = _keys.get(name) if type(name) is str else None
            if piece is None:
                piece = _key(name)
                if piece is None:
                    self.left = True
                    continue
            self.pieces.append(piece)
            self.read(value, depth + 1, piece)
        self.pieces.append(b"}")

    def other_class(self, obj, cls, depth):
        """Named tuples, dataclasses, the mappings of tokenizers, and tensors that are plain but in name."""
        fields = _fields_of(cls)
        if fields is None:
            self.left = True
        elif fields == "tuple":
            self.sequence(tuple.__getitem__(obj, slice(None)), depth, b"")
        elif fields == "tensor":
            self.tensor(obj)
        else:
            attributes = objects.attributes_of(obj, cls)
            self.dictionary([(name, attributes[name]) for name in fields if name in attributes], depth)

    def scalar(self, obj, cls, key):
        """Of NumPy's."""
        if id(cls) in _integers:
            self.integer(obj.item(), key)
        elif issubclass(cls, str):
            self.string(str.__str__(obj), b"s", key)
        elif issubclass(cls, bytes):
            self.string(bytes.__getitem__(obj, slice(None)), b"b", key)
        elif obj.dtype.hasobject:
            self.left = True
        else:
            self.single(b"n%b:%b" % (obj.dtype.str.encode(), obj.tobytes()))

    def tensor(self, t):
        if t.layout is not strided or t.device != cpu or (_nested and t.is_nested) or (_negated and t.is_neg()):
            self.left = True
            return
        where = t.dtype, t.shape
        head = _heads.get(where, _UNSEEN)
        if head is _UNSEEN:
            head = _tensor_head(where)
        if head is None or (head[0][:2] == b"tc" and hasattr(base, "is_conj") and t.is_conj()):
            self.left = True
            return
        piece, item, size = head
        at = t.data_ptr()
        if size and at < 1 << 20:  # its storage was taken away: FSDP and the like shrink it to nothing
            self.left = True
        elif t.is_contiguous():
            if size <= SMALL:
                self.small(piece, _string_at(at, size) if size else b"")
            elif self.leaf():
                whole = _view(at, size, _READ)
                self.large(piece, size, b"".join([whole[part] for part in _eighths(size, item)]), whole)
        elif ndarray is None:
            self.left = True
        else:
            strides, shape = tuple(t.stride()), tuple(where[1])
            reach = (sum((n - 1) * s for n, s in zip(shape, strides)) + 1) * item if size else 0
            self.bytes_of(piece, item, size, ndarray(shape, "V%d" % item, _view(at, reach, _READ) if reach else b"", 0,
                                                     tuple(s * item for s in strides)))

    def array(self, a):
        if type(a) is not ndarray:
            a = ndarray.view(a, ndarray)
        where = a.dtype, a.shape
        head = _heads.get(where, _UNSEEN)
        if head is _UNSEEN:
            head = _array_head(where)
        if head is None:
            self.left = True
        else:
            self.bytes_of(head[0], head[1], head[2], a)

    def bytes_of(self, piece, item, size, a):
        """Of an array of NumPy's, in C order."""
        if size <= SMALL:
            self.small(piece, a.tobytes())
        elif not self.leaf():
            pass
        elif a.flags.c_contiguous:
            whole = memoryview(a.reshape(-1).view("u1"))
            self.large(piece, size, b"".join([whole[part] for part in _eighths(size, item)]), whole)
        else:
            flat = a.flat
            self.large(piece, size, b"".join([flat[part].tobytes() for part in _eighths(size // item, 1, item)]),
                       a.tobytes() if size <= self.room and size <= MAX_COPY else None)

    def small(self, piece, data):
        if self.leaf():
            self.ends.append((len(self.pieces) + 1, 0))
            self.pieces += (piece, _short(data))
            self.size += len(data)
            self.vary(data)

    def large(self, piece, size, chunks, whole):
        """chunks: of eight places of it; whole: all of it, or None."""
        self.size += size
        self.vary(chunks)
        if size > self.room or whole is None:
            self.ends.append((len(self.pieces) + 1, PIECES))
            self.pieces += (piece, _short(chunks))
            self.chunked = True
            return
        self.room -= size
        for at in range(0, size, 1 << 20):
            if self.varied:
                break
            self.vary(chunks[:1] + bytes(whole[at:at + (1 << 20)]))
        self.ends.append((len(self.pieces) + 1, 0))
        self.pieces += (piece, _short(whole))

    def vary(self, data):
        self.arrays = True
        if not self.varied and data != data[:1] * len(data):
            self.varied = True


def _eighths(n, item, size=0):
    """Where eight parts of n are, each of as many items as are CHUNK bytes. item: of so many of the n; size: bytes of it, if not as many."""
    found = _places.get((n, item, size))
    if found is None:
        each, items = max(CHUNK // (size or item), 1), n // item
        starts = [i * (items - each) // (CHUNKS - 1) for i in range(CHUNKS)]
        found = [slice(first * item, (first + each) * item) for first in starts]
        if len(_places) < _MAX_HEADS:
            _places[n, item, size] = found
    return found


def _short(data):
    """What is long goes in by its digest: it is also in that of its part, and is hashed once."""
    return data if len(data) <= DIGESTED else blake2b(data, digest_size=16).digest()


def names(obj):
    """What the parts of a sample are called, in their order: the keys and numbers that lead to them."""
    found = []
    _named(obj, "", found, 0)
    return found


def _named(obj, path, found, depth):
    if depth >= MAX_DEPTH or len(found) >= MAX_PARTS:
        return
    cls, inner = type(obj), None
    if cls is tuple or cls is list:
        if len(obj) <= PACKED or (type(obj[0]) is not int and type(obj[0]) is not float and type(obj[0]) is not bool):
            inner = enumerate(obj[:MAX_PARTS])
    elif id(cls) in _DICTS:
        inner = list(dict.items(obj))[:MAX_PARTS]
    elif id(cls) in _classes.kept:
        fields = _classes.kept[id(cls)][1]
        if fields == "tuple":
            inner = enumerate(tuple.__getitem__(obj, slice(MAX_PARTS)))
        elif type(fields) is list:
            attributes = objects.attributes_of(obj, cls)
            inner = [(name, attributes[name]) for name in fields if name in attributes]
    if inner is None:
        found.append(path[1:])
        return
    for name, held in inner:
        text = name[:32] if type(name) is str else str(name) if type(name) is int else "?"
        _named(held, path + "." + text.replace(",", ";"), found, depth + 1)


def rows(batch, n):
    """Of a batch what each of its n samples has become; None: that is not to be seen. The batch holds arrays, lists and
    tuples of as many, and what belongs to all of them."""
    cls, columns = type(batch), [batch]
    if id(cls) in _DICTS:
        columns = list(dict.values(batch))
    elif cls is tuple or cls is list:
        columns = list(batch)
    elif cls is not tensor and cls is not ndarray:
        fields = _fields_of(cls)
        if fields == "tuple":
            columns = list(tuple.__getitem__(batch, slice(None)))
        elif type(fields) is list:
            attributes = objects.attributes_of(batch, cls)
            columns = [attributes[name] for name in fields if name in attributes]
            if len(columns) == 1 and id(type(columns[0])) in _DICTS:  # transformers' BatchEncoding
                columns = list(dict.values(columns[0]))
    if len(columns) > MAX_PARTS and len(columns) != n:
        return None
    found = []
    for held in columns[:MAX_PARTS + 1]:
        kind, of = _column(held, n)
        if kind is None:
            if (cls is list or cls is tuple) and len(batch) == n:  # the samples as they are
                return lambda k: batch[k]
            return None
        if kind:
            found.append(of)
    if not found:
        return (lambda k: batch[k]) if (cls is list or cls is tuple) and len(batch) == n else None
    return lambda k: tuple([of(k) for of in found])


def _column(held, n):
    """(True, what gives a row of it); (False, ...): it is of the whole batch; (None, ...): something else."""
    cls = type(held)
    if cls is tensor:
        if held.layout is not strided or held.device != cpu or (_nested and held.is_nested):
            return None, None
        if not held.shape:
            return False, None
        if held.shape[0] != n:
            return None, None
        plain = held.detach()
        return True, lambda k: plain.select(0, k)
    if cls is ndarray:
        if not held.shape:
            return False, None
        return (True, lambda k: held[k:k + 1]) if held.shape[0] == n else (None, None)
    if cls is list or cls is tuple:
        return (True, lambda k: held[k]) if len(held) == n else (None, None)
    if cls is int or cls is float or cls is str or cls is bool or held is None:
        return False, None
    return None, None


def _spread(values, n):
    """Eight parts of a text or a list."""
    parts = [values[i * (n - CHUNK) // (CHUNKS - 1):i * (n - CHUNK) // (CHUNKS - 1) + CHUNK] for i in range(CHUNKS)]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined + part
    return joined


def _key(name):
    if type(name) is str:
        data = name.encode("utf-8", "surrogatepass")
        piece = b"k%d:%b" % (len(data), data)
        if len(_keys) < _MAX_HEADS and len(data) < 256:
            _keys[name] = piece
        return piece
    return b"K%d;" % name if type(name) is int and name.bit_length() < 64 else None


def _fields_of(cls):
    known = _classes.kept.get(id(cls))
    return _how(cls) if known is None else known[1]


def _how(cls):
    """How an instance of a class is read: "tuple", "tensor", by the names of its attributes, or None: not at all."""
    found = None
    if issubclass(cls, tensor):
        if objects.module(cls).startswith(_TENSORS):
            found = "tensor"
    elif issubclass(cls, tuple):
        if any(type(objects.members(k).get("_fields")) is tuple for k in objects.mro(cls)):
            found = "tuple"
    elif type(objects.members(cls).get("__dataclass_fields__")) is dict:
        found = [name for name in objects.members(cls)["__dataclass_fields__"] if type(name) is str]
    elif objects.qualname(cls) == "BatchEncoding" and objects.module(cls) == "transformers.tokenization_utils_base":
        found = ["data"]
    if len(_classes.kept) < _MAX_HEADS:
        _classes.put(cls, found)
    return found


def _remember(where, head):
    if len(_heads) >= _MAX_HEADS:
        _heads.clear()
    _heads[where] = head
    return head


def _tensor_head(where):
    dtype, shape = where
    if dtype not in _plain:
        return _remember(where, None)
    name, item = _plain[dtype]
    size = item
    for n in shape:
        size *= n
    return _remember(where, (b"t%b,%b:" % (name.encode(), ",".join(map(str, shape)).encode()), item, size))


def _array_head(where):
    dtype, shape = where
    if dtype.kind not in "biufcSUMmV" or dtype.hasobject:
        return _remember(where, None)
    size = dtype.itemsize
    for n in shape:
        size *= n
    name = dtype.str
    if dtype.names is not None:  # not by descr or repr, which are NumPy's own Python
        name += "".join("%s=%s@%d;" % (n, dtype.fields[n][0].str, dtype.fields[n][1]) for n in dtype.names)
    return _remember(where, (b"a%b,%b:" % (name.encode(), ",".join(map(str, shape)).encode()), max(dtype.itemsize, 1), size))
