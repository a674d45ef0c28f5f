/* Places in dictionaries where generators hang: which of them hold another object than they did. */
#include "native.h"

typedef struct {
	PyObject *dict, *key, *object;
} Place;

typedef struct {
	PyObject ob_base;
	Place *places;
	Py_ssize_t n;
} Places;

static int changed(const Place *p)
{
	PyObject *there = PyDict_GetItem(p->dict, p->key);
	return (there ? there : Py_None) != p->object;
}

static int parse(Place *p, PyObject *const *args, Py_ssize_t n)
{
	if (n != 3 || args[0]->ob_type != &PyDict_Type || args[1]->ob_type != &PyUnicode_Type) {
		fails(PyExc_TypeError, "wanted: a dict, a str, what is there");
		return -1;
	}
	*p = (Place){taken(args[0]), taken(args[1]), taken(args[2])};
	return 0;
}

static void forget(Place p)
{
	Py_DecRef(p.dict);
	Py_DecRef(p.key);
	Py_DecRef(p.object);
}

static PyObject *places_add(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Places *self = (Places *)o;
	Place p, *more;

	if (parse(&p, args, n) < 0)
		return NULL;
	more = PyMem_Realloc(self->places, (size_t)(self->n + 1) * sizeof(Place));
	if (!more) {
		forget(p);
		return PyErr_NoMemory();
	}
	self->places = more;
	more[self->n++] = p;
	return PyLong_FromLongLong(self->n - 1);
}

static PyObject *places_set(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Places *self = (Places *)o;
	Place p, before;
	i64 i;

	if (n < 1)
		return fails(PyExc_TypeError, "wanted: the index, and what add() takes");
	i = PyLong_AsLongLong(args[0]);
	if ((i == -1 && PyErr_Occurred()) || parse(&p, args + 1, n - 1) < 0)
		return NULL;
	if (i < 0 || i >= self->n) {
		forget(p);
		return fails(PyExc_IndexError, "no such place");
	}
	before = self->places[i];
	self->places[i] = p;
	forget(before); /* last: it may call anything */
	return taken(Py_None);
}

/* Counts first, so that nothing is made where nothing has changed. */
static PyObject *places_changed(PyObject *o, PyObject *none)
{
	Places *self = (Places *)o;
	Py_ssize_t count = 0, found = 0;
	PyObject *all, *some;

	for (Py_ssize_t i = 0; i < self->n; i++)
		count += changed(&self->places[i]);
	if (!count)
		return taken(Py_None);
	all = PyTuple_New(count); /* the collector may run, and with it anything */
	if (!all)
		return NULL;
	for (Py_ssize_t i = 0; i < self->n && found < count; i++)
		if (changed(&self->places[i])) {
			PyObject *index = PyLong_FromLongLong(i);
			if (!index) {
				Py_DecRef(all);
				return NULL;
			}
			PyTuple_SetItem(all, found++, index);
		}
	if (found == count)
		return all;
	some = PyTuple_GetSlice(all, 0, found);
	Py_DecRef(all);
	return some;
}

static PyObject *places_type;

int is_places(PyObject *o)
{
	return (PyObject *)o->ob_type == places_type;
}

int places_quiet(PyObject *o)
{
	Places *self = (Places *)o;

	for (Py_ssize_t i = 0; i < self->n; i++)
		if (changed(&self->places[i]))
			return 0;
	return 1;
}

static PyObject *places_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	return PyArg_UnpackTuple(args, "Places", 0, 0) ? PyType_GenericAlloc(type, 0) : NULL;
}

static int places_traverse(PyObject *o, visitproc visit, void *arg)
{
	Places *self = (Places *)o;

	for (Py_ssize_t i = 0; i < self->n; i++) {
		VISIT(self->places[i].dict);
		VISIT(self->places[i].object);
	}
	VISIT_TYPE(o);
	return 0;
}

static int places_clear(PyObject *o)
{
	Places *self = (Places *)o;
	Place *places = self->places;
	Py_ssize_t n = self->n;

	self->places = NULL;
	self->n = 0;
	for (Py_ssize_t i = 0; i < n; i++)
		forget(places[i]);
	PyMem_Free(places);
	return 0;
}

static void places_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	places_clear(o);
	gone(o);
}

static PyObject *places_quiet_method(PyObject *o, PyObject *none)
{
	return PyBool_FromLong(places_quiet(o));
}

static PyMethodDef places_methods[] = {
	{"add", places_add, METH_FASTCALL, "add(dict, key, object): its index"},
	{"set", places_set, METH_FASTCALL, "set(index, dict, key, object)"},
	{"quiet", places_quiet_method, METH_NOARGS, "quiet(): whether nothing has changed"},
	{"changed", places_changed, METH_NOARGS, "None, or the indices of those where another object is, or none"},
	{NULL},
};

static PyType_Slot places_slots[] = {
	{Py_tp_new, places_new},	 {Py_tp_dealloc, places_dealloc}, {Py_tp_traverse, places_traverse},
	{Py_tp_clear, places_clear}, {Py_tp_methods, places_methods}, {0},
};

static PyType_Spec places_spec = {"_dptrace_native.Places", sizeof(Places), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, places_slots};

int places_ready(PyObject *module)
{
	places_type = add_type(module, "Places", &places_spec);
	return places_type ? 0 : -1;
}
