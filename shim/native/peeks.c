/* Regions of memory that are compared with what they were at the last look: the states of generators. */
#include "native.h"

#define BYTES 64

typedef struct {
	const u8 *at[2];
	const u64 *through; /* NULL, or where the address of the regions' owner is: another one there, and they are not read */
	u64 value;
	u8 n[2];
	u8 form; /* of what is told of it: see tell() */
	u8 told; /* without Python, since it was last asked */
	u32 slot;
	PyObject *keep;
	u8 last[BYTES];
} Peek;

typedef struct {
	PyObject ob_base;
	Peek *peeks;
	Py_ssize_t n;
} Peeks;

static const u8 nothing[1]; /* a region of no bytes may be nowhere */

static int moved(const Peek *p)
{
	return (p->through && *p->through != p->value) || memcmp(p->at[0], p->last, p->n[0]) ||
		   memcmp(p->at[1], p->last + p->n[0], p->n[1]);
}

static void look(Peek *p)
{
	if (p->through && *p->through != p->value)
		return;
	memcpy(p->last, p->at[0], p->n[0]);
	memcpy(p->last + p->n[0], p->at[1], p->n[1]);
}

/* address1, n1, address2, n2, keep, through=0, value=0 */
static int parse(Peek *p, PyObject *const *args, Py_ssize_t n)
{
	u64 number[7] = {0};

	if (n != 5 && n != 7) {
		fails(PyExc_TypeError, "wanted: address1, n1, address2, n2, keep, through=0, value=0");
		return -1;
	}
	for (int i = 0; i < n; i++)
		if (i != 4) {
			number[i] = PyLong_AsUnsignedLongLong(args[i]);
			if (number[i] == ~0ul && PyErr_Occurred())
				return -1;
		}
	if (number[1] > BYTES || number[3] > BYTES || number[1] + number[3] > BYTES) {
		fails(PyExc_ValueError, "more than 64 bytes");
		return -1;
	}
	*p = (Peek){.at = {(u8 *)number[0], (u8 *)number[2]}, .through = (u64 *)number[5], .value = number[6],
				.n = {(u8)number[1], (u8)number[3]}, .keep = taken(args[4])};
	for (int i = 0; i < 2; i++)
		if (!p->n[i])
			p->at[i] = nothing;
	look(p);
	return 0;
}

static PyObject *peeks_add(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Peeks *self = (Peeks *)o;
	Peek *more, p;

	if (parse(&p, args, n) < 0)
		return NULL;
	more = PyMem_Realloc(self->peeks, (size_t)(self->n + 1) * sizeof(Peek));
	if (!more) {
		Py_DecRef(p.keep);
		return PyErr_NoMemory();
	}
	self->peeks = more;
	more[self->n++] = p;
	return PyLong_FromLongLong(self->n - 1);
}

static Peek *peek_at(Peeks *self, PyObject *index)
{
	i64 i = PyLong_AsLongLong(index);

	if (i == -1 && PyErr_Occurred())
		return NULL;
	return i >= 0 && i < self->n ? &self->peeks[i] : fails(PyExc_IndexError, "no such region");
}

static PyObject *peeks_set(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Peek p, *at;
	PyObject *before;

	if (n < 1)
		return fails(PyExc_TypeError, "wanted: the index, and what add() takes");
	if (parse(&p, args + 1, n - 1) < 0)
		return NULL;
	at = peek_at((Peeks *)o, args[0]);
	if (!at) {
		Py_DecRef(p.keep);
		return NULL;
	}
	before = at->keep;
	*at = p;
	Py_DecRef(before); /* last: it may call anything */
	return taken(Py_None);
}

static int bound(PyObject *value, Py_ssize_t n, Py_ssize_t *to)
{
	i64 given = PyLong_AsLongLong(value);

	if (given == -1 && PyErr_Occurred())
		return -1;
	*to = given < 0 ? 0 : given > n ? n : given;
	return 0;
}

/* moved(first=0, stop=all). Counts first, so that nothing is made where nothing has moved. */
static PyObject *peeks_moved(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Peeks *self = (Peeks *)o;
	Py_ssize_t first = 0, stop = self->n, count = 0, found = 0;
	PyObject *all, *some;

	if (n > 2)
		return fails(PyExc_TypeError, "moved(first=0, stop=all)");
	if ((n > 0 && bound(args[0], self->n, &first) < 0) || (n > 1 && bound(args[1], self->n, &stop) < 0))
		return NULL;
	for (Py_ssize_t i = first; i < stop; i++)
		count += moved(&self->peeks[i]);
	if (!count)
		return taken(Py_None);
	all = PyTuple_New(count); /* the collector may run, and with it anything: regions may be set, more may have moved */
	if (!all)
		return NULL;
	for (Py_ssize_t i = first; i < stop && i < self->n && found < count; i++) {
		if (!moved(&self->peeks[i]))
			continue;
		PyObject *index = PyLong_FromLongLong(i);
		if (!index) {
			Py_DecRef(all);
			return NULL;
		}
		look(&self->peeks[i]);
		PyTuple_SetItem(all, found++, index);
	}
	if (found == count)
		return all;
	some = PyTuple_GetSlice(all, 0, found);
	Py_DecRef(all);
	return some;
}

static PyObject *peeks_last(PyObject *o, PyObject *index)
{
	Peek *p = peek_at((Peeks *)o, index);

	return p ? PyBytes_FromStringAndSize((char *)p->last, p->n[0] + p->n[1]) : NULL;
}

static PyObject *peeks_type;

int is_peeks(PyObject *o)
{
	return (PyObject *)o->ob_type == peeks_type;
}

/* tell(index, slot, form): how a record says what it has moved to, as long as it is not set anew. */
enum { UNTOLD, MERSENNE, TORCH, WORDS };

static PyObject *peeks_tell(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Peek *p = n == 3 ? peek_at((Peeks *)o, args[0]) : fails(PyExc_TypeError, "tell(index, slot, form)");
	i64 slot, form;

	if (!p)
		return NULL;
	slot = PyLong_AsLongLong(args[1]);
	form = PyLong_AsLongLong(args[2]);
	if ((slot == -1 || form == -1) && PyErr_Occurred())
		return NULL;
	if (slot < 0 || slot >> 32 || form < UNTOLD || form > WORDS || (form == MERSENNE && p->n[0] + p->n[1] != 20) ||
		(form == TORCH && p->n[0] + p->n[1] != 28))
		return fails(PyExc_ValueError, "no such form");
	p->slot = (u32)slot;
	p->form = (u8)form;
	return taken(Py_None);
}

static PyObject *peeks_told(PyObject *o, PyObject *index)
{
	Peek *p = peek_at((Peeks *)o, index);
	u8 told;

	if (!p)
		return NULL;
	told = p->told;
	p->told = 0;
	return PyBool_FromLong(told);
}

/* Whether all that have moved can be told without Python. */
int peeks_can_tell(PyObject *o)
{
	Peeks *self = (Peeks *)o;

	for (Py_ssize_t i = 0; i < self->n; i++) {
		Peek *p = &self->peeks[i];
		if (moved(p) && (p->form == UNTOLD || (p->through && *p->through != p->value)))
			return 0;
	}
	return 1;
}

/* Writes them, by values of layouts.STATE_FIELDS of which the slot, the length of the place and the position are filled in here.
 * Returns for how many there was no room. */
int peeks_write(PyObject *o, PyObject *record, i64 *values)
{
	Peeks *self = (Peeks *)o;
	int lost = 0;

	for (Py_ssize_t i = 0; i < self->n; i++) {
		Peek *p = &self->peeks[i];
		int left, position;

		if (!moved(p))
			continue;
		look(p);
		p->told = 1;
		__builtin_memcpy(&left, p->last + 16, 4);
		__builtin_memcpy(&position, p->last + 24, 4);
		values[0] = p->slot;
		values[6] = p->form == WORDS ? 0 : 16;
		values[7] = p->form == WORDS ? 0 : p->form == MERSENNE ? left : left == 1 ? 624 : (i64)(u32)position;
		lost += !put_values(record, 0, values, p->last, p->form == WORDS ? p->n[0] + p->n[1] : 16u);
	}
	return lost;
}

int peeks_quiet(PyObject *o)
{
	Peeks *self = (Peeks *)o;

	for (Py_ssize_t i = 0; i < self->n; i++)
		if (moved(&self->peeks[i]))
			return 0;
	return 1;
}

static PyObject *peeks_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	if (!PyArg_UnpackTuple(args, "Peeks", 0, 0))
		return NULL;
	return PyType_GenericAlloc(type, 0);
}

static int peeks_traverse(PyObject *o, visitproc visit, void *arg)
{
	Peeks *self = (Peeks *)o;

	for (Py_ssize_t i = 0; i < self->n; i++)
		VISIT(self->peeks[i].keep);
	VISIT_TYPE(o);
	return 0;
}

static int peeks_clear(PyObject *o)
{
	Peeks *self = (Peeks *)o;
	Peek *peeks = self->peeks;
	Py_ssize_t n = self->n;

	self->peeks = NULL;
	self->n = 0;
	for (Py_ssize_t i = 0; i < n; i++)
		Py_DecRef(peeks[i].keep);
	PyMem_Free(peeks);
	return 0;
}

static void peeks_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	peeks_clear(o);
	gone(o);
}

static PyObject *peeks_quiet_method(PyObject *o, PyObject *none)
{
	return PyBool_FromLong(peeks_quiet(o));
}

static PyMethodDef peeks_methods[] = {
	{"add", peeks_add, METH_FASTCALL, "add(address1, n1, address2, n2, keep, through=0, value=0): its index"},
	{"set", peeks_set, METH_FASTCALL, "set(index, address1, n1, address2, n2, keep, through=0, value=0)"},
	{"tell", peeks_tell, METH_FASTCALL, "tell(index, slot, form): how a record says where it has moved to"},
	{"told", peeks_told, METH_O, "told(index): whether it was, since this was last asked"},
	{"quiet", peeks_quiet_method, METH_NOARGS, "quiet(): whether nothing has moved"},
	{"moved", peeks_moved, METH_FASTCALL, "moved(first=0, stop=all): None, or the indices of those whose bytes are others"},
	{"last", peeks_last, METH_O, "last(index): its bytes at the last look"},
	{NULL},
};

static PyType_Slot peeks_slots[] = {
	{Py_tp_new, peeks_new},		{Py_tp_dealloc, peeks_dealloc}, {Py_tp_traverse, peeks_traverse},
	{Py_tp_clear, peeks_clear}, {Py_tp_methods, peeks_methods}, {0},
};

static PyType_Spec peeks_spec = {"_dptrace_native.Peeks", sizeof(Peeks), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, peeks_slots};

int peeks_ready(PyObject *module)
{
	peeks_type = add_type(module, "Peeks", &peeks_spec);
	return peeks_type ? 0 : -1;
}
