/* What tensor.c (reading a tensor) and tensor_spec.c (the Python type of what a tensor must be) share. */
#ifndef DG_TENSOR_H
#define DG_TENSOR_H

#include "check.h"

#pragma GCC visibility push(hidden)

typedef enum { TENSOR_PYTHON, TENSOR_SHIM, TENSOR_RAW } tensor_Tier;

#define TENSOR_MAX_DIMS 64

/* A spec is as long as its tensor has dimensions: sizes, then strides; -1: any size, INT64_MIN: any stride. */
typedef struct {
    PyObject_VAR_HEAD
    uintptr_t type;
    uint64_t key_set;
    int64_t storage_offset; /* -1: any */
    PyObject *kind;         /* what the fallback and the words need beside the extents; holds no tensor */
    uint32_t dtype;
    uint32_t device;
    int16_t dims;           /* -1: any sizes and strides */
    int8_t has_strides;
    int8_t requires_grad;
    int8_t tier;
    int64_t extents[];
} tensor_Spec;

/* What a tensor is but for its class and extents. */
typedef struct {
    uint64_t key_set;
    uint32_t dtype, device;
    int8_t requires_grad;
} tensor_Key;

/* Where a live tensor keeps its extents. */
typedef struct {
    int64_t dims;
    const int64_t *sizes, *strides;
} tensor_Extents;

extern tensor_Tier dg_tensor_tier; /* of specs made from now on */

/* What the tier in use reads of a tensor: 1, or 0 when it does not read this one. */
int dg_tensor_key(PyObject *tensor, tensor_Key *key);
int dg_tensor_extents(PyObject *tensor, tensor_Extents *extents);
int dg_tensor_offset(PyObject *tensor, int64_t *offset);

/* tensor_spec.c */
int dg_tensor_spec_setup(PyObject *module);
extern PyMethodDef dg_tensor_spec_methods[];

#pragma GCC visibility pop

#endif
