/* KeyedCallback: a capture callback that says in whose name it captures.
 *
 * Captures made through it serve only callbacks with the same key, so that one function may be captured
 * for several backends.  The key is an object that means nothing but itself; captures refer to it weakly,
 * and are dropped once it is gone, for nobody can ask for them any more.
 */
#include "eval.h"

#include <structmember.h>

PyTypeObject *de_CallbackType;

static PyObject *
callback_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *key;
    if (!PyArg_ParseTuple(args, "O:KeyedCallback", &key)) {
        return NULL;
    }
    if (kwargs != NULL && PyDict_GET_SIZE(kwargs) > 0) {
        PyErr_SetString(PyExc_TypeError, "KeyedCallback() takes no keyword arguments");
        return NULL;
    }
    if (!PyType_SUPPORTS_WEAKREFS(Py_TYPE(key))) {
        PyErr_Format(PyExc_TypeError, "a key can be referred to weakly, which %.200s cannot", Py_TYPE(key)->tp_name);
        return NULL;
    }
    de_Callback *self = (de_Callback *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->key = Py_NewRef(key);
    }
    return (PyObject *)self;
}

static int
callback_traverse(PyObject *op, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(((de_Callback *)op)->key);
    return 0;
}

static void
callback_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    Py_DECREF(((de_Callback *)op)->key);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    {"key", T_OBJECT, offsetof(de_Callback, key), READONLY, "captures serve callbacks with this key"},
    {NULL},
};

PyDoc_STRVAR(callback_doc, "KeyedCallback(key, /)\n--\n\n"
                           "Base of capture callbacks whose captures serve only callbacks with the same key.");

static PyType_Slot callback_slots[] = {
    {Py_tp_doc, (void *)callback_doc},
    {Py_tp_new, callback_new},
    {Py_tp_dealloc, callback_dealloc},
    {Py_tp_traverse, callback_traverse},
    {Py_tp_members, callback_members},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "dynamo.eval._frame.KeyedCallback",
    .basicsize = sizeof(de_Callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = callback_slots,
};

PyTypeObject *
de_callback_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &callback_spec, NULL);
}
