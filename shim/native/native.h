/* The parts of the helper, and what they share. What each does is said by its Python twin, dptrace_hook/patch/twin.py: same names,
 * same behaviour, and the twin is right where they differ.
 *
 * All runs under the GIL, which is what keeps a record whole: between the first and the last store of one nothing here calls
 * Python, so neither another thread nor a signal handler nor the garbage collector comes in between. */
#ifndef NATIVE_H
#define NATIVE_H

#include "abi3.h"

extern int minor;              /* of Python 3 */
extern PyObject *struct_error; /* struct.error */

int around_ready(PyObject *module);
int sink_ready(PyObject *module);
int peeks_ready(PyObject *module);
int places_ready(PyObject *module);
int serving_ready(PyObject *module);
int referents_ready(PyObject *module);
int delivering_ready(PyObject *module);

char overflowed(void);
int reaches(PyObject *theirs, char overflow);
int is_record(PyObject *function, int n);
int put_values(PyObject *function, u64 t, const i64 *values, const void *tail, u64 n);
int is_integers(PyObject *function, int n);
int put_integers(PyObject *function, u64 t, i64 *values, PyObject *integers);
int sink_rings(PyObject *o);
int is_multiple(PyObject *integers, i64 mask);
/* Of objects of these types, or none; whether nothing has moved or changed. */
int is_peeks(PyObject *o);
int is_places(PyObject *o);
int peeks_quiet(PyObject *o);
int peeks_can_tell(PyObject *o);
int peeks_write(PyObject *o, PyObject *record, i64 *values);
int places_quiet(PyObject *o);
PyObject *original_of(PyObject *module, PyObject *f);
PyObject *make_record(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *multiple(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *make_entering(PyObject *module, PyObject *python);
PyObject *make_leaving(PyObject *module, PyObject *python);
PyObject *make_integers(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *picked(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *referents(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *indexed(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *method_at(PyObject *module, PyObject *method);
PyObject *timed(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *untimed(PyObject *module, PyObject *none);
PyObject *make_placing(PyObject *module, PyObject *python);
PyObject *make_placed(PyObject *module, PyObject *python);
PyObject *make_arriving(PyObject *module, PyObject *python);
PyObject *make_calling(PyObject *module, PyObject *python);
PyObject *make_handing(PyObject *module, PyObject *python);

static inline u64 clock_ns(int which)
{
	struct timespec t;
	clock_gettime(which, &t);
	return (u64)t.tv_sec * 1000000000ul + (u64)t.tv_nsec;
}

static inline PyObject *taken(PyObject *o)
{
	Py_IncRef(o);
	return o;
}

static inline void drop(PyObject **at)
{
	PyObject *o = *at;
	*at = NULL;
	Py_DecRef(o); /* NULL is let through */
}

static inline void *fails(PyObject *exception, const char *text)
{
	PyErr_SetString(exception, text);
	return NULL;
}

static inline int is_a(PyObject *o, unsigned long flag)
{
	return (PyType_GetFlags(o->ob_type) & flag) != 0;
}

static inline int is_of(PyObject *o, PyObject *type)
{
	return o && ((PyObject *)o->ob_type == type || PyType_IsSubtype(o->ob_type, (PyTypeObject *)type));
}

static inline int some(PyObject *o)
{
	return o && o != Py_None;
}

static inline void put_in(PyObject **at, PyObject *o)
{
	PyObject *before = *at;
	Py_IncRef(o);
	*at = o;
	Py_DecRef(before);
}

static inline i64 now(void)
{
	return (i64)clock_ns(CLOCK_MONOTONIC);
}

#define SURELY 20000 /* ns */

/* What a call of ours took since t. What took longer than SURELY was not the processor's: the thread had to wait for it. */
static inline i64 surely(i64 t)
{
	i64 ns = now() - t;
	return ns < SURELY ? ns : SURELY;
}

/* Makes a type and puts it into the module. The reference that is returned is the caller's to keep: there is one module. */
PyObject *add_type(PyObject *module, const char *name, PyType_Spec *spec);

/* The end of a deallocation. */
static inline void gone(PyObject *o)
{
	PyObject *type = (PyObject *)o->ob_type;
	PyObject_GC_Del(o);
	Py_DecRef(type);
}

#define VISIT(o) \
	do { \
		if (o) { \
			int visited = visit((PyObject *)(o), arg); \
			if (visited) \
				return visited; \
		} \
	} while (0)
/* Instances hold their type, and say so since 3.9 (bpo-40217). */
#define VISIT_TYPE(o) VISIT(minor >= 9 ? (PyObject *)(o)->ob_type : NULL)

#endif
