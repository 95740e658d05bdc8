/* CPython's differences and private entry points, in one place. */
#ifndef DG_COMPAT_H
#define DG_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

/* 3.13 keeps the declaration in internal/pycore_setobject.h; the function is exported all the same. */
#if PY_VERSION_HEX >= 0x030D0000
extern int _PySet_NextEntry(PyObject *set, Py_ssize_t *pos, PyObject **key, Py_hash_t *hash);
#endif

/* Objects/iterobject.c and Objects/tupleobject.c keep this layout from 3.11 to 3.13: position, then the tuple
 * (NULL once exhausted). */
typedef struct {
    PyObject_HEAD
    Py_ssize_t it_index;
    PyTupleObject *it_seq;
} dg_TupleIterator;

/* The object of a weak reference: borrowed, or NULL when it died. */
static inline PyObject *
dg_weakref_object(PyObject *ref)
{
#if PY_VERSION_HEX >= 0x030D0000
    /* PyWeakref_GetRef makes a new reference; the referent is kept alive by whoever holds it while the GIL is ours. */
    PyObject *object = NULL;
    if (PyWeakref_GetRef(ref, &object) <= 0) {
        return NULL;
    }
    Py_DECREF(object);
    return object;
#else
    PyObject *object = PyWeakref_GET_OBJECT(ref);
    return object == Py_None ? NULL : object;
#endif
}

#endif
