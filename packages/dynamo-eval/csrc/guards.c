/* Asking guards: natively through the capsule of dynamo.guards, or by calling a Python `check_fn`. */
#include "eval.h"

/* What `dynamo.guards._check.C_API` points to, version 1. */
typedef struct {
    uint32_t version;
    int (*check)(PyObject *program, PyObject *const *args, PyObject *closure, PyObject *globals, PyObject *builtins);
    int (*valid)(PyObject *program);
} guards_API;

#define GUARDS_API_VERSION 1u
#define GUARDS_MODULE "dynamo.guards._check"

static const guards_API *guards_api;
static PyObject *guards_program_type;

static int
guards_load(void)
{
    if (guards_api != NULL) {
        return 0;
    }
    PyObject *module = PyImport_ImportModule(GUARDS_MODULE);
    if (module == NULL) {
        return -1;
    }
    PyObject *type = PyObject_GetAttrString(module, "GuardProgram");
    Py_DECREF(module);
    if (type == NULL) {
        return -1;
    }
    const guards_API *api = PyCapsule_Import(GUARDS_MODULE ".C_API", 0);
    if (api == NULL) {
        Py_DECREF(type);
        return -1;
    }
    if (api->version != GUARDS_API_VERSION) {
        Py_DECREF(type);
        PyErr_Format(PyExc_ImportError, "dynamo.guards offers version %u of its C interface, this needs %u",
                     (unsigned)api->version, GUARDS_API_VERSION);
        return -1;
    }
    guards_program_type = type;
    guards_api = api;
    return 0;
}

int
de_guards_accept(PyObject *program)
{
    if (guards_load() < 0) {
        return -1;
    }
    int is_program = PyObject_IsInstance(program, guards_program_type);
    if (is_program == 0) {
        PyErr_Format(PyExc_TypeError, "manager.program is a GuardProgram of dynamo.guards, not %.200s",
                     Py_TYPE(program)->tp_name);
    }
    return is_program > 0 ? 0 : -1;
}

int
de_guards_valid(de_Guarded *self)
{
    if (self->program != NULL) {
        return guards_api->valid(self->program);
    }
    /* A manager that keeps no `valid` cannot become invalid. */
    PyObject *valid = self->manager ? PyObject_GetAttrString(self->manager, "valid") : NULL;
    int answer = valid ? PyObject_IsTrue(valid) : 1;
    Py_XDECREF(valid);
    if (answer < 0 || valid == NULL) {
        PyErr_Clear();
    }
    return answer != 0;
}

int
de_guards_hold(de_Guarded *self, PyObject *const *args, PyCodeObject *code, PyObject *closure, PyObject *globals,
               PyObject *builtins)
{
    if (self->program != NULL) {
        return guards_api->check(self->program, args, closure, globals, builtins);
    }
    if (self->check_fn == NULL) {
        return 0;
    }
    PyObject *check_fn = Py_NewRef(self->check_fn);
    PyObject *answer = PyObject_Vectorcall(check_fn, args, (size_t)de_code_arguments(code), NULL);
    Py_DECREF(check_fn);
    int holds = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(answer);
    if (holds < 0 && PyErr_ExceptionMatches(PyExc_Exception) && !PyErr_ExceptionMatches(PyExc_RecursionError) &&
        !PyErr_ExceptionMatches(PyExc_MemoryError)) {
        /* What a guard reads is no longer there: it does not hold. */
        PyErr_Clear();
        return 0;
    }
    return holds;
}
