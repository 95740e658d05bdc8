/* Arguments of a call → the slots that a frame starts with, as `initialize_locals` of CPython binds them.
 *
 * It never raises for arguments that do not fit: it says so, the caller calls the function itself, and
 * Python raises its own message.
 */
#include "eval.h"

#include <string.h>

void
de_bound_clear(de_Bound *self)
{
    for (Py_ssize_t i = 0; i < self->owned; i++) {
        Py_XDECREF(self->slots[i]);
    }
    if (self->slots != self->small) {
        PyMem_Free(self->slots);
    }
}

/* Slot of the argument called `name` among those that may be given by keyword, or -1. */
static Py_ssize_t
bind_slot(PyCodeObject *code, PyObject *name)
{
    PyObject **names = &PyTuple_GET_ITEM(code->co_localsplusnames, 0);
    Py_ssize_t end = code->co_argcount + code->co_kwonlyargcount;
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        if (names[i] == name) {
            return i;
        }
    }
    for (Py_ssize_t i = code->co_posonlyargcount; i < end; i++) {
        if (PyUnicode_Compare(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* 1, 0 or -1 as de_bind. */
static int
bind_keywords(PyCodeObject *code, PyObject **slots, PyObject *const *values, PyObject *kwnames, PyObject *extra)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        if (!PyUnicode_Check(name)) {
            return 0;
        }
        Py_ssize_t slot = bind_slot(code, name);
        if (slot >= 0) {
            if (slots[slot] != NULL) {
                return 0;
            }
            slots[slot] = Py_NewRef(values[i]);
        }
        else if (extra == NULL) {
            return 0;
        }
        else if (PyDict_SetItem(extra, name, values[i]) < 0) {
            return -1;
        }
    }
    return 1;
}

static int
bind_defaults(PyFunctionObject *function, PyCodeObject *code, PyObject **slots)
{
    PyObject *defaults = function->func_defaults;
    Py_ssize_t count = defaults ? PyTuple_GET_SIZE(defaults) : 0;
    Py_ssize_t first = code->co_argcount - count;
    for (Py_ssize_t i = 0; i < code->co_argcount; i++) {
        if (slots[i] == NULL) {
            if (i < first) {
                return 0;
            }
            slots[i] = Py_NewRef(PyTuple_GET_ITEM(defaults, i - first));
        }
    }
    for (Py_ssize_t i = code->co_argcount; i < code->co_argcount + code->co_kwonlyargcount; i++) {
        if (slots[i] == NULL) {
            PyObject *name = PyTuple_GET_ITEM(code->co_localsplusnames, i);
            PyObject *value = function->func_kwdefaults ? PyDict_GetItemWithError(function->func_kwdefaults, name) : NULL;
            if (value == NULL) {
                return PyErr_Occurred() ? -1 : 0;
            }
            slots[i] = Py_NewRef(value);
        }
    }
    return 1;
}

/* Fill the slots, which are NULL, with references of their own. 1, 0 or -1 as de_bind. */
static int
bind_slots(PyObject **slots, PyFunctionObject *function, PyCodeObject *code, PyObject *const *args, Py_ssize_t nargs,
           PyObject *kwnames)
{
    Py_ssize_t positional = nargs < code->co_argcount ? nargs : code->co_argcount;
    Py_ssize_t next = code->co_argcount + code->co_kwonlyargcount;
    PyObject *extra = NULL;
    for (Py_ssize_t i = 0; i < positional; i++) {
        slots[i] = Py_NewRef(args[i]);
    }
    if (code->co_flags & CO_VARARGS) {
        PyObject *rest = slots[next++] = PyTuple_New(nargs - positional);
        if (rest == NULL) {
            return -1;
        }
        for (Py_ssize_t i = positional; i < nargs; i++) {
            PyTuple_SET_ITEM(rest, i - positional, Py_NewRef(args[i]));
        }
    }
    else if (nargs > positional) {
        return 0;
    }
    if (code->co_flags & CO_VARKEYWORDS) {
        extra = slots[next] = PyDict_New();
        if (extra == NULL) {
            return -1;
        }
    }
    int status = kwnames ? bind_keywords(code, slots, args + nargs, kwnames, extra) : 1;
    return status == 1 ? bind_defaults(function, code, slots) : status;
}

int
de_bind(de_Bound *self, PyFunctionObject *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames)
{
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    self->slots = self->small;
    self->owned = 0;
    self->count = de_code_arguments(code);
    if (kwnames == NULL && nargs == code->co_argcount && nargs == self->count) {
        self->values = args;
        return 1;
    }
    if (self->count > DE_BOUND_SMALL) {
        self->slots = PyMem_Malloc((size_t)self->count * sizeof(PyObject *));
        if (self->slots == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    memset(self->slots, 0, (size_t)self->count * sizeof(PyObject *));
    self->owned = self->count;
    self->values = self->slots;
    int status = bind_slots(self->slots, function, code, args, nargs, kwnames);
    if (status != 1) {
        de_bound_clear(self);
    }
    return status;
}
