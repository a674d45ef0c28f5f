/* Methods written in C that are timed without a wrapper: the pointer to the function is replaced in the definition that the method's
 * descriptor refers to. So the descriptor, which is what everybody sees, hands to __torch_function__, keeps in sets and compares
 * with `is`, stays the object that it is, with its type, its signature and no frame. */
#include "native.h"

typedef PyObject *(*Keywords)(PyObject *, PyObject *, PyObject *);

typedef struct { /* PyMethodDescrObject: the same from 3.0 to 3.14, where objects have the header that is checked in method_at() */
	PyObject ob_base;
	PyObject *type, *name, *qualname;
	PyMethodDef *method;
} Descriptor;

typedef struct {
	PyMethodDef *method; /* NULL: free */
	Keywords original;
	int always;
	PyObject *after, *theirs; /* NULL: the original only */
} Timed;

#define MOST 4
static Timed all[MOST];

static PyObject *call(Timed *t, PyObject *self, PyObject *args, PyObject *kwargs)
{
	PyObject *result, *after, *theirs, *numbers, *answer = NULL;
	i64 begin, end;
	char overflow;

	if (!t->after)
		return t->original(self, args, kwargs);
	begin = now();
	result = t->original(self, args, kwargs);
	/* What gives back its own object has done nothing, where it does not always. */
	if (!result || (result == self && !t->always) || !t->after)
		return result;
	end = now();
	after = taken(t->after);
	theirs = t->theirs ? taken(t->theirs) : NULL;
	overflow = overflowed();
	numbers = PyTuple_New(2);
	if (numbers) {
		PyTuple_SetItem(numbers, 0, PyLong_FromLongLong(begin)); /* takes it; NULL is found by who reads it */
		PyTuple_SetItem(numbers, 1, PyLong_FromLongLong(end));
		answer = PyObject_CallFunctionObjArgs(after, self, args, kwargs && PyDict_Size(kwargs) > 0 ? kwargs : Py_None, result, numbers, NULL);
		Py_DecRef(numbers);
	}
	if (!answer && reaches(theirs, overflow))
		drop(&result);
	Py_DecRef(answer);
	Py_DecRef(after);
	Py_DecRef(theirs);
	return result;
}

#define CALL(i) \
	static PyObject *call##i(PyObject *self, PyObject *args, PyObject *kwargs) \
	{ \
		return call(&all[i], self, args, kwargs); \
	}
CALL(0)
CALL(1)
CALL(2)
CALL(3)
static const Keywords calls[MOST] = {call0, call1, call2, call3};

static PyMethodDef *definition(PyObject *o)
{
	static PyObject *descriptors;
	Descriptor *d = (Descriptor *)o;
	PyMethodDef *m;

	if (!descriptors) {
		PyObject *types = PyImport_ImportModule("types");
		descriptors = types ? PyObject_GetAttrString(types, "MethodDescriptorType") : NULL;
		Py_DecRef(types);
		if (!descriptors)
			return NULL;
	}
	if ((PyObject *)o->ob_type != descriptors || !d->name || d->name->ob_type != &PyUnicode_Type)
		return NULL;
	m = d->method;
	if (!m || m->ml_flags != (METH_VARARGS | METH_KEYWORDS) || !m->ml_meth || PyUnicode_CompareWithASCIIString(d->name, m->ml_name))
		return NULL;
	return m;
}

PyObject *method_at(PyObject *module, PyObject *method)
{
	PyMethodDef *m = definition(method);

	if (!m && PyErr_Occurred())
		return NULL;
	return PyLong_FromUnsignedLongLong((u64)m);
}

PyObject *timed(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	PyMethodDef *m;
	Timed *t = NULL;

	if (n != 4)
		return fails(PyExc_TypeError, "wanted: a method, always, after, theirs");
	m = definition(args[0]);
	if (!m)
		return PyErr_Occurred() ? NULL : taken(Py_False);
	for (int i = 0; i < MOST; i++)
		if (all[i].method == m || (!t && !all[i].method))
			t = &all[i];
	if (!t)
		return taken(Py_False);
	t->always = PyObject_IsTrue(args[1]) > 0;
	put_in(&t->theirs, args[3]);
	put_in(&t->after, args[2]);
	if (t->method != m) {
		t->method = m;
		t->original = (Keywords)m->ml_meth;
		m->ml_meth = (void *)calls[t - all];
	}
	return taken(Py_True);
}

PyObject *untimed(PyObject *module, PyObject *none)
{
	for (int i = 0; i < MOST; i++) { /* the definitions stay as they are: who has read the pointer may call it later */
		drop(&all[i].after);
		drop(&all[i].theirs);
	}
	return taken(Py_None);
}
