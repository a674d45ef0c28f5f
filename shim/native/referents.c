/* Of many objects, or of what they refer to, those of some types: a pass over all that the garbage collector knows. */
#include "native.h"

#define AHEAD 32 /* objects that are met before the first of them is looked at */
#define KNOWN 64 /* types whose traverse is remembered; a power of 2 */

typedef int (*inquiry)(PyObject *);
typedef int (*traverseproc)(PyObject *, visitproc, void *);

static PyObject *gc_referents, *gc_tracked; /* the collector's own functions, where C may not ask: up to 3.9, 3.8 */

typedef struct {
	u64 mask; /* a bit per type: most of what is met is neither */
	Py_ssize_t n, always;
	PyTypeObject **types; /* the first are found always, the others where the collector does not track the object */
	PyObject **found;
	Py_ssize_t count, room;
	int waiting; /* met, and not looked at yet: their memory is on its way */
	PyObject *met[AHEAD];
} Pick;

static u64 bit(const PyTypeObject *type)
{
	u64 at = (u64)type >> 4;

	return 1ul << ((at ^ at >> 6 ^ at >> 12) & 63);
}

/* -1: an error. */
static int tracked(PyObject *o)
{
	PyObject *answer;
	int is;

	if (PyObject_GC_IsTracked)
		return PyObject_GC_IsTracked(o);
	answer = PyObject_CallFunctionObjArgs(gc_tracked, o, NULL);
	if (!answer)
		return -1;
	is = PyObject_IsTrue(answer);
	Py_DecRef(answer);
	return is;
}

static int add(Pick *pick, PyObject *o)
{
	if (pick->count == pick->room) {
		Py_ssize_t room = 2 * pick->room + 64;
		PyObject **more = PyMem_Realloc(pick->found, (size_t)room * sizeof(PyObject *));
		if (!more) {
			PyErr_NoMemory();
			return -1;
		}
		pick->found = more;
		pick->room = room;
	}
	pick->found[pick->count++] = taken(o);
	return 0;
}

static inline int meet(Pick *pick, PyObject *o)
{
	Py_ssize_t i = 0;
	int is;

	if (!(pick->mask & bit(o->ob_type)))
		return 0;
	while (i < pick->n && pick->types[i] != o->ob_type)
		i++;
	if (i == pick->n)
		return 0;
	is = i < pick->always ? 0 : tracked(o);
	return is < 0 ? -1 : is ? 0 : add(pick, o);
}

static int settle(Pick *pick)
{
	for (int i = 0; i < pick->waiting; i++)
		if (meet(pick, pick->met[i]) < 0)
			return -1;
	pick->waiting = 0;
	return 0;
}

/* A visitproc. */
static int note(PyObject *o, void *arg)
{
	Pick *pick = arg;

	__builtin_prefetch(o);
	pick->met[pick->waiting++] = o;
	return pick->waiting < AHEAD ? 0 : settle(pick);
}

static int types(Pick *pick, PyObject *given)
{
	Py_ssize_t n = is_a(given, Py_TPFLAGS_TUPLE_SUBCLASS) ? PyTuple_Size(given) : -1;
	PyTypeObject **more;

	if (n < 0) {
		fails(PyExc_TypeError, "wanted: a list, and two tuples of types");
		return -1;
	}
	more = PyMem_Realloc(pick->types, (size_t)(pick->n + n) * sizeof(PyTypeObject *));
	if (!more) {
		PyErr_NoMemory();
		return -1;
	}
	pick->types = more;
	for (Py_ssize_t i = 0; i < n; i++) {
		PyTypeObject *type = (PyTypeObject *)PyTuple_GetItem(given, i);
		more[pick->n++] = type;
		pick->mask |= bit(type);
	}
	return 0;
}

static int begin(Pick *pick, PyObject *const *args, Py_ssize_t n)
{
	if (n != 3 || args[0]->ob_type != &PyList_Type) {
		fails(PyExc_TypeError, "wanted: a list, and two tuples of types");
		return -1;
	}
	if (types(pick, args[1]) < 0)
		return -1;
	pick->always = pick->n;
	return types(pick, args[2]);
}

/* The list of what was found; NULL if it failed before. */
static PyObject *end(Pick *pick, int failed)
{
	PyObject *list = failed ? NULL : PyList_New(pick->count);

	for (Py_ssize_t i = 0; i < pick->count; i++)
		if (list)
			PyList_SetItem(list, i, pick->found[i]);
		else
			Py_DecRef(pick->found[i]);
	PyMem_Free(pick->found);
	PyMem_Free(pick->types);
	return list;
}

static int meet_all(Pick *pick, PyObject *list)
{
	for (Py_ssize_t i = 0; i < PyList_Size(list); i++)
		if (meet(pick, PyList_GetItem(list, i)) < 0)
			return -1;
	return 0;
}

PyObject *picked(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	Pick pick = {0};

	return end(&pick, begin(&pick, args, n) < 0 || meet_all(&pick, args[0]) < 0);
}

/* As gc.get_referents() does it. */
static int visit_all(Pick *pick, PyObject *list)
{
	struct {
		PyTypeObject *type;
		traverseproc traverse;
		inquiry is_gc;
	} known[KNOWN] = {{0}}, *k;

	for (Py_ssize_t i = 0, n = PyList_Size(list); i < n; i++) {
		PyObject *o = PyList_GetItem(list, i);
		PyTypeObject *type = o->ob_type;
		k = &known[((u64)type >> 4 ^ (u64)type >> 10) & (KNOWN - 1)];
		if (k->type != type) {
			k->type = type;
			k->traverse = is_a(o, Py_TPFLAGS_HAVE_GC) ? (traverseproc)PyType_GetSlot(type, Py_tp_traverse) : NULL;
			k->is_gc = k->traverse ? (inquiry)PyType_GetSlot(type, Py_tp_is_gc) : NULL;
		}
		if (k->traverse && (!k->is_gc || k->is_gc(o)) && k->traverse(o, note, pick))
			return -1;
	}
	return settle(pick);
}

PyObject *referents(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	Pick pick = {0};
	PyObject *objects, *all;
	int failed = begin(&pick, args, n) < 0;

	if (failed || !gc_referents)
		return end(&pick, failed || visit_all(&pick, args[0]) < 0);
	objects = PyList_AsTuple(args[0]);
	all = objects ? PyObject_Call(gc_referents, objects, NULL) : NULL;
	Py_DecRef(objects);
	failed = !all || meet_all(&pick, all) < 0;
	Py_DecRef(all);
	return end(&pick, failed);
}

int referents_ready(PyObject *module)
{
	PyObject *gc;

	if (minor >= 10 && PyObject_GC_IsTracked) /* from 3.10 on PyType_GetSlot() knows types that are static, too */
		return 0;
	gc = PyImport_ImportModule("gc");
	if (!gc)
		return -1;
	gc_referents = PyObject_GetAttrString(gc, "get_referents");
	gc_tracked = gc_referents ? PyObject_GetAttrString(gc, "is_tracked") : NULL;
	Py_DecRef(gc);
	return gc_tracked ? 0 : -1;
}
