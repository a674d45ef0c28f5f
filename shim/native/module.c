#include "native.h"

int minor;
PyObject *struct_error;

PyObject *add_type(PyObject *module, const char *name, PyType_Spec *spec)
{
	PyObject *type = PyType_FromSpec(spec);
	if (!type)
		return NULL;
	Py_IncRef(type);
	if (PyModule_AddObject(module, name, type) < 0) {
		Py_DecRef(type);
		Py_DecRef(type);
		return NULL;
	}
	return type;
}

static PyObject *monotonic(PyObject *module, PyObject *none)
{
	return PyLong_FromUnsignedLongLong(clock_ns(CLOCK_MONOTONIC));
}

static PyObject *cpu(PyObject *module, PyObject *none)
{
	return PyLong_FromUnsignedLongLong(clock_ns(CLOCK_THREAD_CPUTIME_ID));
}

/* For who walks this thread's frames from outside, as bpf/python.h does. */
static PyObject *thread_state(PyObject *module, PyObject *none)
{
	return PyLong_FromUnsignedLongLong((u64)PyThreadState_Get());
}

static int exec(PyObject *module)
{
	static int used;
	const char *version = Py_GetVersion(); /* 3.11.2 (main, … */
	PyObject *library;

	if (used) { /* what is static here would be shared by two interpreters */
		fails(PyExc_ImportError, "loaded before in this process");
		return -1;
	}
	for (version += 2; *version >= '0' && *version <= '9'; version++)
		minor = 10 * minor + (*version - '0');
	library = PyImport_ImportModule("struct");
	if (!library)
		return -1;
	struct_error = PyObject_GetAttrString(library, "error");
	Py_DecRef(library);
	if (!struct_error || around_ready(module) < 0 || sink_ready(module) < 0 || peeks_ready(module) < 0 || places_ready(module) < 0 ||
		serving_ready(module) < 0 || referents_ready(module) < 0 || delivering_ready(module) < 0)
		return -1;
	used = 1;
	return 0;
}

static PyMethodDef functions[] = {
	{"now", monotonic, METH_NOARGS, "CLOCK_MONOTONIC in ns"},
	{"cpu", cpu, METH_NOARGS, "CPU time of this thread in ns"},
	{"thread_state", thread_state, METH_NOARGS, "address of this thread's PyThreadState"},
	{"original_of", original_of, METH_O, "what an Around wraps; None for anything else"},
	{"Record", make_record, METH_FASTCALL, "Record(sink, kind, format): a function that packs and puts records"},
	{"Integers", make_integers, METH_FASTCALL, "Integers(sink, kind, format): the same, with lists of integers behind the values"},
	{"multiple", multiple, METH_FASTCALL, "multiple(integers, mask): whether one has no bit of mask; None: they are no integers"},
	{"entering", make_entering, METH_O, "entering(python): before() of a fetch"},
	{"leaving", make_leaving, METH_O, "leaving(python): after() of a fetch"},
	{"picked", picked, METH_FASTCALL, "picked(objects, always, untracked): those of some types"},
	{"referents", referents, METH_FASTCALL, "referents(objects, always, untracked): of what they refer to those of some types"},
	{"method_at", method_at, METH_O, "where the definition of a method written in C lies; 0: it is another thing"},
	{"timed", timed, METH_FASTCALL, "timed(method, always, after, theirs): has after() called behind a method written in C"},
	{"untimed", untimed, METH_NOARGS, "ends that for all methods"},
	{"indexed", indexed, METH_FASTCALL, "after() of an iterator's _next_index"},
	{"placing", make_placing, METH_O, "placing(python): before() of its _try_put_index"},
	{"placed", make_placed, METH_O, "placed(python): after() of it"},
	{"arriving", make_arriving, METH_O, "arriving(python): after() of its _try_get_data"},
	{"calling", make_calling, METH_O, "calling(python): before() of its _next_data"},
	{"handing", make_handing, METH_O, "handing(python): after() of it"},
	{NULL},
};

static PyModuleDef_Slot slots[] = {{Py_mod_exec, exec}, {0}};

static PyModuleDef definition = {
	.ob_base = {.ob_refcnt = 1},
	.m_name = "_dptrace_native",
	.m_methods = functions,
	.m_slots = slots,
};

EXPORT PyObject *PyInit__dptrace_native(void)
{
	return PyModuleDef_Init(&definition);
}
