/* The batches of an iterator that nothing is to be looked at for: what its workers are asked for, and what the training was handed
 * and has done meanwhile, written without Python: see twin.Delivering and twin.Training. */
#include "native.h"

#define PUT_VALUES 7   /* of a record: layouts.PUT_FIELDS */
#define NEXT_VALUES 14 /* layouts.NEXT_FIELDS */
#define OK 1           /* of layouts.STATUS_VALUES */
#define GRAD 256       /* layouts.STATUS_GRAD */
#define WATCHED 4096   /* layouts.STATUS_WATCHED */
#define DEPTH 3
#define MAIN -1 /* layouts' worker of the main process */
#define ROWS 0x7FFFFFFF

typedef struct {
	PyObject ob_base;
	i64 taken, last, ran, grads_from, grads_to, restarts, bits, watched, look, armed; /* set by Python */
	i64 delivered, then;
	i64 due, calls, own_ns;
	PyObject *flags, *begun, *rows, *grad, *modes, *tensor, *child, *sink, *bell, *put, *record, *full;
} Training;

typedef struct {
	PyObject ob_base;
	i64 loader, number, worker, single; /* set by Python */
	i64 t_next, did, t_put, sending, got;
	PyObject *training, *notes, *arrived, *ids, *index;
} Delivering;

static PyObject *training_type, *delivering_type;
static struct {
	const char *text;
	PyObject *name;
} names[] = {{"__dict__"}, {"_dptrace"}, {"_send_idx"}, {"_rcvd_idx"}, {"_task_info"}, {"_in_order"}, {"delivered"}, {"shape"}};
enum { DICT, OURS, SEND_IDX, RCVD_IDX, TASK_INFO, IN_ORDER, DELIVERED, SHAPE };

/* The dictionary of the iterator args[0]; NULL: it has none. */
static PyObject *dict_of(PyObject *args)
{
	PyObject *iterator = args->ob_type == &PyTuple_Type && PyTuple_Size(args) ? PyTuple_GetItem(args, 0) : NULL, *dict;

	if (!iterator)
		return NULL;
	dict = PyObject_GenericGetAttr(iterator, names[DICT].name);
	if (!dict)
		PyErr_Clear();
	else if (dict->ob_type != &PyDict_Type)
		drop(&dict);
	return dict;
}

/* What is known of it. Borrowed of the dictionary. */
static Delivering *delivering_of(PyObject *dict)
{
	PyObject *found = dict ? PyDict_GetItem(dict, names[OURS].name) : NULL;

	return is_of(found, delivering_type) && is_of(((Delivering *)found)->training, training_type) ? (Delivering *)found : NULL;
}

/* An integer that is not negative; -1: it is none. */
static i64 number_of(PyObject *o)
{
	i64 n = o && o->ob_type == &PyLong_Type ? PyLong_AsLongLong(o) : -1;

	if (n == -1 && PyErr_Occurred())
		PyErr_Clear();
	return n < 0 ? -1 : n;
}

static i64 number_at(PyObject *dict, int name)
{
	return number_of(PyDict_GetItem(dict, names[name].name));
}

static int is_list(PyObject *o)
{
	return o->ob_type == &PyList_Type || o->ob_type == &PyTuple_Type;
}

/* Calls what may be there; -1: it has failed. */
static int tell(PyObject *function)
{
	PyObject *answer = some(function) ? PyObject_CallFunctionObjArgs(function, NULL) : taken(Py_None);

	Py_DecRef(answer);
	return answer ? 0 : -1;
}

static PyObject *after_python(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	return n == 4 ? PyObject_CallFunctionObjArgs(python, args[0], args[1], args[2], args[3], NULL)
				  : fails(PyExc_TypeError, "after(token, result, args, kwargs)");
}

/* after(token, index, args, kwargs) of _next_index. */
PyObject *indexed(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
	PyObject *dict;
	Delivering *d;

	if (n != 4)
		return fails(PyExc_TypeError, "after(token, result, args, kwargs)");
	dict = dict_of(args[2]);
	d = delivering_of(dict);
	if (d) {
		Py_IncRef((PyObject *)d);
		put_in(&d->index, args[1]);
		Py_DecRef((PyObject *)d);
	}
	Py_DecRef(dict);
	return taken(Py_None);
}

/* before(args, kwargs) of _try_put_index. */
static PyObject *placing(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	PyObject *dict = n == 2 ? dict_of(args[0]) : NULL;
	Delivering *d = delivering_of(dict);
	i64 batch = d ? number_at(dict, SEND_IDX) : -1;

	if (batch < 0) {
		Py_DecRef(dict);
		return n == 2 ? PyObject_CallFunctionObjArgs(python, args[0], args[1], NULL) : fails(PyExc_TypeError, "before(args, kwargs)");
	}
	d->sending = batch;
	d->t_put = now();
	Py_IncRef((PyObject *)d);
	Py_DecRef(dict);
	return (PyObject *)d;
}

/* Writes what a worker is asked for. 0: Python is to; -1: it has failed. */
static int put_index(Delivering *d, Training *t, i64 batch, i64 worker, i64 t0, i64 ns)
{
	i64 values[PUT_VALUES] = {d->loader, d->number, batch, worker, ns, 0, 0};
	int put;

	if (some(d->ids) || !d->index || !t->put || !is_integers(t->put, PUT_VALUES))
		return 0;
	put = put_integers(t->put, (u64)t0, values, d->index);
	if (put < 0)
		return 0;
	put_in(&d->index, NULL);
	return (!put && tell(t->full) < 0) || (sink_rings(t->sink ? t->sink : Py_None) && tell(t->bell) < 0) ? -1 : 1;
}

/* The worker that has batch d->sending: of _task_info, (worker, ...). -1: not to be told. */
static i64 asked_of(Delivering *d, PyObject *dict)
{
	PyObject *tasks = PyDict_GetItem(dict, names[TASK_INFO].name), *key, *info;

	if (!tasks || tasks->ob_type != &PyDict_Type)
		return -1;
	key = PyLong_FromLongLong(d->sending);
	info = key ? PyDict_GetItem(tasks, key) : NULL;
	Py_DecRef(key);
	PyErr_Clear();
	return info && info->ob_type == &PyTuple_Type && PyTuple_Size(info) ? number_of(PyTuple_GetItem(info, 0)) : -1;
}

/* after(token, result, args, kwargs) of it. */
static PyObject *placed(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	i64 t1 = now(), worker = -1, next = -1;
	Delivering *d = n == 4 && is_of(args[0], delivering_type) ? (Delivering *)args[0] : NULL;
	Training *t;
	PyObject *dict;
	int put = 0;

	dict = d && is_of(d->training, training_type) ? dict_of(args[2]) : NULL;
	if (dict) {
		next = number_at(dict, SEND_IDX);
		if (next != d->sending)
			worker = asked_of(d, dict);
		Py_DecRef(dict);
	}
	if (next < 0 || (next != d->sending && worker < 0))
		return after_python(python, args, n);
	if (next == d->sending)
		return taken(Py_None);
	t = (Training *)taken(d->training);
	put = put_index(d, t, d->sending, worker, d->t_put, t1 - d->t_put);
	t->own_ns += surely(t1);
	Py_DecRef((PyObject *)t);
	return put < 0 ? NULL : put ? taken(Py_None) : after_python(python, args, n);
}

/* after(token, (whether there is anything, (batch, data)), args, kwargs) of _try_get_data. */
static PyObject *arriving(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	PyObject *pair, *key, *dict, *t, *arrived;
	Delivering *d;
	Training *training;
	i64 from = now(), batch;
	int set = -1;

	if (n != 4 || args[1]->ob_type != &PyTuple_Type || PyTuple_Size(args[1]) != 2)
		return after_python(python, args, n);
	if (PyTuple_GetItem(args[1], 0) == Py_False)
		return taken(Py_None);
	pair = PyTuple_GetItem(args[1], 1);
	key = pair->ob_type == &PyTuple_Type && PyTuple_Size(pair) ? PyTuple_GetItem(pair, 0) : NULL;
	batch = number_of(key);
	dict = batch < 0 ? NULL : dict_of(args[2]);
	d = delivering_of(dict);
	if (!d || PyTuple_GetItem(args[1], 0) != Py_True || !d->arrived || d->arrived->ob_type != &PyDict_Type) {
		Py_DecRef(dict);
		return after_python(python, args, n);
	}
	d->got = batch;
	arrived = taken(d->arrived);
	training = (Training *)taken(d->training);
	Py_DecRef(dict);
	t = PyLong_FromLongLong(now());
	if (t)
		set = PyDict_SetItem(arrived, key, t);
	Py_DecRef(t);
	Py_DecRef(arrived);
	training->own_ns += surely(from);
	Py_DecRef((PyObject *)training);
	return set < 0 ? NULL : taken(Py_None);
}

/* before(args, kwargs) of _next_data. */
static PyObject *calling(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	i64 from = now(), did;
	PyObject *dict = n == 2 ? dict_of(args[0]) : NULL, *answer;
	Delivering *d = delivering_of(dict);
	Training *t;

	if (!d) {
		Py_DecRef(dict);
		return n == 2 ? PyObject_CallFunctionObjArgs(python, args[0], args[1], NULL) : fails(PyExc_TypeError, "before(args, kwargs)");
	}
	Py_IncRef((PyObject *)d);
	Py_DecRef(dict);
	t = (Training *)taken(d->training);
	d->t_next = from;
	did = t->bits + (t->watched && (t->ran || !t->taken) ? WATCHED : 0);
	if (t->look && some(t->flags)) {
		answer = PyObject_CallFunctionObjArgs(t->flags, NULL);
		did = answer ? PyLong_AsLongLong(answer) : -1;
		Py_DecRef(answer);
	}
	t->own_ns += surely(from);
	Py_DecRef((PyObject *)t);
	if (did == -1 && PyErr_Occurred()) {
		Py_DecRef((PyObject *)d);
		return NULL;
	}
	d->did = did;
	return (PyObject *)d;
}

/* The first dimension of the first array in a batch; -1: it has none. 0 is returned where Python is to look, or has failed. */
static int rows_of(const Training *t, PyObject *data, int depth, i64 *rows)
{
	PyObject *key, *first = NULL, *shape, *answer;
	Py_ssize_t at = 0;
	int seen;

	if ((PyObject *)data->ob_type != t->tensor) {
		if (is_list(data))
			first = data->ob_type == &PyList_Type ? (PyList_Size(data) ? PyList_GetItem(data, 0) : NULL)
												  : (PyTuple_Size(data) ? PyTuple_GetItem(data, 0) : NULL);
		else if (data->ob_type == &PyDict_Type && !PyDict_Next(data, &at, &key, &first))
			first = NULL;
		if (!first || !depth)
			return 0;
		Py_IncRef(first);
		seen = rows_of(t, first, depth - 1, rows) && *rows >= 0;
		Py_DecRef(first);
		return seen;
	}
	answer = some(t->modes) ? PyObject_CallFunctionObjArgs(t->modes, NULL) : taken(Py_True);
	seen = answer ? PyObject_IsTrue(answer) : -1;
	Py_DecRef(answer);
	if (seen) /* somebody would be asked for the shape */
		return 0;
	shape = PyObject_GetAttr(data, names[SHAPE].name);
	if (!shape)
		return 0;
	seen = is_a(shape, Py_TPFLAGS_TUPLE_SUBCLASS);
	if (seen) {
		*rows = PyTuple_Size(shape) ? number_of(PyTuple_GetItem(shape, 0)) : -1;
		seen = !PyTuple_Size(shape) || (*rows >= 0 && *rows <= ROWS);
	}
	Py_DecRef(shape);
	return seen;
}

/* The same, by Python if need be; -1: it has failed. */
static int rows(const Training *t, PyObject *data, i64 *found)
{
	PyObject *answer;

	if (some(t->tensor) && rows_of(t, data, DEPTH, found))
		return 0;
	if (PyErr_Occurred())
		return -1;
	answer = PyObject_CallFunctionObjArgs(t->rows, data, NULL);
	*found = answer ? PyLong_AsLongLong(answer) : -1;
	Py_DecRef(answer);
	return *found == -1 && PyErr_Occurred() ? -1 : 0;
}

/* When a batch had arrived, of which nothing is kept; 0: it had not. -1: it has failed. */
static i64 arrival(Delivering *d, i64 batch)
{
	PyObject *arrived = taken(d->arrived), *key = PyLong_FromLongLong(batch), *t;
	i64 ns = key ? 0 : -1;

	t = key ? PyDict_GetItem(arrived, key) : NULL;
	if (t) {
		ns = number_of(t);
		if (PyDict_DelItem(arrived, key) < 0)
			ns = -1;
	}
	Py_DecRef(key);
	Py_DecRef(arrived);
	return ns;
}

/* Counts the batch in the loader's notes; -1: it has failed. */
static int count(PyObject *notes, i64 delivered)
{
	PyObject *n = PyLong_FromLongLong(delivered);
	int set = n ? PyDict_SetItem(notes, names[DELIVERED].name, n) : -1;

	Py_DecRef(n);
	return set;
}

/* Writes that the training has got a batch, and what it has done since the last; -1: it has failed. */
static int hand(Delivering *d, Training *t, i64 batch, i64 arrived, PyObject *data)
{
	i64 found = -1, grad;
	PyObject *answer;

	if (rows(t, data, &found) < 0)
		return -1;
	answer = some(t->grad) ? PyObject_CallFunctionObjArgs(t->grad, NULL) : taken(Py_False);
	grad = answer == Py_True;
	Py_DecRef(answer);
	if (!answer)
		return -1;
	if (t->record && is_record(t->record, NEXT_VALUES)) {
		i64 values[NEXT_VALUES] = {d->loader, d->number, batch, d->worker, OK + GRAD * grad + d->did, d->t_next, arrived, t->taken, t->last,
								   t->ran, t->grads_from, t->grads_to, t->restarts, found};
		if (!put_values(t->record, 0, values, NULL, 0) && tell(t->full) < 0)
			return -1;
	}
	t->bits = t->grads_from = t->grads_to = 0;
	t->delivered++;
	t->then = t->taken;
	if (some(t->begun) && (t->armed || (found == 1 && !d->single && grad))) {
		PyObject *number = PyLong_FromLongLong(found);
		answer = number ? PyObject_CallFunctionObjArgs(t->begun, number, d->notes, NULL) : NULL;
		Py_DecRef(number);
		Py_DecRef(answer);
		return answer ? 0 : -1;
	}
	return 0;
}

/* The number of the batch that is handed over; -1: not to be told. delivered: by the loader in this pass so far. */
static i64 batch_of(const Delivering *d, PyObject *args, i64 delivered)
{
	PyObject *dict;
	i64 batch;

	if (d->worker == MAIN)
		return delivered;
	dict = dict_of(args);
	if (!dict)
		return -1;
	batch = PyDict_GetItem(dict, names[IN_ORDER].name) == Py_False ? d->got : number_at(dict, RCVD_IDX) - 1;
	Py_DecRef(dict);
	return batch < 0 ? -1 : batch;
}

/* after(token, data, args, kwargs) of it. */
static PyObject *handing(PyObject *python, PyObject *const *args, Py_ssize_t n)
{
	i64 from = now(), delivered, batch = -1, arrived = 0;
	Delivering *d = n == 4 && is_of(args[0], delivering_type) ? (Delivering *)args[0] : NULL;
	Training *t = d && is_of(d->training, training_type) ? (Training *)d->training : NULL;
	PyObject *notes = NULL;
	int put = 1;

	if (t && t->calls + 1 < t->due && !some(t->child) && some(t->rows) && t->record && is_record(t->record, NEXT_VALUES))
		notes = d->notes;
	if (notes && notes->ob_type == &PyDict_Type && d->arrived && d->arrived->ob_type == &PyDict_Type) {
		delivered = number_at(notes, DELIVERED);
		batch = delivered < 0 ? -1 : batch_of(d, args[2], delivered);
	}
	if (batch < 0)
		return after_python(python, args, n);
	Py_IncRef(notes);
	Py_IncRef((PyObject *)t);
	if (d->worker == MAIN)
		put = put_index(d, t, batch, MAIN, d->t_next, 0);
	if (put > 0) {
		arrived = d->worker == MAIN ? 0 : arrival(d, batch);
		if (arrived < 0 || count(notes, delivered + 1) < 0 || hand(d, t, batch, arrived, args[1]) < 0)
			put = -1;
		t->calls++;
		t->own_ns += surely(from);
	}
	Py_DecRef(notes);
	Py_DecRef((PyObject *)t);
	return put < 0 ? NULL : put ? taken(Py_None) : after_python(python, args, n);
}

#define MAKE(function) \
	static PyMethodDef function##_function = {#function, function, METH_FASTCALL, NULL}; \
	PyObject *make_##function(PyObject *module, PyObject *python) \
	{ \
		return PyCFunction_NewEx(&function##_function, python, NULL); \
	}
MAKE(placing)
MAKE(placed)
MAKE(arriving)
MAKE(calling)
MAKE(handing)

static PyObject *delivering_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	Delivering *d = (Delivering *)PyType_GenericAlloc(type, 0);

	if (d)
		d->sending = d->got = -1;
	return (PyObject *)d;
}

static PyObject *training_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	return PyType_GenericAlloc(type, 0);
}

static int training_traverse(PyObject *o, visitproc visit, void *arg)
{
	Training *t = (Training *)o;

	for (PyObject **at = &t->flags; at <= &t->full; at++)
		VISIT(*at);
	VISIT_TYPE(o);
	return 0;
}

static int delivering_traverse(PyObject *o, visitproc visit, void *arg)
{
	Delivering *d = (Delivering *)o;

	for (PyObject **at = &d->training; at <= &d->index; at++)
		VISIT(*at);
	VISIT_TYPE(o);
	return 0;
}

static int training_clear(PyObject *o)
{
	Training *t = (Training *)o;

	for (PyObject **at = &t->flags; at <= &t->full; at++)
		drop(at);
	return 0;
}

static int delivering_clear(PyObject *o)
{
	Delivering *d = (Delivering *)o;

	for (PyObject **at = &d->training; at <= &d->index; at++)
		drop(at);
	return 0;
}

static void training_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	training_clear(o);
	gone(o);
}

static void delivering_dealloc(PyObject *o)
{
	PyObject_GC_UnTrack(o);
	delivering_clear(o);
	gone(o);
}

#define NUMBER(type, field) {#field, T_LONGLONG, OFFSET(type, field), 0, NULL}
#define OBJECT(type, field) {#field, T_OBJECT, OFFSET(type, field), 0, NULL}

static PyMemberDef training_members[] = {
	NUMBER(Training, taken),	 NUMBER(Training, last),	 NUMBER(Training, ran),	   NUMBER(Training, grads_from), NUMBER(Training, grads_to),
	NUMBER(Training, restarts),	 NUMBER(Training, bits),	 NUMBER(Training, watched), NUMBER(Training, look),		 NUMBER(Training, armed),
	NUMBER(Training, delivered), NUMBER(Training, then),	 NUMBER(Training, due),	   NUMBER(Training, calls),		 NUMBER(Training, own_ns),
	OBJECT(Training, flags),	 OBJECT(Training, begun),	 OBJECT(Training, rows),   OBJECT(Training, grad),		 OBJECT(Training, modes),
	OBJECT(Training, tensor),	 OBJECT(Training, child),	 OBJECT(Training, sink),   OBJECT(Training, bell),		 OBJECT(Training, put),
	OBJECT(Training, record),	 OBJECT(Training, full),	 {NULL},
};

static PyMemberDef delivering_members[] = {
	NUMBER(Delivering, loader),	  NUMBER(Delivering, number),  NUMBER(Delivering, worker),	 NUMBER(Delivering, single),
	NUMBER(Delivering, t_next),	  NUMBER(Delivering, did),	   NUMBER(Delivering, t_put),	 NUMBER(Delivering, sending),
	NUMBER(Delivering, got),	  OBJECT(Delivering, training), OBJECT(Delivering, notes), OBJECT(Delivering, arrived),
	OBJECT(Delivering, ids),	  OBJECT(Delivering, index),   {NULL},
};

static PyType_Slot training_slots[] = {
	{Py_tp_new, training_new},		   {Py_tp_dealloc, training_dealloc}, {Py_tp_traverse, training_traverse}, {Py_tp_clear, training_clear},
	{Py_tp_members, training_members}, {0},
};

static PyType_Slot delivering_slots[] = {
	{Py_tp_new, delivering_new},		   {Py_tp_dealloc, delivering_dealloc}, {Py_tp_traverse, delivering_traverse}, {Py_tp_clear, delivering_clear},
	{Py_tp_members, delivering_members}, {0},
};

static PyType_Spec training_spec = {"_dptrace_native.Training", sizeof(Training), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, training_slots};
static PyType_Spec delivering_spec = {
	"_dptrace_native.Delivering", sizeof(Delivering), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, delivering_slots};

int delivering_ready(PyObject *module)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		names[i].name = PyUnicode_InternFromString(names[i].text);
		if (!names[i].name)
			return -1;
	}
	training_type = add_type(module, "Training", &training_spec);
	delivering_type = training_type ? add_type(module, "Delivering", &delivering_spec) : NULL;
	return delivering_type ? 0 : -1;
}
