/* Loads: from a register or the frame to the value that a step of a source names. */
#include "check.h"

static int
access_borrow(dg_Register *target, PyObject *value)
{
    target->value = value;
    target->owned = 0;
    return value != NULL;
}

/* Steals `value`. A missing attribute, item or cell content is "no such value", anything else an error. */
static int
access_own(dg_Register *target, PyObject *value)
{
    if (value != NULL) {
        target->value = value;
        target->owned = 1;
        return 1;
    }
    if (PyErr_ExceptionMatches(PyExc_AttributeError) || PyErr_ExceptionMatches(PyExc_LookupError)) {
        PyErr_Clear();
        return 0;
    }
    return -1;
}

/* Borrowed value of a key with a known hash; 0 when absent, -1 on error. */
static int
access_dict(dg_Register *target, PyObject *dict, PyObject *key, Py_hash_t hash)
{
    if (dict == NULL || !PyDict_Check(dict)) {
        return 0;
    }
    PyObject *value = _PyDict_GetItem_KnownHash(dict, key, hash);
    if (value == NULL && PyErr_Occurred()) {
        return -1;
    }
    return access_borrow(target, value);
}

static PyObject *
access_in_dict(PyObject *dict, PyObject *name, PyObject *key)
{
    PyObject *inner = PyDict_GetItemWithError(dict, name);
    if (inner == NULL || !PyDict_Check(inner)) {
        return NULL;
    }
    Py_INCREF(inner); /* the lookup may run a key's __eq__ */
    PyObject *value = PyDict_GetItemWithError(inner, key);
    Py_DECREF(inner);
    return value;
}

/* What `module.name` gives for an nn.Module whose class has torch's own __getattr__ and does not define `name`. */
PyObject *
dg_module_attr(PyObject *module, PyObject *name)
{
    PyObject **slot = _PyObject_GetDictPtr(module);
    if (slot == NULL || *slot == NULL) {
        return NULL;
    }
    PyObject *dict = Py_NewRef(*slot);
    PyObject *value = PyDict_GetItemWithError(dict, name);
    if (value == NULL) {
        value = access_in_dict(dict, dg_state.str_parameters, name);
    }
    if (value == NULL) {
        value = access_in_dict(dict, dg_state.str_buffers, name);
    }
    if (value == NULL) {
        value = access_in_dict(dict, dg_state.str_modules, name);
    }
    Py_DECREF(dict);
    PyErr_Clear();
    return value;
}

/* A part of a Python function, by number; no object is made for it. */
static int
access_function_part(const dg_Instruction *in, dg_Register *target, PyObject *base)
{
    PyFunctionObject *function = (PyFunctionObject *)base;
    if (!PyFunction_Check(base)) {
        return 0;
    }
    PyObject *const parts[] = {function->func_code, function->func_defaults, function->func_kwdefaults,
                               function->func_closure};
    PyObject *part = in->number >= 0 && in->number < 4 ? parts[in->number] : NULL;
    return access_borrow(target, part != NULL ? part : Py_None);
}

static int
access_module_attr(const dg_Instruction *in, dg_Register *target, PyObject *base)
{
    if (_PyType_Lookup(Py_TYPE(base), in->object) != NULL) {
        return access_own(target, PyObject_GetAttr(base, in->object));
    }
    return access_borrow(target, dg_module_attr(base, in->object));
}

static int
access_instance_dict(dg_Register *target, PyObject *base)
{
    PyObject **slot = _PyObject_GetDictPtr(base);
    if (slot == NULL) {
        return 0;
    }
    if (*slot == NULL) {
        return access_own(target, PyObject_GenericGetDict(base, NULL));
    }
    return access_borrow(target, *slot);
}

static int
access_key_at(dg_Register *target, PyObject *dict, Py_ssize_t index)
{
    Py_ssize_t position = 0;
    PyObject *key = NULL;
    if (!PyDict_Check(dict)) {
        return 0;
    }
    if (dg_dict_has_own_order(dict)) {
        PyObject *keys = dg_dict_own_order(dict);
        int loaded = keys == NULL ? -1 : index < PyTuple_GET_SIZE(keys);
        if (loaded > 0) {
            access_borrow(target, PyTuple_GET_ITEM(keys, index)); /* the dict holds it too */
        }
        Py_XDECREF(keys);
        return loaded;
    }
    for (Py_ssize_t i = 0; i <= index; i++) {
        if (!PyDict_Next(dict, &position, &key, NULL)) {
            return 0;
        }
    }
    return access_borrow(target, key);
}

/* `super(cls, type).name` before binding: the first definition after `cls` in the MRO.  operand: (cls ref, name). */
static int
access_super(const dg_Instruction *in, dg_Register *target, PyObject *base)
{
    PyObject *mro = PyType_Check(base) ? ((PyTypeObject *)base)->tp_mro : Py_TYPE(base)->tp_mro;
    int after = 0;
    for (Py_ssize_t i = 0; mro != NULL && i < PyTuple_GET_SIZE(mro); i++) {
        PyObject *cls = PyTuple_GET_ITEM(mro, i);
        if (after) {
            PyObject *dict = dg_class_dict((PyTypeObject *)cls);
            PyObject *found = dict != NULL ? PyDict_GetItemWithError(dict, in->object) : NULL;
            if (found != NULL || PyErr_Occurred()) {
                return found != NULL ? access_borrow(target, found) : -1;
            }
        }
        after = after || (Py_ssize_t)cls == in->number;
    }
    return 0;
}

int
dg_load(const dg_Instruction *in, const dg_Frame *frame, dg_Register *registers)
{
    dg_Register *target = &registers[in->target];
    PyObject *base;
    switch (in->op) {
    case DG_ARG:
        return access_borrow(target, frame->args[in->source]);
    case DG_CELL:
    case DG_CELL_CONTENT:
        if (frame->closure == NULL || in->source >= PyTuple_GET_SIZE(frame->closure)) {
            return 0;
        }
        base = PyTuple_GET_ITEM(frame->closure, in->source);
        if (in->op == DG_CELL) {
            return access_borrow(target, base);
        }
        return PyCell_Check(base) ? access_borrow(target, PyCell_GET(base)) : 0;
    case DG_GLOBAL:
        return access_dict(target, frame->globals, in->object, in->number);
    case DG_BUILTIN:
        return access_dict(target, frame->builtins, in->object, in->number);
    case DG_CONSTANT:
        return access_borrow(target, in->object);
    default:
        break;
    }
    base = registers[in->source].value;
    switch (in->op) {
    case DG_ATTR:
        return access_own(target, PyObject_GetAttr(base, in->object));
    case DG_FUNCTION_PART:
        return access_function_part(in, target, base);
    case DG_MODULE_ATTR:
        return access_module_attr(in, target, base);
    case DG_INSTANCE_DICT:
        return access_instance_dict(target, base);
    case DG_LIST_ITEM:
        if (!PyList_Check(base) || in->number >= PyList_GET_SIZE(base)) {
            return 0;
        }
        return access_borrow(target, PyList_GET_ITEM(base, in->number));
    case DG_TUPLE_ITEM:
        if (!PyTuple_Check(base) || in->number >= PyTuple_GET_SIZE(base)) {
            return 0;
        }
        return access_borrow(target, PyTuple_GET_ITEM(base, in->number));
    case DG_DICT_ITEM:
        return access_dict(target, base, in->object, in->number);
    case DG_DICT_KEY_AT:
        return access_key_at(target, base, in->number);
    case DG_TYPE_OF:
        return access_borrow(target, (PyObject *)Py_TYPE(base));
    case DG_CLASS_ATTR:
        return access_borrow(target, PyType_Check(base) ? _PyType_Lookup((PyTypeObject *)base, in->object) : NULL);
    case DG_SUPER_ATTR:
        return access_super(in, target, base);
    case DG_WEAKREF_CALL:
        return PyWeakref_Check(base) ? access_borrow(target, dg_weakref_object(base)) : 0;
    case DG_TUPLE_ITERATOR_ITEM: {
        dg_TupleIterator *it = (dg_TupleIterator *)base;
        if (Py_TYPE(base) != &PyTupleIter_Type || it->it_seq == NULL ||
            it->it_index + in->number >= PyTuple_GET_SIZE(it->it_seq)) {
            return 0;
        }
        return access_borrow(target, PyTuple_GET_ITEM(it->it_seq, it->it_index + in->number));
    }
    case DG_CALL_LOAD:
        return access_own(target, PyObject_CallOneArg(in->object, base));
    default:
        PyErr_Format(PyExc_SystemError, "guard program: %d is not a load", in->op);
        return -1;
    }
}
