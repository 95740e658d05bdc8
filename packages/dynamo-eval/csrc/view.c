/* FrameView: what the capture callback sees of a frame that has not started.
 *
 * A snapshot with references of its own: CPython has not linked the frame yet, so there is no frame
 * object to give, and none is made.
 */
#include "eval.h"

#include <structmember.h>

typedef struct {
    PyObject_HEAD
    PyObject *function;
    PyObject *code;
    PyObject *globals;
    PyObject *builtins;
    PyObject *closure;
    PyObject *args;
} de_View;

static PyTypeObject *view_class;

PyObject *
de_view_new(de_Frame *frame)
{
    PyCodeObject *code = de_frame_code(frame);
    PyFunctionObject *function = de_frame_function(frame);
    Py_ssize_t count = de_code_arguments(code);
    PyObject *args = PyList_New(count);
    if (args == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = frame->localsplus[i];
        PyList_SET_ITEM(args, i, Py_NewRef(value ? value : Py_None));
    }
    de_View *self = (de_View *)view_class->tp_alloc(view_class, 0);
    if (self == NULL) {
        Py_DECREF(args);
        return NULL;
    }
    self->function = Py_NewRef((PyObject *)function);
    self->code = Py_NewRef((PyObject *)code);
    self->globals = Py_NewRef(frame->f_globals);
    self->builtins = Py_NewRef(frame->f_builtins);
    self->closure = Py_NewRef(function->func_closure ? function->func_closure : Py_None);
    self->args = args;
    return (PyObject *)self;
}

static PyObject *
view_get_locals(PyObject *op, void *unused)
{
    de_View *self = (de_View *)op;
    PyObject *names = ((PyCodeObject *)self->code)->co_localsplusnames;
    PyObject *locals = PyDict_New();
    if (locals == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(self->args) && i < PyTuple_GET_SIZE(names); i++) {
        if (PyDict_SetItem(locals, PyTuple_GET_ITEM(names, i), PyList_GET_ITEM(self->args, i)) < 0) {
            Py_DECREF(locals);
            return NULL;
        }
    }
    return locals;
}

static PyObject *
view_get_lineno(PyObject *op, void *unused)
{
    return PyLong_FromLong(((PyCodeObject *)((de_View *)op)->code)->co_firstlineno);
}

static PyObject *
view_repr(PyObject *op)
{
    PyCodeObject *code = (PyCodeObject *)((de_View *)op)->code;
    return PyUnicode_FromFormat("<FrameView of %U, file %R, line %d>", code->co_qualname, code->co_filename,
                                code->co_firstlineno);
}

static int
view_traverse(PyObject *op, visitproc visit, void *arg)
{
    de_View *self = (de_View *)op;
    Py_VISIT(Py_TYPE(op));
    Py_VISIT(self->function);
    Py_VISIT(self->code);
    Py_VISIT(self->globals);
    Py_VISIT(self->builtins);
    Py_VISIT(self->closure);
    Py_VISIT(self->args);
    return 0;
}

static int
view_clear(PyObject *op)
{
    de_View *self = (de_View *)op;
    Py_CLEAR(self->function);
    Py_CLEAR(self->globals);
    Py_CLEAR(self->builtins);
    Py_CLEAR(self->closure);
    Py_CLEAR(self->args);
    return 0;
}

static void
view_dealloc(PyObject *op)
{
    PyTypeObject *type = Py_TYPE(op);
    PyObject_GC_UnTrack(op);
    view_clear(op);
    Py_CLEAR(((de_View *)op)->code);
    type->tp_free(op);
    Py_DECREF(type);
}

static PyMemberDef view_members[] = {
    {"f_code", T_OBJECT, offsetof(de_View, code), READONLY, "code object"},
    {"f_globals", T_OBJECT, offsetof(de_View, globals), READONLY, "globals of the function"},
    {"f_builtins", T_OBJECT, offsetof(de_View, builtins), READONLY, "builtins of the function"},
    {"function", T_OBJECT, offsetof(de_View, function), READONLY, "function that is called"},
    {"closure", T_OBJECT, offsetof(de_View, closure), READONLY, "tuple of cells, or None"},
    {"args", T_OBJECT, offsetof(de_View, args), READONLY, "bound arguments, in the order of co_varnames"},
    {NULL},
};

static PyGetSetDef view_getset[] = {
    {"f_locals", view_get_locals, NULL, "new dict: argument name to value", NULL},
    {"f_lineno", view_get_lineno, NULL, "first line of the code", NULL},
    {NULL},
};

static PyType_Slot view_slots[] = {
    {Py_tp_doc, "A frame that is about to start, as the capture callback sees it."},
    {Py_tp_dealloc, view_dealloc},
    {Py_tp_traverse, view_traverse},
    {Py_tp_clear, view_clear},
    {Py_tp_repr, view_repr},
    {Py_tp_members, view_members},
    {Py_tp_getset, view_getset},
    {0, NULL},
};

static PyType_Spec view_spec = {
    .name = "dynamo.eval._frame.FrameView",
    .basicsize = sizeof(de_View),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = view_slots,
};

PyTypeObject *
de_view_type(PyObject *module)
{
    view_class = (PyTypeObject *)PyType_FromModuleAndSpec(module, &view_spec, NULL);
    return (PyTypeObject *)Py_XNewRef((PyObject *)view_class);
}
