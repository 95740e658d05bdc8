/* The module dynamo.guards._check: types, small checks that generated check_fn text calls, and the capsule. */
#include "tensor.h"

dg_State dg_state;

static const dg_API module_api = {1, dg_program_check, dg_program_valid};

static const char *const module_opcodes[] = {
#define X(name) #name,
    DG_OPCODES(X)
#undef X
};

static int
module_address(PyObject *number, uintptr_t *address)
{
    *address = (uintptr_t)PyLong_AsUnsignedLongLong(number);
    return *address == (uintptr_t)-1 && PyErr_Occurred() ? -1 : 0;
}

static PyObject *
module_check_type_id(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    uintptr_t address;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "check_type_id takes a value and a type's id");
        return NULL;
    }
    return module_address(args[1], &address) < 0 ? NULL : PyBool_FromLong((uintptr_t)Py_TYPE(args[0]) == address);
}

static PyObject *
module_check_obj_id(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    uintptr_t address;
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "check_obj_id takes a value and an id");
        return NULL;
    }
    return module_address(args[1], &address) < 0 ? NULL : PyBool_FromLong((uintptr_t)args[0] == address);
}

static PyObject *
module_same(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "same takes two values");
        return NULL;
    }
    int same = dg_same(args[0], args[1]);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

static PyObject *
module_dict_keys(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyTuple_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "same_keys takes a dict and a tuple of keys");
        return NULL;
    }
    int same = dg_dict_keys(args[0], args[1]);
    return same < 0 ? NULL : PyBool_FromLong(same);
}

static PyObject *
module_tuple_iterator_index(PyObject *module, PyObject *value)
{
    dg_TupleIterator *it = (dg_TupleIterator *)value;
    if (Py_TYPE(value) != &PyTupleIter_Type) {
        PyErr_SetString(PyExc_TypeError, "not a tuple iterator");
        return NULL;
    }
    return PyLong_FromSsize_t(it->it_seq == NULL ? -1 : it->it_index);
}

static PyObject *
module_tuple_iterator_item(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    dg_Register found = {NULL, 0};
    if (count != 2) {
        PyErr_SetString(PyExc_TypeError, "tuple_iterator_item takes an iterator and an offset");
        return NULL;
    }
    dg_Register registers[2] = {{args[0], 0}, found};
    dg_Instruction in = {DG_TUPLE_ITERATOR_ITEM, 1, 0, PyLong_AsSsize_t(args[1]), NULL};
    if (in.number < 0) {
        PyErr_SetString(PyExc_IndexError, "offset of a tuple iterator must not be negative");
        return NULL;
    }
    if (dg_load(&in, NULL, registers) <= 0) {
        PyErr_SetString(PyExc_IndexError, "the tuple iterator has no such item");
        return NULL;
    }
    return Py_NewRef(registers[1].value);
}

static PyObject *
module_class_lookup(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 || !PyType_Check(args[0]) || !PyUnicode_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "class_lookup takes a class and a name");
        return NULL;
    }
    PyObject *found = _PyType_Lookup((PyTypeObject *)args[0], args[1]);
    if (found == NULL) {
        PyErr_Format(PyExc_AttributeError, "%R has no attribute %R", args[0], args[1]);
        return NULL;
    }
    return Py_NewRef(found);
}

static PyObject *
module_set_report(PyObject *module, PyObject *function)
{
    Py_XSETREF(dg_state.report, Py_NewRef(function));
    Py_RETURN_NONE;
}

static PyObject *
module_set_unbound(PyObject *module, PyObject *mark)
{
    Py_XSETREF(dg_state.unbound, Py_NewRef(mark));
    Py_RETURN_NONE;
}

static PyObject *
module_marks(PyObject *module, PyObject *unused)
{
    return PyLong_FromSsize_t(dg_marks_open());
}

#define FAST(f) ((PyCFunction)(void (*)(void))(f))

static PyMethodDef module_methods[] = {
    {"check_type_id", FAST(module_check_type_id), METH_FASTCALL,
     PyDoc_STR("check_type_id($module, value, type_id, /)\n--\n\nWhether id(type(value)) is `type_id`.")},
    {"check_obj_id", FAST(module_check_obj_id), METH_FASTCALL,
     PyDoc_STR("check_obj_id($module, value, obj_id, /)\n--\n\nWhether id(value) is `obj_id`.")},
    {"same", FAST(module_same), METH_FASTCALL,
     PyDoc_STR("same($module, left, right, /)\n--\n\nWhether two constants are equal down to type and bits.")},
    {"same_keys", FAST(module_dict_keys), METH_FASTCALL,
     PyDoc_STR("same_keys($module, dict, keys, /)\n--\n\nWhether a dict has exactly these keys in this order.")},
    {"tuple_iterator_index", module_tuple_iterator_index, METH_O,
     PyDoc_STR("tuple_iterator_index($module, iterator, /)\n--\n\nPosition of a tuple iterator, -1 when exhausted.")},
    {"tuple_iterator_item", FAST(module_tuple_iterator_item), METH_FASTCALL,
     PyDoc_STR("tuple_iterator_item($module, iterator, offset, /)\n--\n\nThe item `offset` places ahead.")},
    {"class_lookup", FAST(module_class_lookup), METH_FASTCALL,
     PyDoc_STR("class_lookup($module, cls, name, /)\n--\n\nWhat the MRO of a class holds under a name, unbound.")},
    {"set_report", module_set_report, METH_O,
     PyDoc_STR("set_report($module, function, /)\n--\n\nSet who is told of an exception in a check.")},
    {"set_unbound", module_set_unbound, METH_O,
     PyDoc_STR("set_unbound($module, mark, /)\n--\n\nSet what stands for an argument without a value.")},
    {"marks", module_marks, METH_NOARGS,
     PyDoc_STR("marks($module, /)\n--\n\nHow many dicts are watched now (0 where dicts have versions).")},
    {NULL, NULL, 0, NULL},
};

static int
module_add_opcodes(PyObject *module)
{
    PyObject *names = PyTuple_New(DG_OPCODE_COUNT);
    for (Py_ssize_t i = 0; names != NULL && i < DG_OPCODE_COUNT; i++) {
        PyObject *name = PyUnicode_InternFromString(module_opcodes[i]);
        if (name == NULL) {
            Py_CLEAR(names);
            break;
        }
        PyTuple_SET_ITEM(names, i, name);
    }
    int added = names != NULL ? PyModule_AddObjectRef(module, "OPCODES", names) : -1;
    Py_XDECREF(names);
    return added;
}

static int
module_intern(void)
{
    dg_state.str_parameters = PyUnicode_InternFromString("_parameters");
    dg_state.str_buffers = PyUnicode_InternFromString("_buffers");
    dg_state.str_modules = PyUnicode_InternFromString("_modules");
    return dg_state.str_parameters == NULL || dg_state.str_buffers == NULL || dg_state.str_modules == NULL ? -1 : 0;
}

static int
module_exec(PyObject *module)
{
    dg_state.marks = dg_marks_setup();
    if (module_intern() < 0 || PyModule_AddObjectRef(module, "MARKS", dg_state.marks ? Py_True : Py_False) < 0 || dg_program_setup(module) < 0 || dg_tensor_spec_setup(module) < 0 ||
        module_add_opcodes(module) < 0 || PyModule_AddFunctions(module, dg_tensor_methods) < 0 ||
        PyModule_AddFunctions(module, dg_tensor_spec_methods) < 0 ||
        PyModule_AddFunctions(module, dg_ambient_methods) < 0) {
        return -1;
    }
    PyObject *capsule = PyCapsule_New((void *)&module_api, "dynamo.guards._check.C_API", NULL);
    int added = capsule != NULL ? PyModule_AddObjectRef(module, "C_API", capsule) : -1;
    Py_XDECREF(capsule);
    return added;
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_def = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynamo.guards._check",
    .m_doc = "Native guard checks.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__check(void)
{
    return PyModuleDef_Init(&module_def);
}
