/* Records into a ring in shared memory, as PROTOCOL.md says. */
#include "native.h"

#define PAD 0
#define FIELDS 31     /* at most, of a record */
#define INTEGERS 4096 /* at most, of a list in a record */

typedef struct {
	PyObject ob_base;
	u8 *ring; /* NULL: closed */
	u64 *head_word, *tail_word;
	u64 capacity, head, tail, number;
	u64 bell; /* set by Python: the head beyond which the recorder is to be woken */
	Py_buffer buffer;
} Sink;

typedef struct { /* layouts.RECORD_FIELDS */
	u32 length;
	u16 type, pad;
	u64 t_ns;
	u32 thread, number;
} Header;
_Static_assert(sizeof(Header) == 24, "no gaps");

static PyObject *sink_type, *record_type;

static int room(const Sink *s, u64 tail, u64 n)
{
	return tail <= s->head && s->head + n - tail <= s->capacity; /* a tail in front of the head is no recorder's */
}

/* Between reserve() and commit() nothing calls Python: see native.h. */
typedef struct {
	u8 *to;
	u64 need, whole, skip, tail;
} Place;

/* Finds room for n bytes after a record's head, and changes nothing. */
static int reserve(const Sink *s, u64 n, Place *p)
{
	u64 at;

	p->need = sizeof(Header) + n;
	p->whole = (p->need + 7) & ~7ul;
	p->tail = s->tail;
	if (!s->ring || p->whole > s->capacity)
		return 0;
	at = s->head % s->capacity;
	p->skip = at + p->whole > s->capacity ? s->capacity - at : 0;
	if (!room(s, p->tail, p->skip + p->whole)) {
		p->tail = __atomic_load_n(s->tail_word, __ATOMIC_ACQUIRE);
		if (!room(s, p->tail, p->skip + p->whole))
			return 0;
	}
	p->to = s->ring + (p->skip ? 0 : at) + sizeof(Header);
	return 1;
}

static void commit(Sink *s, const Place *p, u16 kind, u64 t)
{
	if (p->skip)
		*(u64 *)(s->ring + s->head % s->capacity) = (u32)p->skip | (u64)PAD << 32;
	*(Header *)(p->to - sizeof(Header)) = (Header){(u32)p->whole, kind, (u16)(p->whole - p->need), t ? t : clock_ns(CLOCK_MONOTONIC),
												   (u32)PyThread_get_thread_ident(), (u32)s->number};
	s->number++;
	s->tail = p->tail;
	s->head += p->skip + p->whole;
	__atomic_store_n(s->head_word, s->head, __ATOMIC_RELEASE); /* last: only now it exists */
}

static int sink_write(Sink *s, u16 kind, u64 t, const void *a, u64 na, const void *b, u64 nb)
{
	Place p;

	if (!reserve(s, na + nb, &p)) {
		s->tail = p.tail;
		return 0;
	}
	memcpy(p.to, a, na);
	if (nb)
		memcpy(p.to + na, b, nb);
	commit(s, &p, kind, t);
	return 1;
}

static int integer(PyObject *value, int is_signed, int bytes, u64 *to)
{
	PyObject *index = NULL;

	if (!is_a(value, Py_TPFLAGS_LONG_SUBCLASS)) {
		if (!PyIndex_Check(value)) {
			fails(struct_error, "required argument is not an integer");
			return -1;
		}
		value = index = PyNumber_Index(value);
		if (!value)
			return -1;
	}
	*to = is_signed ? (u64)PyLong_AsLongLong(value) : PyLong_AsUnsignedLongLong(value);
	Py_DecRef(index);
	if (*to == ~0ul && PyErr_Occurred()) {
		PyErr_Clear();
		goto range;
	}
	if (bytes < 8 && (is_signed ? (u64)((i64)*to + (1l << (8 * bytes - 1))) : *to) >> 8 * bytes)
		goto range;
	return 0;
range:
	fails(struct_error, "argument out of range");
	return -1;
}

/* Bytes, or what else has a buffer; then release() is to be called. */
static int bytes_of(PyObject *o, Py_buffer *b)
{
	if (is_a(o, Py_TPFLAGS_BYTES_SUBCLASS)) {
		b->obj = NULL;
		b->buf = PyBytes_AsString(o);
		b->len = PyBytes_Size(o);
		return 0;
	}
	return PyObject_GetBuffer(o, b, PyBUF_SIMPLE);
}

static void release(Py_buffer *b)
{
	if (b->obj)
		PyBuffer_Release(b);
}

static PyObject *sink_put(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	u64 kind, t = 0;
	Py_buffer payload;
	int put;

	if (n < 2 || n > 3)
		return fails(PyExc_TypeError, "put(kind, payload, t=0)");
	if (integer(args[0], 0, 2, &kind) < 0 || (n > 2 && integer(args[2], 0, 8, &t) < 0) || bytes_of(args[1], &payload) < 0)
		return NULL;
	put = sink_write((Sink *)o, (u16)kind, t, payload.buf, (u64)payload.len, NULL, 0);
	release(&payload);
	return PyBool_FromLong(put);
}

static int sink_clear(PyObject *o)
{
	Sink *s = (Sink *)o;

	s->ring = NULL;
	release(&s->buffer);
	return 0;
}

static PyObject *sink_close(PyObject *o, PyObject *none)
{
	sink_clear(o);
	return taken(Py_None);
}

/* The buffer of an object that is held by its Py_buffer. Of a memoryview it is what lies under it that is held: collected as
 * garbage with an export of its own, a memoryview ends the process before 3.11.8, 3.12.2 and 3.13 (gh-77894). */
static int hold(Sink *s, PyObject *o, Py_buffer *b)
{
	PyObject *under;
	int held;

	if (PyObject_GetBuffer(o, b, PyBUF_WRITABLE) < 0)
		return -1;
	if (o->ob_type != &PyMemoryView_Type) {
		s->buffer = *b;
		return 0;
	}
	PyBuffer_Release(b); /* its memory is that of what lies under it */
	under = PyObject_GetAttrString(o, "obj");
	if (!under)
		return -1;
	held = PyObject_GetBuffer(under, &s->buffer, PyBUF_WRITABLE);
	if (held < 0)
		s->buffer.obj = NULL;
	Py_DecRef(under);
	return held;
}

/* Sink(buffer, capacity, after, head_word, tail_word) */
static PyObject *sink_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *given[5];
	u64 number[5], words;
	Py_buffer b;
	Sink *s;

	if (kwargs && PyDict_Size(kwargs))
		return fails(PyExc_TypeError, "Sink() takes no keyword arguments");
	if (!PyArg_UnpackTuple(args, "Sink", 5, 5, &given[0], &given[1], &given[2], &given[3], &given[4]))
		return NULL;
	for (int i = 1; i < 5; i++)
		if (integer(given[i], 0, 4, &number[i]) < 0)
			return NULL;
	s = (Sink *)PyType_GenericAlloc(type, 0);
	if (!s)
		return NULL;
	if (hold(s, given[0], &b) < 0) {
		Py_DecRef((PyObject *)s);
		return NULL;
	}
	s->capacity = number[1];
	words = number[2] / 8;
	if (!s->capacity || s->capacity % 8 || number[2] % 8 || (u64)b.len < number[2] + s->capacity || number[3] >= words || number[4] >= words ||
		(u64)b.buf % 8) {
		Py_DecRef((PyObject *)s);
		return fails(PyExc_ValueError, "not the shape of a ring");
	}
	s->ring = (u8 *)b.buf + number[2];
	s->head_word = (u64 *)b.buf + number[3];
	s->tail_word = (u64 *)b.buf + number[4];
	return (PyObject *)s;
}

static int sink_traverse(PyObject *o, visitproc visit, void *arg)
{
	VISIT(((Sink *)o)->buffer.obj);
	VISIT_TYPE(o);
	return 0;
}

static void sink_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	sink_clear(o);
	gone(o);
}

static PyMethodDef sink_methods[] = {
	{"put", sink_put, METH_FASTCALL, "put(kind, payload, t=0): False if there is no room"},
	{"close", sink_close, METH_NOARGS, "lets go of the buffer; nothing can be put any more"},
	{NULL},
};

static PyMemberDef sink_members[] = {
	{"head", T_ULONGLONG, OFFSET(Sink, head), READONLY, NULL},
	{"tail", T_ULONGLONG, OFFSET(Sink, tail), READONLY, NULL},
	{"number", T_ULONGLONG, OFFSET(Sink, number), READONLY, NULL},
	{"bell", T_ULONGLONG, OFFSET(Sink, bell), 0, NULL},
	{"capacity", T_ULONGLONG, OFFSET(Sink, capacity), READONLY, NULL},
	{NULL},
};

static PyType_Slot sink_slots[] = {
	{Py_tp_new, sink_new},		   {Py_tp_dealloc, sink_dealloc}, {Py_tp_traverse, sink_traverse}, {Py_tp_clear, sink_clear},
	{Py_tp_methods, sink_methods}, {Py_tp_members, sink_members}, {0},
};

static PyType_Spec sink_spec = {"_dptrace_native.Sink", sizeof(Sink), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, sink_slots};

/* What a function that Record() has made knows: its self. */
typedef struct {
	PyObject ob_base;
	PyObject *sink;
	u16 kind;
	u8 n, bytes;
	u8 size[FIELDS], is_signed[FIELDS];
} Record;

/* Packs n values by the format. */
static int packed(const Record *r, PyObject *const *values, u8 *at)
{
	u64 value;

	for (int i = 0; i < r->n; at += r->size[i++]) {
		if (integer(values[i], r->is_signed[i], r->size[i], &value) < 0)
			return -1;
		switch (r->size[i]) {
		case 1: *at = (u8)value; break;
		case 2: __builtin_memcpy(at, &value, 2); break;
		case 4: __builtin_memcpy(at, &value, 4); break;
		default: __builtin_memcpy(at, &value, 8);
		}
	}
	return 0;
}

static PyObject *record_call(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Record *r = (Record *)o;
	u8 values[8 * FIELDS];
	u64 t;
	Py_buffer tail = {.len = 0};
	int put;

	if (n != r->n + 1 && n != r->n + 2)
		return fails(struct_error, "another number of values than the format has");
	if (integer(args[0], 0, 8, &t) < 0 || packed(r, args + 1, values) < 0 || (n == r->n + 2 && bytes_of(args[n - 1], &tail) < 0))
		return NULL;
	put = r->sink && sink_write((Sink *)r->sink, r->kind, t, values, r->bytes, tail.buf, (u64)tail.len);
	release(&tail);
	return PyBool_FromLong(put);
}

/* How many integers o has, a list or a tuple; -1: it is neither, or they are too many. */
static Py_ssize_t length(PyObject *o)
{
	Py_ssize_t n = o->ob_type == &PyList_Type ? PyList_Size(o) : o->ob_type == &PyTuple_Type ? PyTuple_Size(o) : -1;
	return n > INTEGERS ? -1 : n;
}

/* Item i of a list or a tuple; 0: it is no integer of 64 bits. */
static int item(PyObject *o, Py_ssize_t i, i64 *value)
{
	PyObject *each = o->ob_type == &PyList_Type ? PyList_GetItem(o, i) : PyTuple_GetItem(o, i);

	if (each->ob_type != &PyLong_Type)
		return 0;
	*value = PyLong_AsLongLong(each);
	if (*value != -1 || !PyErr_Occurred())
		return 1;
	PyErr_Clear();
	return 0;
}

/* Writes what o has of integers, to NULL nothing; 0: there is something else, or one of more than 64 bits. */
static int write_integers(PyObject *o, Py_ssize_t n, u8 *to)
{
	i64 value;

	for (Py_ssize_t i = 0; i < n; i++) {
		if (!item(o, i, &value))
			return 0;
		if (to)
			__builtin_memcpy(to + 8 * i, &value, 8);
	}
	return 1;
}

static PyObject *integers_call(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Record *r = (Record *)o;
	Sink *s = (Sink *)r->sink;
	Py_ssize_t many[2] = {0, 0};
	u8 values[8 * FIELDS];
	u64 t;
	Place p;
	int put;

	if (n != r->n + 2 && n != r->n + 3)
		return fails(struct_error, "another number of values than the format has");
	for (Py_ssize_t i = r->n + 1; i < n; i++) {
		many[i - r->n - 1] = length(args[i]);
		if (many[i - r->n - 1] < 0)
			return taken(Py_None);
	}
	if (integer(args[0], 0, 8, &t) < 0 || packed(r, args + 1, values) < 0)
		return NULL;
	put = s && reserve(s, r->bytes + 8 * (u64)(many[0] + many[1]), &p);
	if (!write_integers(args[r->n + 1], many[0], put ? p.to + r->bytes : NULL) ||
		(many[1] && !write_integers(args[r->n + 2], many[1], put ? p.to + r->bytes + 8 * many[0] : NULL)))
		return taken(Py_None);
	if (put) {
		memcpy(p.to, values, r->bytes);
		commit(s, &p, r->kind, t);
	} else if (s) {
		s->tail = p.tail;
	}
	return PyBool_FromLong(put);
}

/* A record of a function that is_record(), of values that are known to fit, and a tail. */
int put_values(PyObject *function, u64 t, const i64 *values, const void *tail, u64 n)
{
	Record *r = (Record *)PyCFunction_GetSelf(function);
	u8 bytes[8 * FIELDS], *at = bytes;

	for (int i = 0; i < r->n; at += r->size[i++])
		memcpy(at, &values[i], r->size[i]);
	return r->sink && sink_write((Sink *)r->sink, r->kind, t, bytes, r->bytes, tail, n);
}

int is_record(PyObject *function, int n)
{
	return function->ob_type == &PyCFunction_Type && PyCFunction_GetFunction(function) == (PyCFunction)record_call &&
		   ((Record *)PyCFunction_GetSelf(function))->n == n;
}

int is_integers(PyObject *function, int n)
{
	return function->ob_type == &PyCFunction_Type && PyCFunction_GetFunction(function) == (PyCFunction)integers_call &&
		   ((Record *)PyCFunction_GetSelf(function))->n == n;
}

/* A record of a function that is_integers(), of values that are known to fit, the last of which becomes the length of the list that
 * follows them; an integer is a list of one. 0: no room; -1: they are no integers, or none. */
int put_integers(PyObject *function, u64 t, i64 *values, PyObject *integers)
{
	Record *r = (Record *)PyCFunction_GetSelf(function);
	Sink *s = (Sink *)r->sink;
	int one = integers->ob_type == &PyLong_Type;
	Py_ssize_t n = one ? 1 : length(integers);
	i64 single = 0;
	u8 *to;
	Place p;
	int put;

	if (n <= 0)
		return -1;
	if (one) {
		single = PyLong_AsLongLong(integers);
		if (single == -1 && PyErr_Occurred()) {
			PyErr_Clear();
			return -1;
		}
	}
	values[r->n - 1] = n;
	put = s && reserve(s, r->bytes + 8 * (u64)n, &p);
	if (!one && !write_integers(integers, n, put ? p.to + r->bytes : NULL))
		return -1;
	if (!put) {
		if (s)
			s->tail = p.tail;
		return 0;
	}
	to = p.to;
	for (int i = 0; i < r->n; to += r->size[i++])
		memcpy(to, &values[i], r->size[i]);
	if (one)
		memcpy(to, &single, 8);
	commit(s, &p, r->kind, t);
	return 1;
}

/* Whether a Sink's bell is to be rung. */
int sink_rings(PyObject *o)
{
	return (PyObject *)o->ob_type == sink_type && ((Sink *)o)->head > ((Sink *)o)->bell;
}

/* Whether one of a list's integers has no bit of mask; -1: they are no integers of 64 bits in a list or a tuple. */
int is_multiple(PyObject *integers, i64 mask)
{
	Py_ssize_t n = length(integers);
	i64 value;
	int found = 0;

	for (Py_ssize_t i = 0; i < n; i++) {
		if (!item(integers, i, &value))
			return -1;
		found |= !(value & mask);
	}
	return n < 0 ? -1 : found;
}

PyObject *multiple(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	u64 mask;
	int found;

	if (n != 2)
		return fails(PyExc_TypeError, "multiple(integers, mask)");
	if (integer(args[1], 1, 8, &mask) < 0)
		return NULL;
	found = is_multiple(args[0], (i64)mask);
	return found < 0 ? taken(Py_None) : PyBool_FromLong(found);
}

static PyMethodDef record_function = {"record", record_call, METH_FASTCALL, "record(t, *values) or record(t, *values, tail)"};
static PyMethodDef integers_function = {"record", integers_call, METH_FASTCALL, "record(t, *values, integers) or (…, integers, more)"};

static int record_format(Record *r, const char *format)
{
	static const char codes[] = "BHIQhiq", sizes[] = {1, 2, 4, 8, 2, 4, 8};

	for (; *format; format++) {
		int i = 0;
		if (*format == ' ')
			continue;
		while (codes[i] && codes[i] != *format)
			i++;
		if (!codes[i] || r->n == FIELDS) {
			fails(struct_error, "bad char in struct format");
			return -1;
		}
		r->size[r->n] = (u8)sizes[i];
		r->is_signed[r->n++] = i > 3;
		r->bytes += sizes[i]; /* 248 at most */
	}
	return 0;
}

static PyObject *make(PyMethodDef *which, PyObject *const *args, Py_ssize_t n)
{
	Record *r;
	const char *format;
	u64 kind;
	PyObject *function = NULL;

	if (n != 3 || (PyObject *)args[0]->ob_type != sink_type)
		return fails(PyExc_TypeError, "Record(sink, kind, format)");
	format = PyUnicode_AsUTF8AndSize(args[2], NULL);
	if (!format || integer(args[1], 0, 2, &kind) < 0)
		return NULL;
	r = (Record *)PyType_GenericAlloc((PyTypeObject *)record_type, 0);
	if (!r)
		return NULL;
	r->sink = taken(args[0]);
	r->kind = (u16)kind;
	if (record_format(r, format) == 0)
		function = PyCFunction_NewEx(which, (PyObject *)r, NULL);
	Py_DecRef((PyObject *)r);
	return function;
}

PyObject *make_record(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	return make(&record_function, args, n);
}

PyObject *make_integers(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	return make(&integers_function, args, n);
}

static int record_traverse(PyObject *o, visitproc visit, void *arg)
{
	VISIT(((Record *)o)->sink);
	VISIT_TYPE(o);
	return 0;
}

static int record_clear(PyObject *o)
{
	drop(&((Record *)o)->sink);
	return 0;
}

static void record_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	record_clear(o);
	gone(o);
}

static PyType_Slot record_slots[] = {
	{Py_tp_dealloc, record_dealloc}, {Py_tp_traverse, record_traverse}, {Py_tp_clear, record_clear}, {0}};

static PyType_Spec record_spec = {"_dptrace_native.Format", sizeof(Record), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, record_slots};

int sink_ready(PyObject *module)
{
	sink_type = add_type(module, "Sink", &sink_spec);
	record_type = PyType_FromSpec(&record_spec);
	return sink_type && record_type ? 0 : -1;
}
