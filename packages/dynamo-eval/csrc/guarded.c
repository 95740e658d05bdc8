/* GuardedCode: new code, and the guards under which it may run in place of the old. */
#include "eval.h"

#include <structmember.h>

PyTypeObject *de_GuardedType;

/* The code with every argument positional, `*args` and `**kwargs` included: new reference. */
static PyCodeObject *
guarded_flatten(PyCodeObject *code)
{
    if (!(code->co_flags & (CO_VARARGS | CO_VARKEYWORDS)) && code->co_kwonlyargcount == 0) {
        return (PyCodeObject *)Py_NewRef((PyObject *)code);
    }
    PyObject *flat = NULL;
    PyObject *replace = PyObject_GetAttrString((PyObject *)code, "replace");
    PyObject *none = PyTuple_New(0);
    PyObject *changes = Py_BuildValue("{s:n,s:i,s:i,s:i}", "co_argcount", de_code_arguments(code),
                                      "co_posonlyargcount", 0, "co_kwonlyargcount", 0, "co_flags",
                                      code->co_flags & ~(CO_VARARGS | CO_VARKEYWORDS));
    if (replace != NULL && none != NULL && changes != NULL) {
        flat = PyObject_Call(replace, none, changes);
    }
    Py_XDECREF(replace);
    Py_XDECREF(none);
    Py_XDECREF(changes);
    return (PyCodeObject *)flat;
}

/* Attribute, or NULL without error when there is none or it is None. -1 on other errors. */
static int
guarded_lookup(PyObject *object, const char *name, PyObject **value)
{
    *value = PyObject_GetAttrString(object, name);
    if (*value == NULL) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
            return -1;
        }
        PyErr_Clear();
    }
    else if (*value == Py_None) {
        Py_CLEAR(*value);
    }
    return 0;
}

static int
guarded_set_guards(de_Guarded *self, PyObject *manager)
{
    if (guarded_lookup(manager, "program", &self->program) < 0) {
        return -1;
    }
    if (self->program != NULL) {
        if (de_guards_accept(self->program) < 0) {
            Py_CLEAR(self->program);
            return -1;
        }
    }
    else {
        self->check_fn = PyObject_GetAttrString(manager, "check_fn");
        if (self->check_fn == NULL) {
            return -1;
        }
    }
    self->manager = Py_NewRef(manager);
    return 0;
}

static PyObject *
guarded_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"code", "manager", "needs_hook", "reason", NULL};
    PyObject *code, *manager, *reason = Py_None;
    int needs_hook = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|$pO:GuardedCode", names, &PyCode_Type, &code, &manager,
                                     &needs_hook, &reason)) {
        return NULL;
    }
    if (reason != Py_None && !PyUnicode_Check(reason)) {
        PyErr_Format(PyExc_TypeError, "reason is a str or None, not %.200s", Py_TYPE(reason)->tp_name);
        return NULL;
    }
    de_Guarded *self = (de_Guarded *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->needs_hook = needs_hook;
    self->reason = Py_NewRef(reason);
    self->code = (PyCodeObject *)Py_NewRef(code);
    self->flat = guarded_flatten(self->code);
    if (self->flat == NULL || guarded_set_guards(self, manager) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

void
de_guarded_retire(de_Guarded *self)
{
    while (self->runners != NULL) {
        de_Runner *runner = self->runners;
        self->runners = runner->guarded_next;
        if (self->runners != NULL) {
            self->runners->guarded_link = &self->runners;
        }
        runner->guarded = NULL;
        runner->guarded_next = NULL;
        runner->guarded_link = NULL;
        Py_CLEAR(runner->function);
    }
}

static int
guarded_traverse(PyObject *op, visitproc visit, void *arg)
{
    de_Guarded *self = (de_Guarded *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->code);
    Py_VISIT(self->flat);
    Py_VISIT(self->manager);
    Py_VISIT(self->program);
    Py_VISIT(self->check_fn);
    Py_VISIT(self->dict);
    return 0;
}

static int
guarded_clear(PyObject *op)
{
    de_Guarded *self = (de_Guarded *)op;
    Py_CLEAR(self->manager);
    Py_CLEAR(self->program);
    Py_CLEAR(self->check_fn);
    Py_CLEAR(self->dict);
    return 0;
}

static void
guarded_dealloc(PyObject *op)
{
    de_Guarded *self = (de_Guarded *)op;
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    if (self->weakrefs != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    de_guarded_retire(self);
    guarded_clear(op);
    Py_CLEAR(self->reason);
    Py_CLEAR(self->key);
    Py_CLEAR(self->code);
    Py_CLEAR(self->flat);
    type->tp_free(op);
    Py_DECREF(type);
}

/* ---- does it fit ---- */

static int
guarded_mark_plain(PyCodeObject *code)
{
    de_Cache *cache = de_cache_ensure(code);
    if (cache == NULL) {
        return -1;
    }
    cache->plain = 1;
    return 0;
}

static int
guarded_same_names(PyCodeObject *code, Py_ssize_t first, PyCodeObject *original, Py_ssize_t original_first,
                   Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyUnicode_Compare(PyTuple_GET_ITEM(code->co_localsplusnames, first + i),
                              PyTuple_GET_ITEM(original->co_localsplusnames, original_first + i)) != 0) {
            return 0;
        }
    }
    return 1;
}

/* Whether both codes have the same arguments, free variables and kind. */
static int
guarded_same_shape(PyCodeObject *code, PyCodeObject *original)
{
    const int kind = CO_VARARGS | CO_VARKEYWORDS | DE_GENERATOR_FLAGS;
    int free = original->co_nfreevars;
    return (code->co_flags & kind) == (original->co_flags & kind) && code->co_argcount == original->co_argcount &&
           code->co_kwonlyargcount == original->co_kwonlyargcount && code->co_nfreevars == free &&
           guarded_same_names(code, 0, original, 0, de_code_arguments(original)) &&
           guarded_same_names(code, code->co_nlocalsplus - free, original, original->co_nlocalsplus - free, free);
}

int
de_guarded_admit(de_Guarded *self, PyCodeObject *original)
{
    if (self->code == original) {
        PyErr_Format(PyExc_ValueError, "a GuardedCode holds new code, not the code of %U itself",
                     original->co_qualname);
        return -1;
    }
    if (!guarded_same_shape(self->code, original)) {
        PyErr_Format(PyExc_TypeError,
                     "the new code of %U has other arguments, free variables or generator flags than the original",
                     original->co_qualname);
        return -1;
    }
    return guarded_mark_plain(self->code) < 0 || guarded_mark_plain(self->flat) < 0 ? -1 : 0;
}

/* ---- what Python sees ---- */

static PyObject *
guarded_release(PyObject *op, PyObject *unused)
{
    de_Guarded *self = (de_Guarded *)op;
    if (self->cache != NULL) {
        Py_INCREF(op);
        de_cache_remove(self->cache, self);
        Py_DECREF(op);
    }
    Py_RETURN_NONE;
}

static PyObject *
guarded_get_check_fn(PyObject *op, void *closure)
{
    de_Guarded *self = (de_Guarded *)op;
    if (self->manager == NULL) {
        PyErr_SetString(PyExc_AttributeError, "check_fn");
        return NULL;
    }
    return PyObject_GetAttrString(self->manager, "check_fn");
}

static PyObject *
guarded_get_cached(PyObject *op, void *closure)
{
    return PyBool_FromLong(((de_Guarded *)op)->cache != NULL);
}

static PyObject *
guarded_get_valid(PyObject *op, void *closure)
{
    return PyBool_FromLong(de_guards_valid((de_Guarded *)op));
}

static PyObject *
guarded_get_needs_hook(PyObject *op, void *closure)
{
    return PyBool_FromLong(((de_Guarded *)op)->needs_hook);
}

static PyObject *
guarded_repr(PyObject *op)
{
    de_Guarded *self = (de_Guarded *)op;
    return PyUnicode_FromFormat("<GuardedCode of %U, %llu hits>", self->code->co_qualname,
                                (unsigned long long)self->hits);
}

static PyMemberDef guarded_members[] = {
    {"code", T_OBJECT, offsetof(de_Guarded, code), READONLY, "code that runs in place of the original"},
    {"manager", T_OBJECT, offsetof(de_Guarded, manager), READONLY, "owner of the guards"},
    {"reason", T_OBJECT, offsetof(de_Guarded, reason), READONLY, "why it was captured, or None"},
    {"hits", T_ULONGLONG, offsetof(de_Guarded, hits), READONLY, "calls that its guards let through"},
    {"__dictoffset__", T_PYSSIZET, offsetof(de_Guarded, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(de_Guarded, weakrefs), READONLY, NULL},
    {NULL},
};

static PyGetSetDef guarded_getset[] = {
    {"check_fn", guarded_get_check_fn, NULL, "the guards as a Python function of the frame's arguments", NULL},
    {"cached", guarded_get_cached, NULL, "whether a code object's cache holds it", NULL},
    {"valid", guarded_get_valid, NULL, "whether all that its guards refer to is alive", NULL},
    {"needs_hook", guarded_get_needs_hook, NULL, "whether it may call frames that need capture", NULL},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL},
};

static PyMethodDef guarded_methods[] = {
    {"release", guarded_release, METH_NOARGS,
     PyDoc_STR("release($self, /)\n--\n\nLeave the cache and free what was built for it.")},
    {NULL},
};

PyDoc_STRVAR(guarded_doc,
             "GuardedCode(code, manager, *, needs_hook=True, reason=None)\n--\n\n"
             "New code, and the guards under which it may run in place of the original.");

static PyType_Slot guarded_slots[] = {
    {Py_tp_doc, (void *)guarded_doc},
    {Py_tp_new, guarded_new},
    {Py_tp_dealloc, guarded_dealloc},
    {Py_tp_traverse, guarded_traverse},
    {Py_tp_clear, guarded_clear},
    {Py_tp_repr, guarded_repr},
    {Py_tp_members, guarded_members},
    {Py_tp_getset, guarded_getset},
    {Py_tp_methods, guarded_methods},
    {0, NULL},
};

static PyType_Spec guarded_spec = {
    .name = "dynamo.eval._frame.GuardedCode",
    .basicsize = sizeof(de_Guarded),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = guarded_slots,
};

PyTypeObject *
de_guarded_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &guarded_spec, NULL);
}
