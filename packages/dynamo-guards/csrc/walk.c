/* The plain walk: every instruction of a program, one after the other. */
#include "check.h"

#define WALK_STACK_REGISTERS 128

static int
walk_has_attr(PyObject *value, PyObject *name)
{
    PyObject *found = PyObject_GetAttr(value, name);
    if (found != NULL) {
        Py_DECREF(found);
        return 1;
    }
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) {
        return -1;
    }
    PyErr_Clear();
    return 0;
}

static int
walk_contains(const dg_Instruction *in, PyObject *value)
{
    if (PyDict_Check(value)) {
        return PyDict_Contains(value, in->object);
    }
    return PyAnySet_Check(value) ? PySet_Contains(value, in->object) : -2;
}

static Py_ssize_t
walk_length(PyObject *value)
{
    if (PyTuple_Check(value)) {
        return PyTuple_GET_SIZE(value);
    }
    if (PyList_Check(value)) {
        return PyList_GET_SIZE(value);
    }
    return PyDict_Check(value) ? PyDict_GET_SIZE(value) : PyObject_Size(value);
}

/* A call into Python: only user predicates and guards without a native form come here. */
static int
walk_call(PyObject *function, PyObject *value)
{
    PyObject *answer = PyObject_CallOneArg(function, value);
    if (answer == NULL) {
        return -1;
    }
    int holds = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return holds;
}

/* Registers that one relation may read. */
#define RELATION_LIMIT 64

/* `object` is a tuple: a callable, then the numbers of the registers that hold its arguments. */
static int
walk_relation(const dg_Instruction *in, const dg_Register *registers)
{
    PyObject *values[RELATION_LIMIT];
    Py_ssize_t count = PyTuple_GET_SIZE(in->object) - 1;
    for (Py_ssize_t i = 0; i < count; i++) {
        values[i] = registers[PyLong_AsSsize_t(PyTuple_GET_ITEM(in->object, i + 1))].value;
    }
    PyObject *answer = PyObject_Vectorcall(PyTuple_GET_ITEM(in->object, 0), values, (size_t)count, NULL);
    if (answer == NULL) {
        return -1;
    }
    int holds = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return holds;
}

/* Whether the operand of a relation has the form that `walk_relation` takes for granted. */
int
dg_is_relation(PyObject *object, Py_ssize_t register_count)
{
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < 2 || PyTuple_GET_SIZE(object) > RELATION_LIMIT + 1) {
        return 0;
    }
    for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(object); i++) {
        PyObject *place = PyTuple_GET_ITEM(object, i);
        if (!PyLong_CheckExact(place) || PyLong_AsSsize_t(place) < 0 || PyLong_AsSsize_t(place) >= register_count) {
            PyErr_Clear();
            return 0;
        }
    }
    return 1;
}

static int
walk_iterator_at(const dg_Instruction *in, PyObject *value)
{
    dg_TupleIterator *it = (dg_TupleIterator *)value;
    if (Py_TYPE(value) != &PyTupleIter_Type) {
        return 0;
    }
    if (it->it_seq == NULL) {
        return in->number == -1;
    }
    /* position and number of items left, 32 bits each */
    return ((it->it_index << 32) | (PyTuple_GET_SIZE(it->it_seq) - it->it_index)) == in->number;
}

static int
walk_negate(int answer)
{
    return answer < 0 ? answer : !answer;
}

int
dg_test(const dg_Instruction *in, dg_Register *registers)
{
    PyObject *value = in->op == DG_TEST_AMBIENT || in->op == DG_TEST_UNBOUND ? NULL : registers[in->source].value;
    switch (in->op) {
    case DG_TEST_TYPE:
        return (Py_ssize_t)Py_TYPE(value) == in->number;
    case DG_TEST_ID:
        return (Py_ssize_t)value == in->number;
    case DG_TEST_NOT_ID:
        return (Py_ssize_t)value != in->number;
    case DG_TEST_EQUAL:
        return dg_same(value, in->object);
    case DG_TEST_LENGTH: {
        Py_ssize_t length = walk_length(value);
        return length < 0 ? -1 : length == in->number;
    }
    case DG_TEST_DICT_KEYS:
        return dg_dict_keys(value, in->object);
    case DG_TEST_CONTAINS: {
        int found = walk_contains(in, value);
        return found == -2 ? 0 : found;
    }
    case DG_TEST_LACKS: {
        int found = walk_contains(in, value);
        return found == -2 ? 0 : walk_negate(found);
    }
    case DG_TEST_HASATTR:
        return walk_has_attr(value, in->object);
    case DG_TEST_NOT_HASATTR:
        return walk_negate(walk_has_attr(value, in->object));
    case DG_TEST_ALIAS:
        return value == registers[in->target].value;
    case DG_TEST_NOT_ALIAS:
        return value != registers[in->target].value;
    case DG_TEST_TENSOR:
        return dg_tensor_check(in->object, value);
    case DG_TEST_AMBIENT:
        return dg_ambient_check(in->source, in->number);
    case DG_TEST_CALL:
        return walk_call(in->object, value);
    case DG_TEST_RELATION:
        return walk_relation(in, registers);
    case DG_TEST_WEAKREF:
        return PyWeakref_Check(value) && dg_weakref_object(value) != NULL;
    case DG_TEST_BOOL:
        return PyObject_IsTrue(value) == in->number;
    case DG_TEST_TUPLE_ITERATOR:
        return walk_iterator_at(in, value);
    case DG_TEST_CLASS_ATTR:
        return (Py_ssize_t)_PyType_Lookup((PyTypeObject *)value, in->object) == in->number;
    default:
        PyErr_Format(PyExc_SystemError, "guard program: %d is not a test", in->op);
        return -1;
    }
}

int
dg_step(const dg_Instruction *in, const dg_Frame *frame, dg_Register *registers)
{
    if (in->op == DG_TEST_UNBOUND) {
        int loaded = dg_load(in + 1, frame, registers);
        return loaded < 0 ? -1 : !loaded;
    }
    return in->op < DG_TEST_TYPE ? dg_load(in, frame, registers) : dg_test(in, registers);
}

/* Whether an instruction can neither run Python code nor make an object (which may start the collector, which runs
 * finalizers).  Any other may: a lookup by the `__eq__` of a key with an equal hash, an attribute by a property that came
 * into the class later. */
static int
walk_is_quiet(const dg_Instruction *in)
{
    switch (in->op) {
    case DG_ARG:
    case DG_CELL:
    case DG_CELL_CONTENT:
    case DG_CONSTANT:
    case DG_FUNCTION_PART:
    case DG_LIST_ITEM:
    case DG_TUPLE_ITEM:
    case DG_TYPE_OF:
    case DG_WEAKREF_CALL:
    case DG_TUPLE_ITERATOR_ITEM:
    case DG_TEST_TYPE:
    case DG_TEST_ID:
    case DG_TEST_NOT_ID:
    case DG_TEST_EQUAL:
    case DG_TEST_ALIAS:
    case DG_TEST_NOT_ALIAS:
    case DG_TEST_AMBIENT:
    case DG_TEST_WEAKREF:
    case DG_TEST_TUPLE_ITERATOR:
        return 1;
    case DG_TEST_TENSOR:
        return dg_tensor_is_quiet(in->object);
    default:
        return 0;
    }
}

/* Number of the first instruction that is not quiet, `count` when all are. */
Py_ssize_t
dg_walk_first_loud(const dg_Program *self)
{
    for (Py_ssize_t i = 0; i < self->count; i++) {
        if (!walk_is_quiet(&self->code[i])) {
            return i;
        }
    }
    return self->count;
}

/* Python code may drop what a register only borrows.  The caller holds the arguments. */
static inline void
walk_own(const dg_Instruction *in, dg_Register *registers)
{
    dg_Register *target = &registers[in->target];
    if (in->op < DG_TEST_TYPE && in->op != DG_ARG && !target->owned) {
        Py_INCREF(target->value);
        target->owned = 1;
    }
}

/* The commonest instructions here, where the compiler sees them together with the loop: a guard costs a few ns. */
static inline int
walk_step(const dg_Instruction *in, const dg_Frame *frame, dg_Register *registers)
{
    PyObject *value;
    if (in->op == DG_TEST_AMBIENT) { /* some ten in a row begin most programs */
        return dg_ambient_check(in->source, in->number);
    }
    switch (in->op) {
    case DG_ARG:
        value = registers[in->target].value = frame->args[in->source];
        return value != NULL;
    case DG_LIST_ITEM:
        value = registers[in->source].value;
        if (!PyList_Check(value) || in->number >= PyList_GET_SIZE(value)) {
            return 0;
        }
        registers[in->target].value = PyList_GET_ITEM(value, in->number);
        return 1;
    case DG_TEST_TYPE:
        return (Py_ssize_t)Py_TYPE(registers[in->source].value) == in->number;
    case DG_TEST_ID:
        return (Py_ssize_t)registers[in->source].value == in->number;
    case DG_TEST_TENSOR:
        return dg_tensor_check(in->object, registers[in->source].value);
    default:
        return dg_step(in, frame, registers);
    }
}

static int
walk_all(const dg_Program *self, const dg_Frame *frame, dg_Register *registers)
{
    const dg_Instruction *loud = self->code + self->first_loud, *end = self->code + self->count;
    const dg_Instruction *in = self->code;
    for (; in < loud; in++) {
        int going = walk_step(in, frame, registers);
        if (going <= 0) {
            return going;
        }
    }
    for (const dg_Instruction *done = self->code; in < end && done < loud; done++) {
        walk_own(done, registers);
    }
    for (; in < end; in = dg_next(in)) {
        int going = walk_step(in, frame, registers);
        if (going <= 0) {
            return going;
        }
        walk_own(in, registers);
    }
    return 1;
}

int
dg_walk(dg_Program *self, const dg_Frame *frame)
{
    dg_Register space[WALK_STACK_REGISTERS];
    dg_Register *registers = space;
    if (self->register_count > WALK_STACK_REGISTERS) {
        registers = PyMem_Malloc((size_t)self->register_count * sizeof *registers);
        if (registers == NULL) {
            PyErr_NoMemory();
            return -1;
        }
    }
    Py_ssize_t owning = self->first_loud < self->count ? self->register_count : 0;
    for (Py_ssize_t i = 0; i < owning; i++) {
        registers[i].value = NULL;
        registers[i].owned = 0;
    }
    int holds = walk_all(self, frame, registers);
    for (Py_ssize_t i = 0; i < owning; i++) {
        if (registers[i].owned) {
            Py_DECREF(registers[i].value);
        }
    }
    if (registers != space) {
        PyMem_Free(registers);
    }
    return holds;
}
