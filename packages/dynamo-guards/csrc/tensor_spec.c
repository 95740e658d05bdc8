/* TensorSpec: the metadata that a tensor must have, as a Python object. */
#include "tensor.h"

#include <string.h>

static PyTypeObject *spec_type;

static tensor_Spec *
tensor_spec_alloc(PyObject *tensor, Py_ssize_t dims, PyObject *kind)
{
    tensor_Spec *spec = (tensor_Spec *)spec_type->tp_alloc(spec_type, dims > 0 ? 2 * dims : 0);
    if (spec != NULL) {
        spec->type = (uintptr_t)Py_TYPE(tensor);
        spec->kind = Py_NewRef(kind);
        spec->storage_offset = -1;
        spec->dims = (int16_t)dims;
    }
    return spec;
}

/* TensorSpec(tensor, kind, sizes | None, strides | None, storage_offset): checked through Python */
static PyObject *
tensor_spec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *tensor, *kind, *sizes, *strides;
    long long offset;
    if (!PyArg_ParseTuple(args, "OOOOL", &tensor, &kind, &sizes, &strides, &offset)) {
        return NULL;
    }
    int has_strides = strides != Py_None, has_sizes = sizes != Py_None;
    if ((has_sizes && !PyTuple_Check(sizes)) || (has_strides && !(has_sizes && PyTuple_Check(strides))) ||
        (has_strides && PyTuple_GET_SIZE(sizes) != PyTuple_GET_SIZE(strides))) {
        PyErr_SetString(PyExc_TypeError, "sizes and strides must be tuples of one length, or None");
        return NULL;
    }
    Py_ssize_t dims = has_sizes ? PyTuple_GET_SIZE(sizes) : -1;
    tensor_Spec *spec = dims <= TENSOR_MAX_DIMS ? tensor_spec_alloc(tensor, dims, kind) : NULL;
    if (spec == NULL) {
        PyErr_SetString(PyExc_ValueError, "a tensor of too many dimensions");
        return NULL;
    }
    spec->tier = TENSOR_PYTHON;
    spec->storage_offset = offset;
    spec->has_strides = (int8_t)has_strides;
    for (Py_ssize_t i = 0; i < dims; i++) {
        PyObject *size = PyTuple_GET_ITEM(sizes, i), *stride = has_strides ? PyTuple_GET_ITEM(strides, i) : Py_None;
        spec->extents[i] = size == Py_None ? -1 : PyLong_AsLongLong(size);
        spec->extents[dims + i] = stride == Py_None ? INT64_MIN : PyLong_AsLongLong(stride);
    }
    if (PyErr_Occurred()) {
        Py_DECREF(spec);
        return NULL;
    }
    return (PyObject *)spec;
}

/* Free the dimensions that a tuple of numbers names; with one, all strides are free. */
static int
native_free_dims(tensor_Spec *spec, PyObject *free)
{
    Py_ssize_t dims = spec->dims, count = PyTuple_GET_SIZE(free);
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_ssize_t dim = PyLong_AsSsize_t(PyTuple_GET_ITEM(free, i));
        if (dim < 0 || dim >= dims) {
            if (!PyErr_Occurred()) {
                PyErr_SetString(PyExc_IndexError, "no such dimension");
            }
            return -1;
        }
        spec->extents[dim] = -1;
    }
    for (Py_ssize_t i = 0; count > 0 && i < dims; i++) {
        spec->extents[dims + i] = INT64_MIN;
    }
    return 0;
}

/* native_spec(tensor, kind, free_dims, check_offset): of a plain tensor whose key was found right */
static PyObject *
tensor_native_spec(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count != 4 || !PyTuple_Check(args[2]) || !PyObject_TypeCheck(args[0], dg_state.tensor_type)) {
        PyErr_SetString(PyExc_TypeError, "native_spec takes a tensor, its kind, a tuple of dimensions and a bool");
        return NULL;
    }
    PyObject *tensor = args[0];
    tensor_Key key;
    tensor_Extents extents;
    if (!dg_tensor_key(tensor, &key) || !dg_tensor_extents(tensor, &extents) || extents.dims < 0 ||
        extents.dims > TENSOR_MAX_DIMS) {
        Py_RETURN_NONE;
    }
    Py_ssize_t dims = extents.dims;
    tensor_Spec *spec = tensor_spec_alloc(tensor, dims, args[1]);
    if (spec == NULL) {
        return NULL;
    }
    spec->tier = (int8_t)dg_tensor_tier;
    spec->has_strides = 1;
    spec->key_set = key.key_set;
    spec->dtype = key.dtype;
    spec->device = key.device;
    spec->requires_grad = key.requires_grad;
    memcpy(spec->extents, extents.sizes, (size_t)dims * sizeof(int64_t));
    memcpy(spec->extents + dims, extents.strides, (size_t)dims * sizeof(int64_t));
    int offset_known = args[3] != Py_True || dg_tensor_offset(tensor, &spec->storage_offset);
    if (!offset_known || native_free_dims(spec, args[2]) < 0) {
        Py_DECREF(spec);
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    }
    return (PyObject *)spec;
}

/* tensor_key(tensor) -> (class, bytes) or None: equal for tensors of one kind */
static PyObject *
tensor_get_key(PyObject *module, PyObject *tensor)
{
    tensor_Key key;
    memset(&key, 0, sizeof key); /* padding too: the bytes are compared */
    if (dg_tensor_tier == TENSOR_PYTHON || !PyObject_TypeCheck(tensor, dg_state.tensor_type) || !dg_tensor_key(tensor, &key)) {
        Py_RETURN_NONE;
    }
    char bytes[sizeof key.key_set + sizeof key.dtype + sizeof key.device + 2];
    memcpy(bytes, &key.key_set, 8);
    memcpy(bytes + 8, &key.dtype, 4);
    memcpy(bytes + 12, &key.device, 4);
    bytes[16] = (char)key.requires_grad;
    bytes[17] = (char)dg_tensor_tier;
    return Py_BuildValue("(Oy#)", (PyObject *)Py_TYPE(tensor), bytes, (Py_ssize_t)sizeof bytes);
}

static void
tensor_spec_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((tensor_Spec *)self)->kind);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *
tensor_spec_check(PyObject *self, PyObject *value)
{
    int holds = dg_tensor_check(self, value);
    return holds < 0 ? NULL : PyBool_FromLong(holds);
}

static PyObject *
tensor_spec_tier(PyObject *self, void *closure)
{
    static const char *const names[] = {"python", "shim", "raw"};
    return PyUnicode_InternFromString(names[((tensor_Spec *)self)->tier]);
}

static PyObject *
tensor_spec_kind(PyObject *self, void *closure)
{
    return Py_NewRef(((tensor_Spec *)self)->kind);
}

/* A tuple of extents, None for the one that is `any`. */
static PyObject *
tensor_spec_tuple(const int64_t *extents, Py_ssize_t dims, int64_t any)
{
    PyObject *tuple = PyTuple_New(dims);
    for (Py_ssize_t i = 0; tuple != NULL && i < dims; i++) {
        PyObject *item = extents[i] == any ? Py_NewRef(Py_None) : PyLong_FromLongLong(extents[i]);
        if (item == NULL) {
            Py_CLEAR(tuple);
            break;
        }
        PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

static PyObject *
tensor_spec_sizes(PyObject *self, void *closure)
{
    tensor_Spec *spec = (tensor_Spec *)self;
    return spec->dims < 0 ? Py_NewRef(Py_None) : tensor_spec_tuple(spec->extents, spec->dims, -1);
}

static PyObject *
tensor_spec_strides(PyObject *self, void *closure)
{
    tensor_Spec *spec = (tensor_Spec *)self;
    return spec->dims < 0 || !spec->has_strides ? Py_NewRef(Py_None)
                                                : tensor_spec_tuple(spec->extents + spec->dims, spec->dims, INT64_MIN);
}

static PyObject *
tensor_spec_offset(PyObject *self, void *closure)
{
    tensor_Spec *spec = (tensor_Spec *)self;
    return spec->storage_offset < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(spec->storage_offset);
}

static PyMethodDef tensor_spec_methods[] = {
    {"check", tensor_spec_check, METH_O,
     PyDoc_STR("check($self, value, /)\n--\n\nWhether a value is a tensor of this kind.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_spec_getset[] = {
    {"tier", tensor_spec_tier, NULL, PyDoc_STR("How the check reads the tensor: raw, shim or python."), NULL},
    {"kind", tensor_spec_kind, NULL, PyDoc_STR("What the tensor must be, beside its extents."), NULL},
    {"sizes", tensor_spec_sizes, NULL, PyDoc_STR("The sizes, None for one that is free; None when all are."), NULL},
    {"strides", tensor_spec_strides, NULL, PyDoc_STR("The strides, as the sizes."), NULL},
    {"storage_offset", tensor_spec_offset, NULL, PyDoc_STR("The storage offset, or None when it is free."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_spec_slots[] = {
    {Py_tp_new, tensor_spec_new},
    {Py_tp_dealloc, tensor_spec_dealloc},
    {Py_tp_methods, tensor_spec_methods},
    {Py_tp_getset, tensor_spec_getset},
    {Py_tp_doc, PyDoc_STR("TensorSpec(tensor, kind, sizes, strides, storage_offset, /)\n--\n\n"
                          "The metadata that a tensor must have; holds no tensor.")},
    {0, NULL},
};

static PyType_Spec tensor_spec_spec = {
    .name = "dynamo.guards._check.TensorSpec",
    .basicsize = sizeof(tensor_Spec),
    .itemsize = sizeof(int64_t),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_spec_slots,
};

/* tensor_metadata(tensor) -> (key_set, sizes, strides, storage_offset, requires_grad, dtype, device) as the tier in
 * use reads them, the last two as its own numbers; None when it does not read this one */
static PyObject *
tensor_metadata(PyObject *module, PyObject *tensor)
{
    PyObject *none[] = {tensor, Py_None, PyTuple_New(0), Py_True};
    PyObject *made = none[2] != NULL ? tensor_native_spec(module, none, 4) : NULL;
    Py_XDECREF(none[2]);
    if (made == NULL || made == Py_None) {
        return made;
    }
    tensor_Spec *spec = (tensor_Spec *)made;
    PyObject *answer = Py_BuildValue("(KNNLNII)", (unsigned long long)spec->key_set,
                                     tensor_spec_tuple(spec->extents, spec->dims, INT64_MIN),
                                     tensor_spec_tuple(spec->extents + spec->dims, spec->dims, INT64_MIN),
                                     (long long)spec->storage_offset, PyBool_FromLong(spec->requires_grad),
                                     (unsigned)spec->dtype, (unsigned)spec->device);
    Py_DECREF(made);
    return answer;
}

PyMethodDef dg_tensor_spec_methods[] = {
    {"tensor_key", tensor_get_key, METH_O,
     PyDoc_STR("tensor_key($module, tensor, /)\n--\n\n"
               "Equal for tensors of one class, dtype, device, keys and requires_grad; None when not read natively.")},
    {"native_spec", (PyCFunction)(void (*)(void))tensor_native_spec, METH_FASTCALL,
     PyDoc_STR("native_spec($module, tensor, kind, free_dims, check_offset, /)\n--\n\n"
               "The spec of a plain tensor, or None when it cannot be read natively.")},
    {"tensor_metadata", tensor_metadata, METH_O,
     PyDoc_STR("tensor_metadata($module, tensor, /)\n--\n\nWhat the tier in use reads of a tensor, or None.")},
    {NULL, NULL, 0, NULL},
};

int
dg_tensor_spec_setup(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&tensor_spec_spec);
    if (type == NULL) {
        return -1;
    }
    spec_type = (PyTypeObject *)type; /* keeps the reference */
    return PyModule_AddObjectRef(module, "TensorSpec", type);
}
