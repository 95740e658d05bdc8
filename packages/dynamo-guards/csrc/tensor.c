/* Metadata of tensors, read where TensorImpl keeps it.
 *
 * The offsets are not part of any interface.  Python finds them when dynamo.guards is imported, by comparing raw words
 * of many tensors with what torch itself answers (layout.py), and hands them over with `tensor_layout`.  Without them,
 * or for a tensor that is not plain, the check calls the Python function set with `tensor_fallback`.
 */
#include "check.h"

#include <dlfcn.h>
#include <string.h>

/* c10/core/impl/SizesAndStrides.h: a count, then up to this many sizes and as many strides in place, else a pointer
 * to sizes followed by strides. */
#define TENSOR_INLINE_DIMS 5

typedef struct {
    int ready;
    Py_ssize_t impl, key_set, sizes, storage_offset, dtype, device;
    _Bool (*requires_grad)(const void *);
} tensor_Layout;

static tensor_Layout layout;
static PyObject *fallback; /* callable (spec, tensor) -> bool */

typedef struct {
    PyObject_HEAD
    uintptr_t type;
    uint64_t key_set;
    int64_t storage_offset; /* -1: any */
    uint16_t dtype;
    uint16_t device;
    int8_t requires_grad;
    int8_t raw;
    int32_t dims; /* -1: any sizes and strides */
    int64_t *extents; /* sizes then strides; -1: any (a size), INT64_MIN: any (a stride) */
    PyObject *expected; /* what the fallback compares: a Python object that holds no tensor */
} tensor_Spec;

static const char *
tensor_impl(PyObject *tensor)
{
    return *(const char **)((const char *)tensor + layout.impl);
}

static const int64_t *
tensor_extents(const char *impl, Py_ssize_t dims)
{
    const char *place = impl + layout.sizes + sizeof(size_t);
    return dims > TENSOR_INLINE_DIMS ? *(const int64_t **)place : (const int64_t *)place;
}

#define READ(type, impl, offset) (*(const type *)((impl) + (offset)))

/* Sizes and strides of a live tensor against those of the spec; strides start after 5 in-place sizes, or after all. */
static int
tensor_extents_hold(const tensor_Spec *spec, const char *impl)
{
    Py_ssize_t dims = spec->dims;
    if (dims < 0) {
        return 1;
    }
    if (READ(size_t, impl, layout.sizes) != (size_t)dims) {
        return 0;
    }
    const int64_t *met = tensor_extents(impl, dims);
    const int64_t *met_strides = met + (dims > TENSOR_INLINE_DIMS ? dims : TENSOR_INLINE_DIMS);
    for (Py_ssize_t i = 0; i < dims; i++) {
        if (met[i] != spec->extents[i] && spec->extents[i] != -1) {
            return 0;
        }
        if (met_strides[i] != spec->extents[dims + i] && spec->extents[dims + i] != INT64_MIN) {
            return 0;
        }
    }
    return 1;
}

static int
tensor_raw_holds(const tensor_Spec *spec, PyObject *value)
{
    const char *impl = tensor_impl(value);
    return READ(uint64_t, impl, layout.key_set) == spec->key_set &&
           READ(uint16_t, impl, layout.dtype) == spec->dtype && READ(uint16_t, impl, layout.device) == spec->device &&
           tensor_extents_hold(spec, impl) &&
           (spec->storage_offset < 0 || READ(int64_t, impl, layout.storage_offset) == spec->storage_offset) &&
           layout.requires_grad(impl) == spec->requires_grad;
}

int
dg_tensor_check(PyObject *spec_object, PyObject *value)
{
    tensor_Spec *spec = (tensor_Spec *)spec_object;
    if ((uintptr_t)Py_TYPE(value) != spec->type) {
        return 0;
    }
    if (spec->raw) {
        return tensor_raw_holds(spec, value);
    }
    if (fallback == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "dynamo.guards._check: no tensor fallback is set");
        return -1;
    }
    PyObject *answer = PyObject_CallFunctionObjArgs(fallback, spec->expected, value, NULL);
    if (answer == NULL) {
        return -1;
    }
    int holds = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return holds;
}

/* Python: TensorSpec(tensor, sizes | None, strides | None, check_offset, raw, expected) */
static int
tensor_fill_extents(tensor_Spec *spec, PyObject *sizes, PyObject *strides)
{
    if (sizes == Py_None) {
        spec->dims = -1;
        return 0;
    }
    Py_ssize_t dims = PyTuple_GET_SIZE(sizes);
    spec->dims = (int32_t)dims;
    spec->extents = PyMem_Calloc((size_t)(dims > 0 ? 2 * dims : 1), sizeof(int64_t));
    if (spec->extents == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < dims; i++) {
        PyObject *size = PyTuple_GET_ITEM(sizes, i), *stride = PyTuple_GET_ITEM(strides, i);
        spec->extents[i] = size == Py_None ? -1 : PyLong_AsLongLong(size);
        spec->extents[dims + i] = stride == Py_None ? INT64_MIN : PyLong_AsLongLong(stride);
    }
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *
tensor_spec_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *tensor, *sizes, *strides, *expected;
    int check_offset, raw;
    if (!PyArg_ParseTuple(args, "OOOppO", &tensor, &sizes, &strides, &check_offset, &raw, &expected)) {
        return NULL;
    }
    int both = PyTuple_Check(sizes) && PyTuple_Check(strides) && PyTuple_GET_SIZE(sizes) == PyTuple_GET_SIZE(strides);
    if (!both && !(sizes == Py_None && strides == Py_None)) {
        PyErr_SetString(PyExc_TypeError, "sizes and strides must be two tuples of one length, or both None");
        return NULL;
    }
    tensor_Spec *spec = (tensor_Spec *)type->tp_alloc(type, 0);
    if (spec == NULL) {
        return NULL;
    }
    spec->type = (uintptr_t)Py_TYPE(tensor);
    spec->expected = Py_NewRef(expected);
    spec->storage_offset = -1;
    spec->raw = raw && layout.ready;
    if (tensor_fill_extents(spec, sizes, strides) < 0) {
        Py_DECREF(spec);
        return NULL;
    }
    if (spec->raw) {
        const char *impl = tensor_impl(tensor);
        spec->key_set = READ(uint64_t, impl, layout.key_set);
        spec->dtype = READ(uint16_t, impl, layout.dtype);
        spec->device = READ(uint16_t, impl, layout.device);
        spec->requires_grad = layout.requires_grad(impl);
        spec->storage_offset = check_offset ? READ(int64_t, impl, layout.storage_offset) : -1;
    }
    return (PyObject *)spec;
}

static void
tensor_spec_dealloc(PyObject *self)
{
    tensor_Spec *spec = (tensor_Spec *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyMem_Free(spec->extents);
    Py_XDECREF(spec->expected);
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
tensor_spec_raw(PyObject *self, void *closure)
{
    return PyBool_FromLong(((tensor_Spec *)self)->raw);
}

static PyObject *
tensor_spec_expected(PyObject *self, void *closure)
{
    return Py_NewRef(((tensor_Spec *)self)->expected);
}

static PyMethodDef tensor_spec_methods[] = {
    {"check", tensor_spec_check, METH_O,
     PyDoc_STR("check($self, value, /)\n--\n\nWhether a value is a tensor of this kind.")},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_spec_getset[] = {
    {"raw", tensor_spec_raw, NULL, PyDoc_STR("Whether the check reads the tensor's memory itself."), NULL},
    {"expected", tensor_spec_expected, NULL, PyDoc_STR("What the fallback compares with."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_spec_slots[] = {
    {Py_tp_new, tensor_spec_new},
    {Py_tp_dealloc, tensor_spec_dealloc},
    {Py_tp_methods, tensor_spec_methods},
    {Py_tp_getset, tensor_spec_getset},
    {Py_tp_doc, PyDoc_STR("TensorSpec(tensor, sizes, strides, check_offset, raw, expected, /)\n--\n\n"
                          "The metadata that a tensor must have; holds no tensor.")},
    {0, NULL},
};

static PyType_Spec tensor_spec_spec = {
    .name = "dynamo.guards._check.TensorSpec",
    .basicsize = sizeof(tensor_Spec),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_spec_slots,
};

/* tensor_layout(impl, key_set, sizes, storage_offset, dtype, device, library, symbol) -> bool; impl < 0 turns raw
 * reading off for specs made from now on. */
static PyObject *
tensor_set_layout(PyObject *module, PyObject *args)
{
    tensor_Layout found = {0};
    const char *library, *symbol;
    if (!PyArg_ParseTuple(args, "nnnnnnss", &found.impl, &found.key_set, &found.sizes, &found.storage_offset,
                          &found.dtype, &found.device, &library, &symbol)) {
        return NULL;
    }
    void *handle = found.impl >= 0 ? dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *function = handle != NULL ? dlsym(handle, symbol) : NULL;
    if (function == NULL) {
        layout.ready = 0;
        Py_RETURN_FALSE;
    }
    memcpy(&found.requires_grad, &function, sizeof function);
    found.ready = 1;
    layout = found;
    Py_RETURN_TRUE;
}

static PyObject *
tensor_set_fallback(PyObject *module, PyObject *function)
{
    Py_XSETREF(fallback, Py_NewRef(function));
    Py_RETURN_NONE;
}

/* read_words(address, count): words of memory that the caller knows to be readable. */
static PyObject *
tensor_read_words(PyObject *module, PyObject *args)
{
    unsigned long long address;
    Py_ssize_t count;
    if (!PyArg_ParseTuple(args, "Kn", &address, &count)) {
        return NULL;
    }
    return PyBytes_FromStringAndSize((const char *)(uintptr_t)address, count * (Py_ssize_t)sizeof(uint64_t));
}

/* raw_metadata(tensor) -> (key_set, dims, sizes, strides, storage_offset, dtype, device, requires_grad) */
static PyObject *
tensor_raw_metadata(PyObject *module, PyObject *tensor)
{
    if (!layout.ready || !PyObject_TypeCheck(tensor, dg_state.tensor_type)) {
        Py_RETURN_NONE;
    }
    const char *impl = tensor_impl(tensor);
    Py_ssize_t dims = (Py_ssize_t)READ(size_t, impl, layout.sizes);
    if (dims < 0 || dims > 64) {
        Py_RETURN_NONE;
    }
    const int64_t *met = tensor_extents(impl, dims);
    const int64_t *met_strides = met + (dims > TENSOR_INLINE_DIMS ? dims : TENSOR_INLINE_DIMS);
    PyObject *sizes = PyTuple_New(dims), *strides = PyTuple_New(dims);
    for (Py_ssize_t i = 0; sizes != NULL && strides != NULL && i < dims; i++) {
        PyTuple_SET_ITEM(sizes, i, PyLong_FromLongLong(met[i]));
        PyTuple_SET_ITEM(strides, i, PyLong_FromLongLong(met_strides[i]));
    }
    return Py_BuildValue("(KNNLiiN)", (unsigned long long)READ(uint64_t, impl, layout.key_set), sizes, strides,
                         (long long)READ(int64_t, impl, layout.storage_offset), (int)READ(uint16_t, impl, layout.dtype),
                         (int)READ(uint16_t, impl, layout.device), PyBool_FromLong(layout.requires_grad(impl)));
}

static PyObject *
tensor_set_type(PyObject *module, PyObject *type)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "tensor_type takes a class");
        return NULL;
    }
    Py_XSETREF(dg_state.tensor_type, (PyTypeObject *)Py_NewRef(type));
    Py_RETURN_NONE;
}

PyMethodDef dg_tensor_methods[] = {
    {"tensor_type", tensor_set_type, METH_O, PyDoc_STR("tensor_type($module, cls, /)\n--\n\nSay what a tensor is.")},
    {"tensor_layout", tensor_set_layout, METH_VARARGS,
     PyDoc_STR("tensor_layout($module, impl, key_set, sizes, storage_offset, dtype, device, library, symbol, /)\n--\n\n"
               "Say where a tensor keeps its metadata; False (and no raw reading) when the symbol is missing.")},
    {"tensor_fallback", tensor_set_fallback, METH_O,
     PyDoc_STR("tensor_fallback($module, function, /)\n--\n\nSet what checks a tensor that is not read raw.")},
    {"read_words", tensor_read_words, METH_VARARGS,
     PyDoc_STR("read_words($module, address, count, /)\n--\n\nCopy `count` 8-byte words of this process's memory.")},
    {"raw_metadata", tensor_raw_metadata, METH_O,
     PyDoc_STR("raw_metadata($module, tensor, /)\n--\n\nWhat the raw reads give for a tensor, or None.")},
    {NULL, NULL, 0, NULL},
};

int
dg_tensor_setup(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&tensor_spec_spec);
    if (type == NULL) {
        return -1;
    }
    int added = PyModule_AddObjectRef(module, "TensorSpec", type);
    Py_DECREF(type);
    return added;
}
