/* Rest: what cached code calls to go on after a graph break.
 *
 * It enters the captures of a resume function as an entry point does, so that no hook is needed around a
 * broken frame.  A constant of cached code, it must keep nothing alive that could lead back to that code,
 * which no garbage collection sees through: globals and builtins are those of the calling frame, and the
 * callback is the one in whose name the cached code runs.
 */
#include "eval.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyCodeObject *code;
} de_Rest;

static PyObject *
rest_function(PyCodeObject *code, PyObject *globals, PyObject *builtins, PyObject *closure)
{
    PyObject *function = PyFunction_New((PyObject *)code, globals);
    if (function != NULL) {
        PyFunctionObject *fields = (PyFunctionObject *)function;
        Py_XSETREF(fields->func_closure, Py_XNewRef(closure));
        Py_SETREF(fields->func_builtins, Py_NewRef(builtins));
    }
    return function;
}

/* Call with the values of the frame's slots. */
static PyObject *
rest_run(PyCodeObject *code, PyObject *closure, PyObject *const *values, Py_ssize_t count)
{
    PyObject *globals = PyEval_GetGlobals();
    PyObject *builtins = PyEval_GetBuiltins();
    PyObject *callback = Py_XNewRef(de_thread.active);
    PyObject *function = NULL, *result = NULL;
    de_Guarded *found = NULL;
    de_Cache *cache = de_cache_get(code);
    int status = 0;
    if (cache != NULL && cache->size > 0 && callback != NULL) {
        status = de_hook_find(cache, callback, values, closure, globals, builtins, &found);
    }
    if (status == 0 && found != NULL) {
        function = de_run_function(found, globals, builtins, closure, code->co_qualname);
        if (function != NULL) {
            result = de_hook_run_cached(callback, found, function, values, (size_t)count);
        }
        Py_DECREF(found);
    }
    else if (status == 0) {
        function = rest_function(code, globals, builtins, closure);
        if (function != NULL) {
            de_thread.missed = cache != NULL && cache->size > 0 ? code : NULL;
            result = de_hook_call(callback, function, values, (size_t)count, NULL);
            de_thread.missed = NULL;
        }
    }
    Py_XDECREF(function);
    Py_XDECREF(callback);
    return result;
}

static PyObject *
rest_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    PyCodeObject *code = ((de_Rest *)op)->code;
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    PyObject *closure = NULL;
    if (code->co_nfreevars > 0 && nargs > 0) {
        closure = *args++;
        nargs--;
    }
    if (nargs != code->co_argcount || (kwnames != NULL && PyTuple_GET_SIZE(kwnames) > 0) ||
        (code->co_nfreevars > 0 && (closure == NULL || !PyTuple_CheckExact(closure) ||
                                    PyTuple_GET_SIZE(closure) != code->co_nfreevars))) {
        PyErr_Format(PyExc_TypeError, "%U is called by cached code only", code->co_qualname);
        return NULL;
    }
    if (de_stack_left() == DE_STACK_HARD) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
        return NULL;
    }
    PyThreadState *tstate = PyThreadState_Get();
    Py_INCREF(op);
    de_recursion_lend(tstate);
    PyObject *result = rest_run(code, closure, args, nargs);
    de_recursion_repay(tstate);
    Py_DECREF(op);
    return result;
}

static PyObject *
rest_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", NULL};
    PyCodeObject *code;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!:Rest", names, &PyCode_Type, &code)) {
        return NULL;
    }
    if (code->co_flags & (CO_VARARGS | CO_VARKEYWORDS) || code->co_kwonlyargcount > 0) {
        PyErr_Format(PyExc_TypeError, "%U: the rest of a function takes positional arguments only",
                     code->co_qualname);
        return NULL;
    }
    de_Rest *self = (de_Rest *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->vectorcall = rest_vectorcall;
        self->code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    }
    return (PyObject *)self;
}

static void
rest_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    Py_DECREF(((de_Rest *)op)->code);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyObject *
rest_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<rest %U>", ((de_Rest *)op)->code->co_qualname);
}

static PyMemberDef rest_members[] = {
    {"code", T_OBJECT, offsetof(de_Rest, code), READONLY, "code of the resume function"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(de_Rest, vectorcall), READONLY, NULL},
    {NULL},
};

PyDoc_STRVAR(rest_doc, "Rest(code, /)\n--\n\n"
                       "What cached code calls to go on after a graph break: captures of a resume function.");

static PyType_Slot rest_slots[] = {
    {Py_tp_doc, (void *)rest_doc},  {Py_tp_new, rest_new},   {Py_tp_dealloc, rest_dealloc},
    {Py_tp_call, PyVectorcall_Call}, {Py_tp_repr, rest_repr}, {Py_tp_members, rest_members},
    {0, NULL},
};

static PyType_Spec rest_spec = {
    .name = "dynamo.eval._frame.Rest",
    .basicsize = sizeof(de_Rest),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = rest_slots,
};

PyTypeObject *
de_rest_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &rest_spec, NULL);
}
