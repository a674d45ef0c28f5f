/* A wrapper without a Python frame: between torch and the user's code there is nothing to be seen in a traceback, to be counted by
 * warnings' stacklevel, or to be asked for a signature. What is read of it is read of the original. */
#include "native.h"

typedef struct {
	PyObject ob_base;
	PyObject *original, *before, *after, *failed, *theirs; /* all but the first may be NULL */
	PyObject *weak;
} Around;

static PyObject *around_type, *method_type, *function_type;

/* A call of an object that is no function costs levels of recursion that the call of a function does not. While the original runs
 * it is given them back: one of the object's call, and where C is counted apart (3.12, 3.13) two of the interpreter's loop that runs
 * the original. Not so deep inside each other: what is counted there stands for the C stack, which we do use. */
#define NESTED 1000
static int levels;          /* by Py_LeaveRecursiveCall */
static int nested;          /* calls of ours that are under way */
static int *(*depth)(void); /* in 3.8, which has that as a macro only */

static int *depth38(void)
{
	return (int *)((char *)PyThreadState_Get() + 32); /* PyThreadState.recursion_depth */
}

/* 3.8 remembers that there was a RecursionError until the stack is 50 levels shorter, lets the next call go on, and ends the
 * process 50 levels later. Of one that a callback has met nothing may remain. */
char overflowed(void)
{
	return depth ? *(char *)(depth38() + 1) : 0; /* PyThreadState.overflowed */
}

static void forget_overflow(char before)
{
	if (depth)
		*(char *)(depth38() + 1) = before;
}

/* How many were given back. */
static int leave(void)
{
	int n = nested++ < NESTED || !levels ? levels : 1;

	for (int i = 0; i < n; i++)
		Py_LeaveRecursiveCall();
	if (depth)
		--*depth();
	return n;
}

static void enter(int n)
{
	nested--;
	while (n-- > 0)
		if (Py_EnterRecursiveCall("")) /* the limit was lowered meanwhile: our caller leaves one level more than it should */
			PyErr_Clear();
	if (depth)
		++*depth();
}

typedef struct {
	PyObject *type, *value, *traceback;
} Raised;

/* Takes the exception that is set, as an except clause does. */
static Raised caught(void)
{
	Raised e;
	PyErr_Fetch(&e.type, &e.value, &e.traceback);
	PyErr_NormalizeException(&e.type, &e.value, &e.traceback);
	if (e.traceback)
		PyException_SetTraceback(e.value, e.traceback);
	return e;
}

static void forget(Raised e)
{
	Py_DecRef(e.type);
	Py_DecRef(e.value);
	Py_DecRef(e.traceback);
}

static Raised handle(Raised e)
{
	Raised before;
	PyErr_GetExcInfo(&before.type, &before.value, &before.traceback);
	Py_IncRef(e.type);
	Py_IncRef(e.value);
	Py_IncRef(e.traceback);
	PyErr_SetExcInfo(e.type, e.value, e.traceback);
	return before;
}

static void handled(Raised before)
{
	PyErr_SetExcInfo(before.type, before.value, before.traceback);
}

/* An exception of a callback is set. 1: one is still set, which must reach the program. 0: it was ours and is gone, and what
 * overflowed() said ahead of the callback is so again. */
int reaches(PyObject *theirs, char overflow)
{
	for (int i = 0; i < 2 && theirs; i++) { /* the second time for what theirs() itself has raised */
		Raised e, before;
		PyObject *answer;
		int yes;

		if (!PyErr_ExceptionMatches(PyExc_Exception))
			return 1;
		e = caught();
		before = handle(e);
		answer = PyObject_CallFunctionObjArgs(theirs, e.value, NULL);
		yes = answer ? PyObject_IsTrue(answer) : -1;
		Py_DecRef(answer);
		handled(before);
		if (yes > 0) {
			PyErr_Restore(e.type, e.value, e.traceback);
			return 1;
		}
		forget(e);
		if (yes == 0) {
			forget_overflow(overflow);
			return 0;
		}
	}
	if (!PyErr_ExceptionMatches(PyExc_Exception))
		return 1;
	PyErr_Clear();
	forget_overflow(overflow);
	return 0;
}

/* The original has raised. */
static void around_failed(Around *self, PyObject *token, PyObject *args, PyObject *given)
{
	Raised raised = caught(), before = handle(raised);
	char overflow = overflowed();
	PyObject *answer = PyObject_CallFunctionObjArgs(self->failed, token, raised.value, args, given, NULL);
	int instead = !answer && reaches(self->theirs, overflow);

	Py_DecRef(answer);
	handled(before);
	if (instead)
		forget(raised);
	else
		PyErr_Restore(raised.type, raised.value, raised.traceback);
}

static PyObject *around_call(PyObject *o, PyObject *args, PyObject *kwargs)
{
	Around *self = (Around *)o;
	PyObject *token = NULL, *result, *answer, *given = kwargs && PyDict_Size(kwargs) > 0 ? kwargs : Py_None;
	int tell = 1, n;
	char overflow;

	if (!self->original) /* only that of around_ready */
		return PyLong_FromLongLong(*depth38());
	if (self->before) {
		overflow = overflowed();
		token = PyObject_CallFunctionObjArgs(self->before, args, given, NULL);
		if (!token) {
			if (reaches(self->theirs, overflow))
				return NULL;
			tell = 0;
		}
	}
	n = leave();
	result = PyObject_Call(self->original, args, kwargs);
	if (result) {
		enter(n);
		if (tell && self->after) {
			overflow = overflowed();
			answer = PyObject_CallFunctionObjArgs(self->after, token ? token : Py_None, result, args, given, NULL);
			if (!answer && reaches(self->theirs, overflow))
				drop(&result);
			Py_DecRef(answer);
		}
	} else {
		Raised e;
		PyErr_Fetch(&e.type, &e.value, &e.traceback);
		enter(n);
		PyErr_Restore(e.type, e.value, e.traceback);
		if (tell && self->failed)
			around_failed(self, token ? token : Py_None, args, given);
	}
	Py_DecRef(token);
	return result;
}

static PyObject *around_get(PyObject *o, PyObject *instance, PyObject *owner)
{
	if (!instance || instance == Py_None)
		return taken(o);
	return PyObject_CallFunctionObjArgs(method_type, o, instance, NULL);
}

/* What is asked of us and not of the original. */
static int ours(PyObject *name)
{
	static const char *names[] = {"__call__", "__get__", "__reduce__", "__reduce_ex__", "__eq__", "__ne__", "__hash__"};
	const char *text = PyUnicode_AsUTF8AndSize(name, NULL);

	if (!text)
		PyErr_Clear();
	else if (text[0] == '_' && text[1] == '_')
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (!PyUnicode_CompareWithASCIIString(name, names[i]))
				return 1;
	return 0;
}

static PyObject *around_getattr(PyObject *o, PyObject *name)
{
	return ours(name) ? PyObject_GenericGetAttr(o, name) : PyObject_GetAttr(((Around *)o)->original, name);
}

static int around_setattr(PyObject *o, PyObject *name, PyObject *value)
{
	return PyObject_SetAttr(((Around *)o)->original, name, value);
}

static PyObject *around_repr(PyObject *o)
{
	return PyObject_Repr(((Around *)o)->original);
}

/* A function is pickled and copied by its name; any other callable as it would be without us. */
static PyObject *around_reduce(PyObject *o, PyObject *protocol)
{
	PyObject *original = ((Around *)o)->original;
	PyObject *type = (PyObject *)original->ob_type;

	if (type == function_type || type == around_type)
		return PyObject_GetAttrString(original, "__qualname__");
	return PyObject_CallMethod(original, "__reduce_ex__", "O", protocol);
}

static PyObject *around_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	PyObject *given[5];
	Around *self;

	if (kwargs && PyDict_Size(kwargs))
		return fails(PyExc_TypeError, "Around() takes no keyword arguments");
	if (!PyArg_UnpackTuple(args, "Around", 5, 5, &given[0], &given[1], &given[2], &given[3], &given[4]))
		return NULL;
	self = (Around *)PyType_GenericAlloc(type, 0);
	if (!self)
		return NULL;
	for (int i = 0; i < 5; i++)
		if (i == 0 || given[i] != Py_None)
			(&self->original)[i] = taken(given[i]);
	return (PyObject *)self;
}

static int around_traverse(PyObject *o, visitproc visit, void *arg)
{
	for (int i = 0; i < 5; i++)
		VISIT((&((Around *)o)->original)[i]);
	VISIT_TYPE(o);
	return 0;
}

static int around_clear(PyObject *o)
{
	for (int i = 1; i < 5; i++) /* not the original, which a finalizer may still call; a cycle through it ends elsewhere */
		drop(&(&((Around *)o)->original)[i]);
	return 0;
}

static void around_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	if (((Around *)o)->weak)
		PyObject_ClearWeakRefs(o);
	around_clear(o);
	drop(&((Around *)o)->original);
	gone(o);
}

PyObject *original_of(PyObject *module, PyObject *f)
{
	return taken((PyObject *)f->ob_type == around_type ? ((Around *)f)->original : Py_None);
}

static PyMethodDef around_methods[] = {{"__reduce_ex__", around_reduce, METH_O, NULL}, {NULL}};

static PyMemberDef around_members[] = {{"__weaklistoffset__", T_PYSSIZET, OFFSET(Around, weak), READONLY, NULL}, {NULL}};

static PyType_Slot around_slots[] = {
	{Py_tp_new, around_new},	 {Py_tp_dealloc, around_dealloc}, {Py_tp_traverse, around_traverse}, {Py_tp_clear, around_clear},
	{Py_tp_call, around_call},	 {Py_tp_descr_get, around_get},	  {Py_tp_getattro, around_getattr},  {Py_tp_setattro, around_setattr},
	{Py_tp_repr, around_repr},	 {Py_tp_methods, around_methods}, {Py_tp_members, around_members},	 {0},
};

static PyType_Spec around_spec = {
	"_dptrace_native.Around", sizeof(Around), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR, around_slots};

/* 3.8 knows no __weaklistoffset__ of PyType_FromSpec: into the place of PyTypeObject, if it is where it was in all 3.8.x. */
static int weak_references_38(void)
{
	void **type = (void **)around_type;

	if (type[48 / 8] != around_dealloc || type[184 / 8] != around_traverse || type[192 / 8] != around_clear || type[208 / 8] ||
		type[128 / 8] != around_call) {
		fails(PyExc_ImportError, "a type of another shape than 3.8's");
		return -1;
	}
	type[208 / 8] = (void *)OFFSET(Around, weak);
	return 0;
}

/* Whether the depth of recursion is where we think it is: in a call of ours it is one more than here. */
static int depth_38(void)
{
	int here = *depth38();
	PyObject *probe = PyType_GenericAlloc((PyTypeObject *)around_type, 0), *there;

	if (!probe)
		return -1;
	there = PyObject_CallFunctionObjArgs(probe, NULL);
	Py_DecRef(probe);
	if (!there)
		return -1;
	if (here > 0 && PyLong_AsLongLong(there) == here + 1)
		depth = depth38;
	Py_DecRef(there);
	return 0;
}

int around_ready(PyObject *module)
{
	PyObject *types = PyImport_ImportModule("types");

	if (!types)
		return -1;
	method_type = PyObject_GetAttrString(types, "MethodType");
	function_type = PyObject_GetAttrString(types, "FunctionType");
	Py_DecRef(types);
	if (!method_type || !function_type)
		return -1;
	around_type = add_type(module, "Around", &around_spec);
	if (!around_type)
		return -1;
	if (minor == 8)
		return weak_references_38() < 0 ? -1 : depth_38();
	if (Py_LeaveRecursiveCall && Py_EnterRecursiveCall)
		levels = minor < 12 ? 1 : minor < 14 ? 3 : 0; /* since 3.14 the stack itself is measured */
	return 0;
}
