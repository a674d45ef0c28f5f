/* The fetches of a worker that nothing happens in: counted, timed and written without Python. What Python wants to see it is
 * called for: see twin.Fetching and twin.Serving. */
#include "native.h"

#define STATE_VALUES 9 /* of a record of a state: layouts.STATE_FIELDS */
#define AFTER 3        /* of layouts.WHEN_VALUES */
#define VALUES 10   /* of a record of a fetch: layouts.FETCH_FIELDS */

typedef struct {
	PyObject ob_base;
	i64 number, worker, batched, due, mask; /* set by Python */
	i64 fetch, samples, stage, t_fetch, t_collate, t_collated, digest_ns, rows_ns;
	i64 calls, own_ns, fetched_ns, fetched_samples, skipped; /* since Python has last looked, which sets them to 0 */
	PyObject *serving, *peeks, *places, *look, *waiting, *state, *asked;
} Fetching;

typedef struct {
	PyObject ob_base;
	i64 next_ask;                               /* set by Python */
	i64 batch, fetches, asks, asked_at, t_put, put_ns;
	i64 done_t, done_fetch_ns, done_collate_ns; /* of the fetch whose batch is not handed over yet */
	i64 putting_t;
	u64 thread;
	PyObject *ask, *record, *full, *done;
} Serving;

static PyObject *fetching_type, *serving_type, *key;

/* Adds what a call of ours took since t. What took longer than SURELY was not the processor's: the thread had to wait for it. */
static void own(Fetching *f, i64 t, i64 until)
{
	f->own_ns += until - t < SURELY ? until - t : SURELY;
}

/* What is known of the fetcher args[0]; NULL: nothing. Borrowed. */
static Fetching *fetching_of(PyObject *args)
{
	PyObject *fetcher = args->ob_type == &PyTuple_Type && PyTuple_Size(args) > 1 ? PyTuple_GetItem(args, 0) : NULL, *dict, *found = NULL;

	if (!fetcher)
		return NULL;
	dict = PyObject_GenericGetAttr(fetcher, key);
	if (!dict) {
		PyErr_Clear();
		return NULL;
	}
	if (dict->ob_type == &PyDict_Type) {
		static PyObject *ours;
		if (!ours)
			ours = PyUnicode_InternFromString("_dptrace");
		found = ours ? PyDict_GetItem(dict, ours) : NULL; /* the dictionary's, and the fetcher lives */
	}
	Py_DecRef(dict);
	return is_of(found, fetching_type) ? (Fetching *)found : NULL;
}

/* before(args, kwargs) of a fetch: self is Python's, for those that are not ours. */
static PyObject *entering(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	i64 t = now();
	Fetching *f = n == 2 ? fetching_of(args[0]) : NULL;

	if (!f || f->fetch + 1 >= f->due || !is_of(f->serving, serving_type))
		return n == 2 ? PyObject_CallFunctionObjArgs(python, args[0], args[1], NULL) : fails(PyExc_TypeError, "before(args, kwargs)");
	Py_IncRef((PyObject *)f);
	f->fetch++;
	((Serving *)f->serving)->fetches++;
	f->t_collate = f->t_collated = f->digest_ns = f->rows_ns = f->stage = 0;
	put_in(&f->asked, PyTuple_GetItem(args[0], 1));
	f->t_fetch = now();
	own(f, t, f->t_fetch);
	return (PyObject *)f;
}

/* Whether the states that have moved can be written here. */
static int tell(Fetching *f)
{
	return f->state && is_record(f->state, STATE_VALUES) && peeks_can_tell(f->peeks);
}

/* Writes them; -1: there was no room, and saying so has failed. */
static int told(Fetching *f, i64 ns)
{
	i64 values[STATE_VALUES] = {0, 0, f->number, f->worker, f->fetch, AFTER, 0, 0, ns};
	PyObject *full = ((Serving *)f->serving)->full;

	for (int lost = peeks_write(f->peeks, f->state, values); lost && some(full); lost--) {
		PyObject *answer = PyObject_CallFunctionObjArgs(full, NULL);
		if (!answer)
			return -1;
		Py_DecRef(answer);
	}
	return 0;
}

/* after(token, result, args, kwargs) of a fetch. */
static PyObject *leaving(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	i64 t = now(), from, to;
	int still;
	Fetching *f = n == 4 && is_of(args[0], fetching_type) ? (Fetching *)args[0] : NULL;
	Serving *s;

	if (!f || f->fetch >= f->due || !is_of(f->serving, serving_type) || !some(f->places) || !is_places(f->places) ||
		!places_quiet(f->places) || !some(f->peeks) || !is_peeks(f->peeks) ||
		!((still = peeks_quiet(f->peeks)) || tell(f)))
		return n == 4 ? PyObject_CallFunctionObjArgs(python, args[0], args[1], args[2], args[3], NULL)
					  : fails(PyExc_TypeError, "after(token, result, args, kwargs)");
	from = f->t_collate ? f->t_collate : t;
	to = f->t_collated ? f->t_collated : t;
	f->fetched_ns += t - f->t_fetch - f->digest_ns - f->rows_ns;
	f->fetched_samples += f->samples;
	f->calls++;
	s = (Serving *)f->serving;
	s->done_t = f->t_fetch;
	s->done_fetch_ns = from - f->t_fetch;
	s->done_collate_ns = to - from > f->digest_ns ? to - from - f->digest_ns : 0;
	put_in(&f->asked, NULL);
	put_in(&s->done, (PyObject *)f);
	if (!still && told(f, t - f->t_fetch) < 0)
		return NULL;
	own(f, t, now());
	return taken(Py_None);
}

static PyMethodDef entering_function = {"entering", entering, METH_FASTCALL, NULL};
static PyMethodDef leaving_function = {"leaving", leaving, METH_FASTCALL, NULL};

PyObject *make_entering(PyObject *module, PyObject *python)
{
	return PyCFunction_NewEx(&entering_function, python, NULL);
}

PyObject *make_leaving(PyObject *module, PyObject *python)
{
	return PyCFunction_NewEx(&leaving_function, python, NULL);
}

/* before(args, kwargs) of the collate function. */
static PyObject *before_collate(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Fetching *f = (Fetching *)o;
	PyObject *data = n && args[0]->ob_type == &PyTuple_Type && PyTuple_Size(args[0]) ? PyTuple_GetItem(args[0], 0) : Py_None, *answer;
	int list = data->ob_type == &PyList_Type, tuple = data->ob_type == &PyTuple_Type;

	f->samples = list ? PyList_Size(data) : tuple && f->batched ? PyTuple_Size(data) : 1;
	f->t_collate = now();
	if (!some(f->look)) {
		f->stage = 1;
		return taken(Py_None);
	}
	if (f->mask >= 0 && f->batched && f->samples && (list || tuple) && some(f->asked) && is_multiple(f->asked, f->mask) == 0 &&
		(f->asked->ob_type == &PyList_Type ? PyList_Size(f->asked) : PyTuple_Size(f->asked)) == f->samples) {
		f->skipped += f->samples;
		answer = taken(Py_None);
	} else {
		answer = PyObject_CallFunctionObjArgs(f->look, o, data, NULL);
	}
	f->stage = answer != NULL;
	f->digest_ns = now() - f->t_collate;
	return answer;
}

static PyObject *collated(Fetching *f, PyObject *result)
{
	PyObject *waiting = f->waiting, *answer;

	f->t_collated = now();
	if (!some(waiting))
		return taken(Py_None);
	f->waiting = NULL;
	answer = PyObject_CallFunctionObjArgs(waiting, (PyObject *)f, result, NULL);
	Py_DecRef(waiting);
	f->rows_ns = now() - f->t_collated;
	return answer;
}

static PyObject *after_collate(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	PyObject *answer = n > 1 ? collated((Fetching *)o, args[1]) : fails(PyExc_TypeError, "after(token, result, args, kwargs)");

	((Fetching *)o)->stage = 0;
	return answer;
}

static PyObject *failed_collate(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	return collated((Fetching *)o, Py_None);
}

/* before(args, kwargs) and after(token, got, args, kwargs) of the get of the queue of indices. */
static PyObject *asking(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Serving *s = (Serving *)o;
	int idle = s->fetches == s->asked_at;

	s->asked_at = s->fetches;
	s->asks++;
	if ((s->fetches < s->next_ask && !idle) || !some(s->ask))
		return taken(Py_None);
	return PyObject_CallFunctionObjArgs(s->ask, o, NULL);
}

static PyObject *asked(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	if (n > 1 && args[1]->ob_type == &PyTuple_Type && PyTuple_Size(args[1]) == 2) {
		PyObject *batch = PyTuple_GetItem(args[1], 0);
		i64 number = batch->ob_type == &PyLong_Type ? PyLong_AsLongLong(batch) : -1;

		if (number >= 0)
			((Serving *)o)->batch = number;
		else if (PyErr_Occurred())
			PyErr_Clear();
	}
	return taken(Py_None);
}

/* before(args, kwargs) and after(token, result, args, kwargs) of the put of the queue of batches: after it, its feeder thread wants
 * the interpreter. */
static PyObject *putting(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Serving *s = (Serving *)o;
	i64 t, wait;

	if (PyThread_get_thread_ident() != s->thread)
		return taken(Py_None);
	t = now();
	if (is_of(s->done, fetching_type)) {
		Fetching *f = (Fetching *)s->done;
		s->done = NULL;
		wait = s->done_t > s->t_put ? s->done_t - s->t_put : 0;
		if (s->record && is_record(s->record, VALUES)) {
			i64 values[VALUES] = {0, f->number, f->worker, s->batch, f->fetch, wait, s->done_fetch_ns, s->done_collate_ns, s->put_ns, f->samples};
			PyObject *answer = NULL;
			if (!put_values(s->record, (u64)s->done_t, values, NULL, 0) && some(s->full) && !(answer = PyObject_CallFunctionObjArgs(s->full, NULL))) {
				Py_DecRef((PyObject *)f);
				return NULL;
			}
			Py_DecRef(answer);
		}
		s->putting_t = now();
		own(f, t, s->putting_t);
		Py_DecRef((PyObject *)f);
	} else {
		s->putting_t = t;
	}
	return taken(Py_None);
}

static PyObject *put(PyObject *o, PyObject *const *args, Py_ssize_t n)
{
	Serving *s = (Serving *)o;

	if (PyThread_get_thread_ident() == s->thread) {
		s->t_put = now();
		s->put_ns = s->t_put - s->putting_t;
	}
	return taken(Py_None);
}

static PyObject *fetching_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	Fetching *f = (Fetching *)PyType_GenericAlloc(type, 0);

	if (f) {
		f->fetch = f->mask = -1;
		f->batched = 1;
	}
	return (PyObject *)f;
}

static PyObject *serving_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	Serving *s = (Serving *)PyType_GenericAlloc(type, 0);

	if (s) {
		s->batch = s->asked_at = -1;
		s->t_put = now();
		s->thread = PyThread_get_thread_ident();
	}
	return (PyObject *)s;
}

static int fetching_traverse(PyObject *o, visitproc visit, void *arg)
{
	Fetching *f = (Fetching *)o;

	for (PyObject **at = &f->serving; at <= &f->asked; at++)
		VISIT(*at);
	VISIT_TYPE(o);
	return 0;
}

static int serving_traverse(PyObject *o, visitproc visit, void *arg)
{
	Serving *s = (Serving *)o;

	for (PyObject **at = &s->ask; at <= &s->done; at++)
		VISIT(*at);
	VISIT_TYPE(o);
	return 0;
}

static int fetching_clear(PyObject *o)
{
	Fetching *f = (Fetching *)o;

	for (PyObject **at = &f->serving; at <= &f->asked; at++)
		drop(at);
	return 0;
}

static int serving_clear(PyObject *o)
{
	Serving *s = (Serving *)o;

	for (PyObject **at = &s->ask; at <= &s->done; at++)
		drop(at);
	return 0;
}

static void fetching_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	fetching_clear(o);
	gone(o);
}

static void serving_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	serving_clear(o);
	gone(o);
}

static PyMethodDef fetching_methods[] = {
	{"before_collate", before_collate, METH_FASTCALL, NULL},
	{"after_collate", after_collate, METH_FASTCALL, NULL},
	{"failed_collate", failed_collate, METH_FASTCALL, NULL},
	{NULL},
};

static PyMethodDef serving_methods[] = {
	{"asking", asking, METH_FASTCALL, NULL}, {"asked", asked, METH_FASTCALL, NULL}, {"putting", putting, METH_FASTCALL, NULL},
	{"put", put, METH_FASTCALL, NULL},		 {NULL},
};

#define NUMBER(type, field) {#field, T_LONGLONG, OFFSET(type, field), 0, NULL}
#define OBJECT(type, field) {#field, T_OBJECT, OFFSET(type, field), 0, NULL}

static PyMemberDef fetching_members[] = {
	NUMBER(Fetching, number),	 NUMBER(Fetching, worker),	   NUMBER(Fetching, batched),		  NUMBER(Fetching, due),
	NUMBER(Fetching, mask),		 NUMBER(Fetching, fetch),	   NUMBER(Fetching, samples),		  NUMBER(Fetching, stage),
	NUMBER(Fetching, t_fetch),	 NUMBER(Fetching, t_collate),  NUMBER(Fetching, t_collated),	  NUMBER(Fetching, digest_ns),
	NUMBER(Fetching, rows_ns),	 NUMBER(Fetching, calls),	   NUMBER(Fetching, own_ns),		  NUMBER(Fetching, fetched_ns),
	NUMBER(Fetching, fetched_samples), NUMBER(Fetching, skipped), OBJECT(Fetching, serving),	  OBJECT(Fetching, peeks),
	OBJECT(Fetching, places),	 OBJECT(Fetching, look),	   OBJECT(Fetching, waiting),		  OBJECT(Fetching, state),
	OBJECT(Fetching, asked),
	{NULL},
};

static PyMemberDef serving_members[] = {
	NUMBER(Serving, next_ask),		  NUMBER(Serving, batch),		  NUMBER(Serving, fetches), NUMBER(Serving, asks), NUMBER(Serving, t_put),
	NUMBER(Serving, put_ns),		  NUMBER(Serving, done_t),		  NUMBER(Serving, done_fetch_ns),
	NUMBER(Serving, done_collate_ns), OBJECT(Serving, ask),			  OBJECT(Serving, record),	OBJECT(Serving, full),
	OBJECT(Serving, done),			  {NULL},
};

static PyType_Slot fetching_slots[] = {
	{Py_tp_new, fetching_new},		   {Py_tp_dealloc, fetching_dealloc}, {Py_tp_traverse, fetching_traverse}, {Py_tp_clear, fetching_clear},
	{Py_tp_methods, fetching_methods}, {Py_tp_members, fetching_members}, {0},
};

static PyType_Slot serving_slots[] = {
	{Py_tp_new, serving_new},		  {Py_tp_dealloc, serving_dealloc}, {Py_tp_traverse, serving_traverse}, {Py_tp_clear, serving_clear},
	{Py_tp_methods, serving_methods}, {Py_tp_members, serving_members}, {0},
};

static PyType_Spec fetching_spec = {
	"_dptrace_native.Fetching", sizeof(Fetching), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, fetching_slots};
static PyType_Spec serving_spec = {
	"_dptrace_native.Serving", sizeof(Serving), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, serving_slots};

int serving_ready(PyObject *module)
{
	key = PyUnicode_InternFromString("__dict__");
	if (!key)
		return -1;
	fetching_type = add_type(module, "Fetching", &fetching_spec);
	serving_type = fetching_type ? add_type(module, "Serving", &serving_spec) : NULL;
	return serving_type ? 0 : -1;
}
