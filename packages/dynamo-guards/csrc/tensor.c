/* Metadata of tensors, on the cheapest way that was proven on this torch.
 *
 * raw: read where TensorImpl keeps it.  The offsets are not part of any interface; Python finds them when dynamo.guards is
 *     imported, by comparing raw words of many tensors with what torch itself answers (layout.py).
 * shim: through libtorch's stable C interface (aoti_torch_get_*), which needs only the places of the TensorImpl's
 *     address in the Python object and of its dispatch keys.
 * python: the function set with `tensor_fallback`; also for each tensor that is not plain.
 */
#include "tensor.h"

#include <dlfcn.h>
#include <string.h>

/* c10/core/impl/SizesAndStrides.h: a count, then up to this many sizes and as many strides in place, else a pointer
 * to sizes followed by strides. */
#define TENSOR_INLINE_DIMS 5

static struct {
    Py_ssize_t impl, key_set, sizes, storage_offset, dtype, device;
    Py_ssize_t autograd; /* of a pointer that is NULL only when no gradient is required; -1: not known */
    Py_ssize_t flag;     /* of requires_grad in what that points to: 1 means yes, 0 says nothing; -1: not known */
    _Bool (*requires_grad)(const void *);
} layout;

/* The stable C interface; a handle is the address of the pointer to the TensorImpl. */
static struct {
    int32_t (*dim)(const void *handle, int64_t *);
    int32_t (*sizes)(const void *handle, int64_t **);
    int32_t (*strides)(const void *handle, int64_t **);
    int32_t (*storage_offset)(const void *handle, int64_t *);
    int32_t (*dtype)(const void *handle, int32_t *);
    int32_t (*device_type)(const void *handle, int32_t *);
    int32_t (*device_index)(const void *handle, int32_t *);
} shim;

tensor_Tier dg_tensor_tier = TENSOR_PYTHON;
static PyObject *fallback; /* callable (spec, tensor) -> bool */

#define READ(type, impl, offset) (*(const type *)((impl) + (offset)))

static const char *
tensor_impl(PyObject *tensor)
{
    return READ(char *, (const char *)tensor, layout.impl);
}

static inline int
tensor_requires_grad(const char *impl)
{
    if (layout.autograd >= 0) {
        const char *state = READ(char *, impl, layout.autograd);
        if (state == NULL) {
            return 0;
        }
        if (layout.flag >= 0 && state[layout.flag] == 1) {
            return 1;
        }
    }
    return layout.requires_grad(impl); /* also where an ancestor in the graph may require one */
}

static const int64_t *
raw_extents(const char *impl, Py_ssize_t dims)
{
    const char *place = impl + layout.sizes + sizeof(size_t);
    return dims > TENSOR_INLINE_DIMS ? *(const int64_t **)place : (const int64_t *)place;
}

static int
tensor_extents_hold(const tensor_Spec *spec, const int64_t *sizes, const int64_t *strides)
{
    const int64_t *expected = spec->extents;
    Py_ssize_t dims = spec->dims;
    for (Py_ssize_t i = 0; i < dims; i++) {
        if (sizes[i] != expected[i] && expected[i] != -1) {
            return 0;
        }
        if (strides[i] != expected[dims + i] && expected[dims + i] != INT64_MIN) {
            return 0;
        }
    }
    return 1;
}

static int
raw_holds(const tensor_Spec *spec, PyObject *value)
{
    const char *impl = tensor_impl(value);
    Py_ssize_t dims = spec->dims;
    if (READ(uint64_t, impl, layout.key_set) != spec->key_set || READ(size_t, impl, layout.sizes) != (size_t)dims ||
        READ(uint16_t, impl, layout.dtype) != spec->dtype || READ(uint16_t, impl, layout.device) != spec->device) {
        return 0;
    }
    const int64_t *met = raw_extents(impl, dims);
    return tensor_extents_hold(spec, met, met + (dims > TENSOR_INLINE_DIMS ? dims : TENSOR_INLINE_DIMS)) &&
           (spec->storage_offset < 0 || READ(int64_t, impl, layout.storage_offset) == spec->storage_offset) &&
           tensor_requires_grad(impl) == spec->requires_grad;
}

static tensor_Key
raw_key(PyObject *tensor)
{
    const char *impl = tensor_impl(tensor);
    return (tensor_Key){READ(uint64_t, impl, layout.key_set), READ(uint16_t, impl, layout.dtype),
                        READ(uint16_t, impl, layout.device), (int8_t)tensor_requires_grad(impl)};
}

/* The shim's answers about a tensor: 1, or 0 when it refuses one. */
static int
shim_key(PyObject *tensor, tensor_Key *key)
{
    const void *handle = (const char *)tensor + layout.impl;
    int32_t dtype, type, index;
    if (shim.dtype(handle, &dtype) != 0 || shim.device_type(handle, &type) != 0 ||
        shim.device_index(handle, &index) != 0) {
        return 0;
    }
    const char *impl = tensor_impl(tensor);
    *key = (tensor_Key){READ(uint64_t, impl, layout.key_set), (uint32_t)dtype,
                        (uint32_t)type << 16 | (uint16_t)index, (int8_t)tensor_requires_grad(impl)};
    return 1;
}

static int
shim_extents(PyObject *tensor, int64_t *dims, int64_t **sizes, int64_t **strides)
{
    const void *handle = (const char *)tensor + layout.impl;
    return shim.dim(handle, dims) == 0 && shim.sizes(handle, sizes) == 0 && shim.strides(handle, strides) == 0;
}

static Py_NO_INLINE int
shim_holds(const tensor_Spec *spec, PyObject *value)
{
    const void *handle = (const char *)value + layout.impl;
    int64_t dims, offset, *sizes, *strides;
    tensor_Key key;
    /* the keys first: the shim is asked only about a plain strided tensor */
    if (READ(uint64_t, tensor_impl(value), layout.key_set) != spec->key_set || !shim_key(value, &key) ||
        key.dtype != spec->dtype || key.device != spec->device || key.requires_grad != spec->requires_grad ||
        !shim_extents(value, &dims, &sizes, &strides) || dims != spec->dims) {
        return 0;
    }
    return tensor_extents_hold(spec, sizes, strides) &&
           (spec->storage_offset < 0 ||
            (shim.storage_offset(handle, &offset) == 0 && offset == spec->storage_offset));
}

static Py_NO_INLINE int
python_holds(tensor_Spec *spec, PyObject *value)
{
    if (fallback == NULL) {
        PyErr_SetString(PyExc_RuntimeError, "dynamo.guards._check: no tensor fallback is set");
        return -1;
    }
    PyObject *answer = PyObject_CallFunctionObjArgs(fallback, (PyObject *)spec, value, NULL);
    if (answer == NULL) {
        return -1;
    }
    int holds = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return holds;
}

int
dg_tensor_check(PyObject *spec_object, PyObject *value)
{
    tensor_Spec *spec = (tensor_Spec *)spec_object;
    if ((uintptr_t)Py_TYPE(value) != spec->type) {
        return 0;
    }
    if (spec->tier == TENSOR_RAW) {
        return raw_holds(spec, value);
    }
    return spec->tier == TENSOR_SHIM ? shim_holds(spec, value) : python_holds(spec, value);
}

int
dg_tensor_is_quiet(PyObject *spec)
{
    return ((tensor_Spec *)spec)->tier != TENSOR_PYTHON;
}

int
dg_tensor_key(PyObject *tensor, tensor_Key *key)
{
    if (dg_tensor_tier == TENSOR_RAW) {
        *key = raw_key(tensor);
        return 1;
    }
    return dg_tensor_tier == TENSOR_SHIM && shim_key(tensor, key);
}

int
dg_tensor_extents(PyObject *tensor, tensor_Extents *extents)
{
    if (dg_tensor_tier == TENSOR_RAW) {
        const char *impl = tensor_impl(tensor);
        extents->dims = READ(int64_t, impl, layout.sizes);
        extents->sizes = raw_extents(impl, extents->dims);
        extents->strides = extents->sizes + (extents->dims > TENSOR_INLINE_DIMS ? extents->dims : TENSOR_INLINE_DIMS);
        return 1;
    }
    int64_t *sizes, *strides;
    if (!shim_extents(tensor, &extents->dims, &sizes, &strides)) {
        return 0;
    }
    extents->sizes = sizes;
    extents->strides = strides;
    return 1;
}

int
dg_tensor_offset(PyObject *tensor, int64_t *offset)
{
    if (dg_tensor_tier == TENSOR_RAW) {
        *offset = READ(int64_t, tensor_impl(tensor), layout.storage_offset);
        return 1;
    }
    return shim.storage_offset((const char *)tensor + layout.impl, offset) == 0;
}

static void *
tensor_symbol(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (handle != NULL) {
        dlclose(handle); /* torch keeps it loaded */
    }
    return found;
}

/* tensor_keys(impl, key_set, autograd, flag, library, symbol) -> bool: what raw and shim both need */
static PyObject *
tensor_set_keys(PyObject *module, PyObject *args)
{
    Py_ssize_t impl, key_set, autograd, flag;
    const char *library, *symbol;
    if (!PyArg_ParseTuple(args, "nnnnss", &impl, &key_set, &autograd, &flag, &library, &symbol)) {
        return NULL;
    }
    void *function = tensor_symbol(library, symbol);
    if (function == NULL) {
        Py_RETURN_FALSE;
    }
    memcpy(&layout.requires_grad, &function, sizeof function);
    layout.impl = impl;
    layout.key_set = key_set;
    layout.autograd = autograd;
    layout.flag = flag;
    Py_RETURN_TRUE;
}

/* tensor_raw(sizes, storage_offset, dtype, device): after tensor_keys */
static PyObject *
tensor_set_raw(PyObject *module, PyObject *args)
{
    if (!PyArg_ParseTuple(args, "nnnn", &layout.sizes, &layout.storage_offset, &layout.dtype, &layout.device)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* tensor_shim(library) -> name of a missing function or None: after tensor_keys */
static PyObject *
tensor_set_shim(PyObject *module, PyObject *args)
{
    const struct {
        void *place;
        const char *name;
    } wanted[] = {
        {&shim.dim, "aoti_torch_get_dim"},
        {&shim.sizes, "aoti_torch_get_sizes"},
        {&shim.strides, "aoti_torch_get_strides"},
        {&shim.storage_offset, "aoti_torch_get_storage_offset"},
        {&shim.dtype, "aoti_torch_get_dtype"},
        {&shim.device_type, "aoti_torch_get_device_type"},
        {&shim.device_index, "aoti_torch_get_device_index"},
    };
    const char *library;
    if (!PyArg_ParseTuple(args, "s", &library)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *function = tensor_symbol(library, wanted[i].name);
        if (function == NULL) {
            return PyUnicode_FromString(wanted[i].name);
        }
        memcpy(wanted[i].place, &function, sizeof function);
    }
    Py_RETURN_NONE;
}

/* tensor_tier(name) */
static PyObject *
tensor_set_tier(PyObject *module, PyObject *name)
{
    static const char *const names[] = {"python", "shim", "raw"};
    for (int i = TENSOR_PYTHON; i <= TENSOR_RAW; i++) {
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, names[i]) == 0) {
            dg_tensor_tier = i;
            Py_RETURN_NONE;
        }
    }
    PyErr_SetString(PyExc_ValueError, "a tier is python, shim or raw");
    return NULL;
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
    {"tensor_keys", tensor_set_keys, METH_VARARGS,
     PyDoc_STR("tensor_keys($module, impl, key_set, autograd, flag, library, symbol, /)\n--\n\n"
               "Say where a tensor keeps its dispatch keys, and which function tells requires_grad; False when missing.")},
    {"tensor_raw", tensor_set_raw, METH_VARARGS,
     PyDoc_STR("tensor_raw($module, sizes, storage_offset, dtype, device, /)\n--\n\n"
               "Say where a tensor keeps the rest of its metadata.")},
    {"tensor_shim", tensor_set_shim, METH_VARARGS,
     PyDoc_STR("tensor_shim($module, library, /)\n--\n\n"
               "Find libtorch's stable C interface; the name of a missing function, or None.")},
    {"tensor_tier", tensor_set_tier, METH_O,
     PyDoc_STR("tensor_tier($module, name, /)\n--\n\nSay how specs made from now on read: raw, shim or python.")},
    {"tensor_fallback", tensor_set_fallback, METH_O,
     PyDoc_STR("tensor_fallback($module, function, /)\n--\n\nSet what checks a tensor that is not read raw.")},
    {"read_words", tensor_read_words, METH_VARARGS,
     PyDoc_STR("read_words($module, address, count, /)\n--\n\nCopy `count` 8-byte words of this process's memory.")},
    {NULL, NULL, 0, NULL},
};
