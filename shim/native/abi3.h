/* What we use of CPython's stable ABI (limited API 3.8, and a few newer functions that may be missing), and of the libc that the
 * interpreter has loaded, declared here so that no header of either is needed: one build for 3.8 to 3.14, glibc and musl.
 * 64 bits, little endian. */
#ifndef ABI3_H
#define ABI3_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;
typedef u64 size_t;
typedef i64 Py_ssize_t;
_Static_assert(sizeof(void *) == 8 && sizeof(long) == 8, "64 bits");

#define NULL ((void *)0)
#define WEAK __attribute__((weak))
#define EXPORT __attribute__((visibility("default")))
#define OFFSET(type, field) __builtin_offsetof(type, field)

typedef struct _typeobject {
	char opaque;
} PyTypeObject;
typedef struct _object {
	Py_ssize_t ob_refcnt;
	PyTypeObject *ob_type;
} PyObject;

typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef PyObject *(*FastFunction)(PyObject *, PyObject *const *, Py_ssize_t);
typedef int (*visitproc)(PyObject *, void *);

typedef struct {
	const char *ml_name;
	void *ml_meth;
	int ml_flags;
	const char *ml_doc;
} PyMethodDef;
#define METH_VARARGS 0x0001
#define METH_KEYWORDS 0x0002
#define METH_NOARGS 0x0004
#define METH_O 0x0008
#define METH_FASTCALL 0x0080 /* since 3.7, documented as stable since 3.10 */

typedef struct {
	const char *name;
	int type;
	Py_ssize_t offset;
	int flags;
	const char *doc;
} PyMemberDef;
#define T_OBJECT 6
#define T_LONGLONG 17
#define T_ULONGLONG 18
#define T_PYSSIZET 19
#define READONLY 1

typedef struct {
	int slot;
	void *pfunc;
} PyType_Slot;
typedef struct {
	const char *name;
	int basicsize;
	int itemsize;
	unsigned int flags;
	PyType_Slot *slots;
} PyType_Spec;
#define Py_tp_call 50
#define Py_tp_clear 51
#define Py_tp_dealloc 52
#define Py_tp_descr_get 54
#define Py_tp_doc 56
#define Py_tp_getattro 58
#define Py_tp_is_gc 61
#define Py_tp_methods 64
#define Py_tp_new 65
#define Py_tp_repr 66
#define Py_tp_setattro 69
#define Py_tp_traverse 71
#define Py_tp_members 72
#define Py_TPFLAGS_BASETYPE (1u << 10)
#define Py_TPFLAGS_HAVE_GC (1u << 14)
#define Py_TPFLAGS_METHOD_DESCRIPTOR (1u << 17)
#define Py_TPFLAGS_DEFAULT (1u << 18)
#define Py_TPFLAGS_LONG_SUBCLASS (1ul << 24)
#define Py_TPFLAGS_TUPLE_SUBCLASS (1ul << 26)
#define Py_TPFLAGS_BYTES_SUBCLASS (1ul << 27)

typedef struct {
	int slot;
	void *value;
} PyModuleDef_Slot;
typedef struct {
	PyObject ob_base;
	PyObject *(*m_init)(void);
	Py_ssize_t m_index;
	PyObject *m_copy;
	const char *m_name;
	const char *m_doc;
	Py_ssize_t m_size;
	PyMethodDef *m_methods;
	PyModuleDef_Slot *m_slots;
	void *m_traverse, *m_clear, *m_free;
} PyModuleDef;
#define Py_mod_exec 2

typedef struct { /* as it is since 3.0; stable since 3.11 */
	void *buf;
	PyObject *obj;
	Py_ssize_t len, itemsize;
	int readonly, ndim;
	char *format;
	Py_ssize_t *shape, *strides, *suboffsets;
	void *internal;
} Py_buffer;
#define PyBUF_SIMPLE 0
#define PyBUF_WRITABLE 1

void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);
const char *Py_GetVersion(void);

PyObject *PyModuleDef_Init(PyModuleDef *);
int PyModule_AddObject(PyObject *, const char *, PyObject *);
PyObject *PyImport_ImportModule(const char *);

PyObject *PyType_FromSpec(PyType_Spec *);
PyObject *PyType_GenericAlloc(PyTypeObject *, Py_ssize_t);
int PyType_IsSubtype(PyTypeObject *, PyTypeObject *);
unsigned long PyType_GetFlags(PyTypeObject *);
void *PyType_GetSlot(PyTypeObject *, int);
void PyObject_GC_UnTrack(void *);
void PyObject_GC_Del(void *);
int PyObject_GC_IsTracked(PyObject *) WEAK; /* since 3.9 */
void PyObject_ClearWeakRefs(PyObject *);

PyObject *PyObject_Call(PyObject *, PyObject *, PyObject *);
PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
PyObject *PyObject_CallMethod(PyObject *, const char *, const char *, ...);
PyObject *PyObject_GenericGetAttr(PyObject *, PyObject *);
PyObject *PyObject_GetAttr(PyObject *, PyObject *);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
int PyObject_SetAttr(PyObject *, PyObject *, PyObject *);
PyObject *PyObject_Repr(PyObject *);
int PyObject_IsTrue(PyObject *);
int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
void PyBuffer_Release(Py_buffer *);

int PyArg_UnpackTuple(PyObject *, const char *, Py_ssize_t, Py_ssize_t, ...);
PyObject *PyBool_FromLong(long);
PyObject *PyBytes_FromStringAndSize(const char *, Py_ssize_t);
PyCFunction PyCFunction_GetFunction(PyObject *);
PyObject *PyCFunction_GetSelf(PyObject *);
PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
Py_ssize_t PyDict_Size(PyObject *);
PyObject *PyDict_GetItem(PyObject *, PyObject *);
int PyDict_SetItem(PyObject *, PyObject *, PyObject *);
int PyDict_DelItem(PyObject *, PyObject *);
int PyDict_Next(PyObject *, Py_ssize_t *, PyObject **, PyObject **);
int PyIndex_Check(PyObject *);
PyObject *PyList_AsTuple(PyObject *);
PyObject *PyList_New(Py_ssize_t);
Py_ssize_t PyList_Size(PyObject *);
PyObject *PyList_GetItem(PyObject *, Py_ssize_t);
int PyList_SetItem(PyObject *, Py_ssize_t, PyObject *);
i64 PyLong_AsLongLong(PyObject *);
u64 PyLong_AsUnsignedLongLong(PyObject *);
PyObject *PyLong_FromLongLong(i64);
PyObject *PyLong_FromUnsignedLongLong(u64);
PyObject *PyNumber_Index(PyObject *);
PyObject *PyTuple_New(Py_ssize_t);
PyObject *PyTuple_GetItem(PyObject *, Py_ssize_t);
PyObject *PyTuple_GetSlice(PyObject *, Py_ssize_t, Py_ssize_t);
Py_ssize_t PyTuple_Size(PyObject *);
int PyTuple_SetItem(PyObject *, Py_ssize_t, PyObject *);
const char *PyUnicode_AsUTF8AndSize(PyObject *, Py_ssize_t *);
PyObject *PyUnicode_InternFromString(const char *);
int PyUnicode_CompareWithASCIIString(PyObject *, const char *);
char *PyBytes_AsString(PyObject *);
Py_ssize_t PyBytes_Size(PyObject *);

void PyErr_Clear(void);
int PyErr_ExceptionMatches(PyObject *);
void PyErr_Fetch(PyObject **, PyObject **, PyObject **);
void PyErr_Restore(PyObject *, PyObject *, PyObject *);
void PyErr_NormalizeException(PyObject **, PyObject **, PyObject **);
void PyErr_GetExcInfo(PyObject **, PyObject **, PyObject **);
void PyErr_SetExcInfo(PyObject *, PyObject *, PyObject *);
PyObject *PyErr_NoMemory(void);
PyObject *PyErr_Occurred(void);
void PyErr_SetString(PyObject *, const char *);
int PyException_SetTraceback(PyObject *, PyObject *);

void *PyMem_Realloc(void *, size_t);
void PyMem_Free(void *);
void *PyThreadState_Get(void);
u64 PyThread_get_thread_ident(void);
int Py_EnterRecursiveCall(const char *) WEAK; /* functions since 3.9 */
void Py_LeaveRecursiveCall(void) WEAK;

extern PyObject _Py_NoneStruct, _Py_FalseStruct, _Py_TrueStruct;
#define Py_None (&_Py_NoneStruct)
#define Py_False (&_Py_FalseStruct)
#define Py_True (&_Py_TrueStruct)
extern PyTypeObject PyCFunction_Type, PyDict_Type, PyList_Type, PyLong_Type, PyMemoryView_Type, PyTuple_Type, PyUnicode_Type;
extern PyObject *PyExc_Exception, *PyExc_ImportError, *PyExc_IndexError, *PyExc_TypeError, *PyExc_ValueError;

struct timespec {
	i64 tv_sec, tv_nsec;
};
#define CLOCK_MONOTONIC 1
#define CLOCK_THREAD_CPUTIME_ID 3
int clock_gettime(int, struct timespec *);
void *memcpy(void *restrict, const void *restrict, size_t);
int memcmp(const void *, const void *, size_t);

#endif
