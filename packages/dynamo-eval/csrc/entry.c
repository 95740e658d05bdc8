/* EntryPoint: the callable that checks guards and enters cached code without the hook.
 *
 * It binds the arguments as Python does, asks the captures of the function's code, and calls a function
 * over the cached code with the bound arguments.  The hook is set only when no capture fits, and while
 * cached code runs that may call frames worth capturing.  An entry point without a callback runs its
 * callable with capture off.
 */
#include "eval.h"

#include <structmember.h>
#include <string.h>

typedef struct {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *wrapped;
    PyFunctionObject *function;  /* the function behind `wrapped`, or NULL */
    PyObject *receiver;          /* `self` when `wrapped` is a bound method, or NULL */
    PyObject *callback;          /* or NULL: capture is off inside */
    PyObject *dict;
    PyObject *weakrefs;
    de_Runner *runners;
} de_Entry;

static PyTypeObject *entry_class;
static PyTypeObject *entry_function_class;

/* ---- functions over cached code ---- */

static void
entry_free_runner(de_Runner *runner)
{
    if (runner->guarded_link != NULL) {
        *runner->guarded_link = runner->guarded_next;
        if (runner->guarded_next != NULL) {
            runner->guarded_next->guarded_link = runner->guarded_link;
        }
    }
    Py_XDECREF(runner->function);
    PyMem_Free(runner);
}

/* Take runners out whose capture has been released. */
static void
entry_sweep_runners(de_Entry *self)
{
    for (de_Runner **link = &self->runners; *link != NULL;) {
        de_Runner *runner = *link;
        if (runner->guarded == NULL) {
            *link = runner->next;
            entry_free_runner(runner);
        }
        else {
            link = &runner->next;
        }
    }
}

/* New reference to a new function over the capture, remembered unless the capture has left its cache. */
static PyObject *
entry_add_runner(de_Entry *self, de_Guarded *guarded)
{
    PyFunctionObject *function = self->function;
    PyObject *substitute = de_run_function(guarded, function->func_globals, function->func_builtins,
                                           function->func_closure, function->func_qualname);
    if (substitute == NULL || guarded->cache == NULL) {
        return substitute;
    }
    entry_sweep_runners(self);
    de_Runner *runner = PyMem_Malloc(sizeof(de_Runner));
    if (runner == NULL) {
        Py_DECREF(substitute);
        return PyErr_NoMemory();
    }
    runner->guarded = guarded;
    runner->function = Py_NewRef(substitute);
    runner->guarded_next = guarded->runners;
    runner->guarded_link = &guarded->runners;
    if (guarded->runners != NULL) {
        guarded->runners->guarded_link = &runner->guarded_next;
    }
    guarded->runners = runner;
    runner->next = self->runners;
    self->runners = runner;
    return substitute;
}

/* New reference to the function that runs this capture for this entry point. */
static inline PyObject *
entry_runner(de_Entry *self, de_Guarded *guarded)
{
    for (de_Runner **link = &self->runners; *link != NULL; link = &(*link)->next) {
        de_Runner *runner = *link;
        if (runner->guarded == guarded) {
            *link = runner->next;
            runner->next = self->runners;
            self->runners = runner;
            return Py_NewRef(runner->function);
        }
    }
    return entry_add_runner(self, guarded);
}

/* ---- calls ---- */

/* Find a capture for the call and bind its arguments. 1 found, 0 none, -1 error. `bound` is filled in when 1. */
static inline int
entry_find(de_Entry *self, de_Bound *bound, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
           de_Guarded **found)
{
    PyFunctionObject *function = self->function;
    PyCodeObject *code = (PyCodeObject *)function->func_code;
    de_Cache *cache = de_cache_get(code);
    if (cache == NULL || cache->size == 0) {
        return 0;
    }
    int status = de_bind(bound, function, args, nargs, kwnames);
    if (status <= 0) {
        return status;
    }
    status = de_hook_find(cache, self->callback, bound->values, function->func_closure, function->func_globals,
                          function->func_builtins, found);
    if (status < 0 || *found == NULL) {
        de_bound_clear(bound);
        if (status == 0) {
            de_thread.missed = code;
        }
        return status;
    }
    return 1;
}

/* Call of the function behind, `receiver` included in the arguments. */
static PyObject *
entry_call_function(de_Entry *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    de_Bound bound;
    de_Guarded *found = NULL;
    int status = entry_find(self, &bound, args, PyVectorcall_NARGS(nargsf), kwnames, &found);
    if (status < 0) {
        return NULL;
    }
    if (status == 0) {
        PyObject *plain = de_hook_call(self->callback, (PyObject *)self->function, args, nargsf, kwnames);
        de_thread.missed = NULL;
        return plain;
    }
    PyObject *result = NULL;
    PyObject *runner = entry_runner(self, found);
    if (runner != NULL) {
        result = de_hook_run_cached(self->callback, found, runner, bound.values, (size_t)bound.count);
        Py_DECREF(runner);
    }
    de_bound_clear(&bound);
    Py_DECREF(found);
    return result;
}

/* Put the receiver of a bound method before the arguments. */
static PyObject *
entry_call_method(de_Entry *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    Py_ssize_t total = nargs + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    PyObject *small[DE_BOUND_SMALL];
    PyObject **all = small;
    if (total + 1 > DE_BOUND_SMALL) {
        all = PyMem_Malloc((size_t)(total + 1) * sizeof(PyObject *));
        if (all == NULL) {
            return PyErr_NoMemory();
        }
    }
    all[0] = self->receiver;
    memcpy(all + 1, args, (size_t)total * sizeof(PyObject *));
    PyObject *result = entry_call_function(self, all, (size_t)nargs + 1, kwnames);
    if (all != small) {
        PyMem_Free(all);
    }
    return result;
}

static PyObject *
entry_vectorcall(PyObject *op, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    de_Entry *self = (de_Entry *)op;
    PyObject *result;
    if (de_stack_left() == DE_STACK_HARD) {
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
        return NULL;
    }
    PyThreadState *tstate = PyThreadState_Get();
    Py_INCREF(op);
    de_recursion_lend(tstate);
    if (self->callback == NULL || self->function == NULL) {
        result = de_hook_call(self->callback, self->wrapped, args, nargsf, kwnames);
    }
    else if (self->receiver != NULL) {
        result = entry_call_method(self, args, nargsf, kwnames);
    }
    else {
        result = entry_call_function(self, args, nargsf, kwnames);
    }
    de_recursion_repay(tstate);
    Py_DECREF(op);
    return result;
}

/* ---- making and freeing ---- */

static int
entry_update_from(PyObject *self, PyObject *wrapped)
{
    PyObject *functools = PyImport_ImportModule("functools");
    PyObject *done = functools ? PyObject_CallMethod(functools, "update_wrapper", "OO", self, wrapped) : NULL;
    Py_XDECREF(functools);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static PyObject *
entry_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"", "", NULL};
    PyObject *wrapped, *callback;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:EntryPoint", names, &wrapped, &callback)) {
        return NULL;
    }
    if (!PyCallable_Check(wrapped)) {
        PyErr_Format(PyExc_TypeError, "an entry point is made for a callable, not %.200s", Py_TYPE(wrapped)->tp_name);
        return NULL;
    }
    if (callback != Py_None && !PyCallable_Check(callback)) {
        PyErr_Format(PyExc_TypeError, "the callback is a callable or None, not %.200s", Py_TYPE(callback)->tp_name);
        return NULL;
    }
    if (type == entry_class && PyFunction_Check(wrapped)) {
        type = entry_function_class;
    }
    else if (type == entry_function_class && !PyFunction_Check(wrapped)) {
        PyErr_Format(PyExc_TypeError, "a function entry point is made for a function, not %.200s",
                     Py_TYPE(wrapped)->tp_name);
        return NULL;
    }
    de_Entry *self = (de_Entry *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->vectorcall = entry_vectorcall;
    self->wrapped = Py_NewRef(wrapped);
    self->callback = callback == Py_None ? NULL : Py_NewRef(callback);
    if (PyFunction_Check(wrapped)) {
        self->function = (PyFunctionObject *)Py_NewRef(wrapped);
    }
    else if (PyMethod_Check(wrapped) && PyFunction_Check(PyMethod_GET_FUNCTION(wrapped))) {
        self->function = (PyFunctionObject *)Py_NewRef(PyMethod_GET_FUNCTION(wrapped));
        self->receiver = Py_NewRef(PyMethod_GET_SELF(wrapped));
    }
    if (entry_update_from((PyObject *)self, wrapped) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int
entry_traverse(PyObject *op, visitproc visit, void *arg)
{
    de_Entry *self = (de_Entry *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->wrapped);
    Py_VISIT(self->function);
    Py_VISIT(self->receiver);
    Py_VISIT(self->callback);
    Py_VISIT(self->dict);
    for (de_Runner *runner = self->runners; runner != NULL; runner = runner->next) {
        Py_VISIT(runner->function);
    }
    return 0;
}

static int
entry_clear(PyObject *op)
{
    de_Entry *self = (de_Entry *)op;
    while (self->runners != NULL) {
        de_Runner *runner = self->runners;
        self->runners = runner->next;
        entry_free_runner(runner);
    }
    Py_CLEAR(self->function);
    Py_CLEAR(self->receiver);
    Py_CLEAR(self->callback);
    Py_CLEAR(self->dict);
    return 0;
}

static void
entry_dealloc(PyObject *op)
{
    de_Entry *self = (de_Entry *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    entry_clear(op);
    Py_CLEAR(self->wrapped);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- like a function ---- */

static PyObject *
entry_getattro(PyObject *op, PyObject *name)
{
    PyObject *value = PyObject_GenericGetAttr(op, name);
    if (value == NULL && PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Clear();
        value = PyObject_GetAttr(((de_Entry *)op)->wrapped, name);
    }
    return value;
}

static PyObject *
entry_descr_get(PyObject *op, PyObject *instance, PyObject *owner)
{
    return instance == NULL || instance == Py_None ? Py_NewRef(op) : PyMethod_New(op, instance);
}

static PyObject *
entry_repr(PyObject *op)
{
    de_Entry *self = (de_Entry *)op;
    return PyUnicode_FromFormat("<%s %R>", self->callback ? "entry point of" : "uncaptured", self->wrapped);
}

static PyObject *
entry_reduce(PyObject *op, PyObject *unused)
{
    /* As a function: by name. */
    return PyObject_GetAttrString(op, "__qualname__");
}

static PyObject *
entry_copy(PyObject *op, PyObject *unused)
{
    return Py_NewRef(op);
}

static PyObject *
entry_deepcopy(PyObject *op, PyObject *memo)
{
    de_Entry *self = (de_Entry *)op;
    if (self->receiver == NULL && self->function != NULL) {
        return Py_NewRef(op);
    }
    PyObject *result = NULL;
    PyObject *copy = PyImport_ImportModule("copy");
    PyObject *wrapped = copy ? PyObject_CallMethod(copy, "deepcopy", "OO", self->wrapped, memo) : NULL;
    if (wrapped != NULL) {
        result = PyObject_CallFunctionObjArgs((PyObject *)Py_TYPE(op), wrapped,
                                              self->callback ? self->callback : Py_None, NULL);
    }
    Py_XDECREF(copy);
    Py_XDECREF(wrapped);
    return result;
}

static PyMemberDef entry_members[] = {
    {"capture_callback", T_OBJECT, offsetof(de_Entry, callback), READONLY, "asked about frames to capture, or None"},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(de_Entry, vectorcall), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(de_Entry, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(de_Entry, weakrefs), READONLY, NULL},
    {NULL},
};

static PyGetSetDef entry_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyMethodDef entry_methods[] = {
    {"__class_getitem__", Py_GenericAlias, METH_O | METH_CLASS, NULL},
    {"__reduce__", entry_reduce, METH_NOARGS, PyDoc_STR("__reduce__($self, /)\n--\n\nPickled by name.")},
    {"__copy__", entry_copy, METH_NOARGS, PyDoc_STR("__copy__($self, /)\n--\n\nItself, as a function.")},
    {"__deepcopy__", entry_deepcopy, METH_O,
     PyDoc_STR("__deepcopy__($self, memo, /)\n--\n\nItself for a function; for a bound method, one over a deep copy.")},
    {NULL},
};

PyDoc_STRVAR(entry_doc,
             "EntryPoint(callable, callback, /)\n--\n\n"
             "Callable that runs captures of the given one when their guards hold, without the frame hook.");

static PyType_Slot entry_slots[] = {
    {Py_tp_doc, (void *)entry_doc},
    {Py_tp_new, entry_new},
    {Py_tp_dealloc, entry_dealloc},
    {Py_tp_traverse, entry_traverse},
    {Py_tp_clear, entry_clear},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_getattro, entry_getattro},
    {Py_tp_repr, entry_repr},
    {Py_tp_members, entry_members},
    {Py_tp_getset, entry_getset},
    {Py_tp_methods, entry_methods},
    {0, NULL},
};

static PyType_Spec entry_spec = {
    .name = "dynamo.eval._frame.EntryPoint",
    .basicsize = sizeof(de_Entry),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = entry_slots,
};

PyDoc_STRVAR(entry_function_doc, "FunctionEntryPoint(function, callback, /)\n--\n\n"
                                 "Entry point of a function; binds to instances as a function does.");

static PyType_Slot entry_function_slots[] = {
    {Py_tp_doc, (void *)entry_function_doc},
    {Py_tp_descr_get, entry_descr_get},
    {0, NULL},
};

static PyType_Spec entry_function_spec = {
    .name = "dynamo.eval._frame.FunctionEntryPoint",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = entry_function_slots,
};

PyTypeObject *
de_entry_type(PyObject *module)
{
    entry_class = (PyTypeObject *)PyType_FromModuleAndSpec(module, &entry_spec, NULL);
    return (PyTypeObject *)Py_XNewRef((PyObject *)entry_class);
}

PyTypeObject *
de_entry_function_type(PyObject *module)
{
    entry_function_class =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &entry_function_spec, (PyObject *)entry_class);
    return (PyTypeObject *)Py_XNewRef((PyObject *)entry_function_class);
}
