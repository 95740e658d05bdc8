/* Process and thread state of torch that no value shows: grad mode, inference mode, default dtype …
 *
 * Each state is a function of libtorch found by its symbol when dynamo.guards is imported, and used only after Python
 * saw it follow torch's public setter (see ambient.py).  A state without a symbol is checked through Python instead.
 */
#include "check.h"

#include <dlfcn.h>
#include <string.h>

enum { AMBIENT_BOOL, AMBIENT_INT8, AMBIENT_INT, AMBIENT_INT64 };

static const uint64_t ambient_masks[] = {
    [AMBIENT_BOOL] = 0xFF, [AMBIENT_INT8] = 0xFF, [AMBIENT_INT] = 0xFFFFFFFF, [AMBIENT_INT64] = UINT64_MAX};

dg_Ambient dg_ambients[DG_AMBIENT_MAX];
Py_ssize_t dg_ambient_count = 0;

/* ambient_register(library, symbol, context_symbol | None, kind, argument) -> index or None */
static PyObject *
ambient_register(PyObject *module, PyObject *args)
{
    const char *library, *symbol, *context;
    int kind, argument;
    if (!PyArg_ParseTuple(args, "sszii", &library, &symbol, &context, &kind, &argument)) {
        return NULL;
    }
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *function = handle != NULL ? dlsym(handle, symbol) : NULL;
    void *getter = handle != NULL && context != NULL ? dlsym(handle, context) : NULL;
    if (function == NULL || (context != NULL && getter == NULL) || dg_ambient_count == DG_AMBIENT_MAX ||
        kind < AMBIENT_BOOL || kind > AMBIENT_INT64) {
        Py_RETURN_NONE;
    }
    dg_Ambient *entry = &dg_ambients[dg_ambient_count];
    memcpy(&entry->read, &function, sizeof function);
    entry->argument = getter != NULL ? (intptr_t)((void *(*)(void))getter)() : argument;
    entry->mask = ambient_masks[kind];
    return PyLong_FromSsize_t(dg_ambient_count++);
}

static PyObject *
ambient_value(PyObject *module, PyObject *index)
{
    Py_ssize_t which = PyLong_AsSsize_t(index);
    if (which == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (which < 0 || which >= dg_ambient_count) {
        PyErr_SetString(PyExc_IndexError, "no such ambient state");
        return NULL;
    }
    return PyLong_FromSsize_t(dg_ambient_read(&dg_ambients[which]));
}

PyMethodDef dg_ambient_methods[] = {
    {"ambient_register", ambient_register, METH_VARARGS,
     PyDoc_STR("ambient_register($module, library, symbol, context, kind, argument, /)\n--\n\n"
               "Number of the ambient state that a function of a loaded library answers, or None when it is not there.")},
    {"ambient_value", ambient_value, METH_O,
     PyDoc_STR("ambient_value($module, index, /)\n--\n\nThe present number of an ambient state.")},
    {NULL, NULL, 0, NULL},
};
