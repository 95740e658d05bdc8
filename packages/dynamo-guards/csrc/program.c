/* GuardProgram: the Python type that owns the instructions, and the check as other C code calls it. */
#include "check.h"

/* Take the exception that is set, count it and tell Python's reporter; leaves none. */
static void
program_report(dg_Program *self)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    self->error_count++;
    if (dg_state.report != NULL && value != NULL) {
        PyObject *done = PyObject_CallOneArg(dg_state.report, value);
        Py_XDECREF(done);
        PyErr_Clear();
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
}

/* The check, by the memo where there is one or may be made. */
static int
program_run(dg_Program *self, const dg_Frame *frame)
{
    if (!self->memo_pays || self->memo_busy) {
        return dg_walk(self, frame);
    }
    int holds = dg_memo_check(self, frame);
    if (holds != DG_NO_MEMO) {
        return holds;
    }
    if (self->memo_wait > 0) {
        self->memo_wait--;
        return dg_walk(self, frame);
    }
    return dg_memo_record(self, frame);
}

int
dg_program_valid(PyObject *program)
{
    return ((dg_Program *)program)->valid;
}

int
dg_program_check(PyObject *program, PyObject *const *args, PyObject *closure, PyObject *globals, PyObject *builtins)
{
    dg_Program *self = (dg_Program *)program;
    dg_Frame frame = {args, self->arg_count, closure, globals, builtins};
    if (!self->valid) {
        return 0;
    }
    Py_INCREF(self); /* a predicate may drop the last reference to the program that runs it */
    int holds = program_run(self, &frame);
    if (holds < 0) {
        program_report(self);
        holds = 0;
    }
    Py_DECREF(self);
    return holds;
}

static int
program_fill(dg_Program *self, PyObject *items)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
        dg_Instruction *in = &self->code[i];
        int op, target, source;
        Py_ssize_t number;
        PyObject *object;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(items, i), "iiinO", &op, &target, &source, &number, &object)) {
            return -1;
        }
        int is_load = op >= 0 && op < DG_TEST_TYPE;
        int from_frame = op <= DG_CONSTANT || op == DG_TEST_AMBIENT || op == DG_TEST_UNBOUND;
        int bad = op < 0 || op >= DG_OPCODE_COUNT || target < 0 || target > 0xFFFFFF || source < 0 || number < PY_SSIZE_T_MIN ||
                  (is_load && target >= self->register_count) || (!from_frame && source >= self->register_count) ||
                  (op == DG_ARG && source >= self->arg_count) ||
                  ((op == DG_TEST_ALIAS || op == DG_TEST_NOT_ALIAS) && target >= self->register_count) ||
                  (op == DG_TEST_RELATION && !dg_is_relation(object, self->register_count)) ||
                  (op == DG_TEST_UNBOUND && i + 1 == PyTuple_GET_SIZE(items));
        if (bad) {
            PyErr_Format(PyExc_ValueError, "instruction %zd of the guard program is out of range", i);
            return -1;
        }
        in->op = (uint8_t)op;
        in->target = (uint32_t)target & 0xFFFFFF;
        in->source = source;
        in->number = number;
        in->object = object == Py_None && op != DG_CONSTANT && op != DG_TEST_EQUAL && op != DG_DICT_ITEM &&
                             op != DG_TEST_CONTAINS && op != DG_TEST_LACKS
                         ? NULL
                         : Py_NewRef(object);
        self->count = i + 1;
    }
    return 0;
}

/* GuardProgram(instructions, registers, arg_count, keep) */
static PyObject *
program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *items, *keep;
    Py_ssize_t registers, arg_count;
    if (!PyArg_ParseTuple(args, "O!nnO", &PyTuple_Type, &items, &registers, &arg_count, &keep)) {
        return NULL;
    }
    dg_Program *self = (dg_Program *)type->tp_alloc(type, 0);
    if (self == NULL) {
        return NULL;
    }
    self->valid = 1;
    self->register_count = registers;
    self->arg_count = arg_count;
    self->keep = Py_NewRef(keep);
    Py_ssize_t count = PyTuple_GET_SIZE(items);
    self->code = PyMem_Calloc((size_t)(count > 0 ? count : 1), sizeof *self->code);
    if (self->code == NULL) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    if (program_fill(self, items) < 0) {
        Py_DECREF(self);
        return NULL;
    }
    self->first_loud = dg_walk_first_loud(self);
    self->memo_pays = (char)dg_memo_pays(self);
    return (PyObject *)self;
}

static int
program_traverse(PyObject *object, visitproc visit, void *arg)
{
    dg_Program *self = (dg_Program *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->keep);
    for (Py_ssize_t i = 0; i < self->count; i++) {
        Py_VISIT(self->code[i].object);
    }
    return 0;
}

static int
program_clear(PyObject *object)
{
    dg_Program *self = (dg_Program *)object;
    Py_ssize_t count = self->count;
    dg_Memo *memo = self->memo;
    self->valid = 0;
    self->count = 0;
    self->memo = NULL;
    dg_memo_free(memo);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_CLEAR(self->code[i].object);
    }
    Py_CLEAR(self->keep);
    return 0;
}

static void
program_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (((dg_Program *)object)->weaklist != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    program_clear(object);
    PyMem_Free(((dg_Program *)object)->code);
    PyMem_Free(((dg_Program *)object)->loose);
    type->tp_free(object);
    Py_DECREF(type);
}

/* The items of a tuple as the capsule takes them, NULL for the mark of an unbound argument; free with PyMem_Free. */
static PyObject **
program_values(PyObject *tuple)
{
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    PyObject **values = PyMem_Malloc((size_t)(count + 1) * sizeof *values);
    for (Py_ssize_t i = 0; values != NULL && i < count; i++) {
        PyObject *value = PyTuple_GET_ITEM(tuple, i);
        values[i] = value == dg_state.unbound ? NULL : value;
    }
    return values;
}

/* check(args, closure=None, globals=None, builtins=None) */
static PyObject *
program_check_method(PyObject *object, PyObject *args)
{
    dg_Program *self = (dg_Program *)object;
    PyObject *values, *closure = Py_None, *globals = Py_None, *builtins = Py_None;
    if (!PyArg_ParseTuple(args, "O!|OOO", &PyTuple_Type, &values, &closure, &globals, &builtins)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(values) != self->arg_count) {
        PyErr_Format(PyExc_ValueError, "the check takes %zd values, got %zd", self->arg_count, PyTuple_GET_SIZE(values));
        return NULL;
    }
    if (closure != Py_None && !PyTuple_Check(closure)) {
        PyErr_SetString(PyExc_TypeError, "closure must be a tuple of cells or None");
        return NULL;
    }
    PyObject **found = program_values(values);
    if (found == NULL) {
        return PyErr_NoMemory();
    }
    int holds = dg_program_check(object, found, closure == Py_None ? NULL : closure,
                                 globals == Py_None ? NULL : globals, builtins == Py_None ? NULL : builtins);
    PyMem_Free(found);
    return PyBool_FromLong(holds);
}

/* repeat(count, args, closure=None, globals=None, builtins=None) */
static PyObject *
program_repeat(PyObject *object, PyObject *args)
{
    dg_Program *self = (dg_Program *)object;
    Py_ssize_t count, holds = 0;
    PyObject *values, *closure = Py_None, *globals = Py_None, *builtins = Py_None;
    if (!PyArg_ParseTuple(args, "nO!|OOO", &count, &PyTuple_Type, &values, &closure, &globals, &builtins)) {
        return NULL;
    }
    if (PyTuple_GET_SIZE(values) != self->arg_count || (closure != Py_None && !PyTuple_Check(closure))) {
        PyErr_SetString(PyExc_ValueError, "repeat takes the values of `check`");
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        holds += dg_program_check(object, ((PyTupleObject *)values)->ob_item, closure == Py_None ? NULL : closure,
                                  globals == Py_None ? NULL : globals, builtins == Py_None ? NULL : builtins);
    }
    return PyLong_FromSsize_t(holds);
}

static PyObject *
program_invalidate(PyObject *object, PyObject *unused)
{
    dg_Program *self = (dg_Program *)object;
    self->valid = 0;
    if (!self->memo_busy) {
        dg_Memo *memo = self->memo;
        self->memo = NULL;
        dg_memo_free(memo);
    }
    Py_RETURN_NONE;
}

static PyObject *
program_sizeof(PyObject *object, PyObject *unused)
{
    dg_Program *self = (dg_Program *)object;
    return PyLong_FromSsize_t((Py_ssize_t)sizeof *self + self->count * (Py_ssize_t)sizeof *self->code +
                              dg_memo_size(self->memo));
}

static PyMethodDef program_methods[] = {
    {"check", program_check_method, METH_VARARGS,
     PyDoc_STR("check($self, args, closure=None, globals=None, builtins=None, /)\n--\n\n"
               "Whether all guards hold for these values; never raises for what a guard meets.")},
    {"repeat", program_repeat, METH_VARARGS,
     PyDoc_STR("repeat($self, count, args, closure=None, globals=None, builtins=None, /)\n--\n\n"
               "How many of `count` checks in a row hold; what a measurement of the check alone calls.")},
    {"invalidate", program_invalidate, METH_NOARGS,
     PyDoc_STR("invalidate($self, /)\n--\n\nMake every check miss from now on.")},
    {"__sizeof__", program_sizeof, METH_NOARGS, PyDoc_STR("__sizeof__($self, /)\n--\n\nBytes of the program itself.")},
    {NULL, NULL, 0, NULL},
};

static PyObject *
program_get_valid(PyObject *object, void *closure)
{
    return PyBool_FromLong(((dg_Program *)object)->valid);
}

static PyObject *
program_get_errors(PyObject *object, void *closure)
{
    return PyLong_FromSsize_t(((dg_Program *)object)->error_count);
}

static PyObject *
program_get_count(PyObject *object, void *closure)
{
    return PyLong_FromSsize_t(((dg_Program *)object)->count);
}

static PyObject *
program_get_remembered(PyObject *object, void *closure)
{
    return PyBool_FromLong(((dg_Program *)object)->memo != NULL);
}

static PyGetSetDef program_getset[] = {
    {"valid", program_get_valid, NULL, PyDoc_STR("False once the guarded work may not be used any more."), NULL},
    {"errors", program_get_errors, NULL, PyDoc_STR("How many checks raised and counted as a miss."), NULL},
    {"remembered", program_get_remembered, NULL,
     PyDoc_STR("Whether the next check may skip what did not change since an earlier one."), NULL},
    {"instructions", program_get_count, NULL, PyDoc_STR("Number of instructions."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef program_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(dg_Program, weaklist), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_traverse, program_traverse},
    {Py_tp_clear, program_clear},
    {Py_tp_methods, program_methods},
    {Py_tp_getset, program_getset},
    {Py_tp_members, program_members},
    {Py_tp_doc, PyDoc_STR("GuardProgram(instructions, registers, arg_count, keep, /)\n--\n\n"
                          "A check in native form: instructions over registers.")},
    {0, NULL},
};

static PyType_Spec program_spec = {
    .name = "dynamo.guards._check.GuardProgram",
    .basicsize = sizeof(dg_Program),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = program_slots,
};

int
dg_program_setup(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&program_spec);
    if (type == NULL) {
        return -1;
    }
    dg_state.program_type = (PyTypeObject *)type; /* keeps the reference */
    return PyModule_AddObjectRef(module, "GuardProgram", type);
}
