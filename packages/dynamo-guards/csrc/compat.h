/* CPython's differences and private entry points, in one place. */
#ifndef DG_COMPAT_H
#define DG_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <stdint.h>

/* compat_311.c, compat_312.c: a mark is a word of memory that changes whenever the items of its dict do (the order that
 * OrderedDict.move_to_end changes is not among them). */
#pragma GCC visibility push(hidden)
#define DG_MARKS_HAVE_EPOCH (PY_VERSION_HEX >= 0x030C0000)
extern uint64_t dg_marks_epoch;              /* with an epoch: stands still while no mark changes */
int dg_marks_setup(void);                    /* 1 when dicts can be followed here */
const uint64_t *dg_mark_open(PyObject *dict); /* NULL, without an exception, when this dict cannot be followed */
int dg_mark_lives(const uint64_t *mark);     /* whether the dict can still be looked at */
void dg_mark_close(const uint64_t *mark);
Py_ssize_t dg_marks_open(void);              /* how many marks keep something for themselves */
#pragma GCC visibility pop

/* The dict of a class: borrowed from the class.  From 3.12 on that of a static type lies in the interpreter. */
static inline PyObject *
dg_class_dict(PyTypeObject *cls)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *dict = PyType_GetDict(cls);
    Py_XDECREF(dict);
    return dict;
#else
    return cls->tp_dict;
#endif
}

/* Where a class keeps its version, or NULL when it has none now.  A change of the class or of one of its bases makes it 0,
 * and no version is given twice (Objects/typeobject.c, type_modified_unlocked and assign_version_tag). */
static inline const unsigned int *
dg_class_mark(PyTypeObject *cls, PyObject *name)
{
    (void)_PyType_Lookup(cls, name); /* gives a version to a class without one */
    return cls->tp_version_tag != 0 ? &cls->tp_version_tag : NULL;
}

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
