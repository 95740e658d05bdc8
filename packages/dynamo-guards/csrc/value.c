/* Equality of constants down to type and bits, without making objects.
 *
 * `==` is not enough for a guard: 1 == True == 1.0, -0.0 == 0.0, and nan differs from itself.
 */
#include "check.h"

#include <string.h>

static int
value_same_items(PyObject **left, PyObject **right, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        int same = dg_same(left[i], right[i]);
        if (same <= 0) {
            return same;
        }
    }
    return 1;
}

static int
value_same_dict(PyObject *left, PyObject *right)
{
    Py_ssize_t i = 0, j = 0;
    PyObject *left_key, *left_value, *right_key, *right_value;
    if (PyDict_GET_SIZE(left) != PyDict_GET_SIZE(right)) {
        return 0;
    }
    while (PyDict_Next(left, &i, &left_key, &left_value)) {
        if (!PyDict_Next(right, &j, &right_key, &right_value)) {
            return 0;
        }
        int same = dg_same(left_key, right_key);
        if (same > 0) {
            same = dg_same(left_value, right_value);
        }
        if (same <= 0) {
            return same;
        }
    }
    return 1;
}

/* Every element of `left` has an exact equal in `right`; sizes are equal, so that the sets are. */
static int
value_same_set(PyObject *left, PyObject *right)
{
    Py_ssize_t i = 0, j;
    PyObject *item, *other;
    Py_hash_t hash, other_hash;
    if (PySet_GET_SIZE(left) != PySet_GET_SIZE(right)) {
        return 0;
    }
    while (_PySet_NextEntry(left, &i, &item, &hash)) {
        int found = 0;
        for (j = 0; !found && _PySet_NextEntry(right, &j, &other, &other_hash);) {
            if (hash != other_hash) {
                continue;
            }
            found = dg_same(item, other);
            if (found < 0) {
                return -1;
            }
        }
        if (!found) {
            return 0;
        }
    }
    return 1;
}

/* range has no public struct; its members are plain members, reading them makes nothing. */
static int
value_same_range(PyObject *left, PyObject *right)
{
    static const char *const members[] = {"start", "stop", "step"};
    for (size_t i = 0; i < 3; i++) {
        PyObject *a = PyObject_GetAttrString(left, members[i]);
        PyObject *b = a != NULL ? PyObject_GetAttrString(right, members[i]) : NULL;
        int same = b != NULL ? dg_same(a, b) : -1;
        Py_XDECREF(a);
        Py_XDECREF(b);
        if (same <= 0) {
            return same;
        }
    }
    return 1;
}

int
dg_same(PyObject *left, PyObject *right)
{
    PyTypeObject *type = Py_TYPE(left);
    if (left == right) {
        return 1;
    }
    if (type != Py_TYPE(right)) {
        return 0;
    }
    if (type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBytes_Type) {
        return PyObject_RichCompareBool(left, right, Py_EQ);
    }
    if (type == &PyFloat_Type) {
        double a = PyFloat_AS_DOUBLE(left), b = PyFloat_AS_DOUBLE(right);
        return memcmp(&a, &b, sizeof a) == 0;
    }
    if (type == &PyComplex_Type) {
        Py_complex a = PyComplex_AsCComplex(left), b = PyComplex_AsCComplex(right);
        return memcmp(&a, &b, sizeof a) == 0;
    }
    if (PyTuple_Check(left)) {
        if (PyTuple_GET_SIZE(left) != PyTuple_GET_SIZE(right)) {
            return 0;
        }
        return value_same_items(&PyTuple_GET_ITEM(left, 0), &PyTuple_GET_ITEM(right, 0), PyTuple_GET_SIZE(left));
    }
    if (type == &PyList_Type) {
        if (PyList_GET_SIZE(left) != PyList_GET_SIZE(right)) {
            return 0;
        }
        return value_same_items(((PyListObject *)left)->ob_item, ((PyListObject *)right)->ob_item,
                                PyList_GET_SIZE(left));
    }
    if (type == &PyDict_Type) {
        return value_same_dict(left, right);
    }
    if (type == &PyFrozenSet_Type || type == &PySet_Type) {
        return value_same_set(left, right);
    }
    if (type == &PyRange_Type) {
        return value_same_range(left, right);
    }
    if (type == &PySlice_Type) {
        PySliceObject *a = (PySliceObject *)left, *b = (PySliceObject *)right;
        int same = dg_same(a->start, b->start);
        same = same > 0 ? dg_same(a->stop, b->stop) : same;
        return same > 0 ? dg_same(a->step, b->step) : same;
    }
    if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) {
        return 0; /* an instance of a Python class: only identity is exact */
    }
    return PyObject_RichCompareBool(left, right, Py_EQ); /* torch.device and other static types of the builder's list */
}

int
dg_dict_has_own_order(PyObject *dict)
{
    return PyODict_Check(dict) && PyDict_GET_SIZE(dict) > 1;
}

PyObject *
dg_dict_own_order(PyObject *dict)
{
    PyObject *iterator = PyODict_Type.tp_iter(dict); /* not that of a subclass, which may run anything */
    PyObject *keys = iterator != NULL ? PySequence_Tuple(iterator) : NULL;
    Py_XDECREF(iterator);
    return keys;
}

int
dg_dict_keys(PyObject *dict, PyObject *keys)
{
    Py_ssize_t position = 0, i = 0, count = PyTuple_GET_SIZE(keys);
    PyObject *key, *value;
    if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != count) {
        return 0;
    }
    if (dg_dict_has_own_order(dict)) {
        PyObject *met = dg_dict_own_order(dict);
        int same = met == NULL ? -1 : PyTuple_GET_SIZE(met) == count;
        same = same > 0 ? value_same_items(&PyTuple_GET_ITEM(met, 0), &PyTuple_GET_ITEM(keys, 0), count) : same;
        Py_XDECREF(met);
        return same;
    }
    while (i < count && PyDict_Next(dict, &position, &key, &value)) {
        int same = dg_same(key, PyTuple_GET_ITEM(keys, i++));
        if (same <= 0) {
            return same;
        }
    }
    return i == count;
}
