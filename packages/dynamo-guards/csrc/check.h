/* What the files of the guard core share.  Names that cross files start with dg_.
 *
 * A guard program is a flat list of instructions over registers: loads put the value that a source names into a
 * register, tests look at a register and end the walk with "miss" when they do not hold.  Each access path has one
 * register, so guards on one object share the way to it.
 */
#ifndef DG_CHECK_H
#define DG_CHECK_H

#include "compat.h"

#include <stdint.h>

/* Calls between the files need no indirection: nothing but the module's init function is for others. */
#pragma GCC visibility push(hidden)

/* The order is the numbering that Python reads from `OPCODES`. */
#define DG_OPCODES(X) \
    X(ARG) X(CELL) X(CELL_CONTENT) X(GLOBAL) X(BUILTIN) X(CONSTANT) \
    X(ATTR) X(FUNCTION_PART) X(MODULE_ATTR) X(INSTANCE_DICT) X(LIST_ITEM) X(TUPLE_ITEM) X(DICT_ITEM) X(DICT_KEY_AT) X(TYPE_OF) \
    X(WEAKREF_CALL) X(CLASS_ATTR) X(TUPLE_ITERATOR_ITEM) X(SUPER_ATTR) X(CALL_LOAD) \
    X(TEST_TYPE) X(TEST_ID) X(TEST_NOT_ID) X(TEST_EQUAL) X(TEST_LENGTH) X(TEST_DICT_KEYS) \
    X(TEST_CONTAINS) X(TEST_LACKS) X(TEST_HASATTR) X(TEST_NOT_HASATTR) X(TEST_ALIAS) X(TEST_NOT_ALIAS) \
    X(TEST_TENSOR) X(TEST_AMBIENT) X(TEST_CALL) X(TEST_WEAKREF) X(TEST_UNBOUND) X(TEST_BOOL) \
    X(TEST_TUPLE_ITERATOR) X(TEST_CLASS_ATTR) X(TEST_RELATION)

typedef enum {
#define X(name) DG_##name,
    DG_OPCODES(X)
#undef X
    DG_OPCODE_COUNT
} dg_Op;

typedef struct {
    uint32_t op : 8;
    uint32_t target : 24; /* register written by a load; second register of an aliasing test */
    int32_t source;       /* register read, or position of an argument or cell */
    Py_ssize_t number;    /* address, length, index or expected number; hash of a name */
    PyObject *object;     /* owned operand, or NULL */
} dg_Instruction;

/* Where the values of one call are.  All borrowed. */
typedef struct {
    PyObject *const *args;
    Py_ssize_t arg_count;
    PyObject *closure;
    PyObject *globals;
    PyObject *builtins;
} dg_Frame;

/* A value on its way through the walk: owned values are released at the end. */
typedef struct {
    PyObject *value;
    int owned;
} dg_Register;

typedef struct dg_Memo dg_Memo;

/* The Python type GuardProgram. */
typedef struct {
    PyObject_HEAD
    Py_ssize_t count;
    Py_ssize_t register_count;
    Py_ssize_t arg_count;
    Py_ssize_t error_count;
    Py_ssize_t first_loud; /* the first instruction that may run Python code; `count` when none may */
    dg_Instruction *code;
    PyObject *keep;     /* weak references whose death ends the validity, and constants; owned */
    PyObject *weaklist;
    dg_Memo *memo;      /* owned, or NULL */
    char *loose;        /* for each register: holds another object on each call, so that no memo rests on it; or NULL */
    int memo_wait;      /* checks until the next try to make one */
    int memo_strikes;   /* memos in a row that were of no use */
    char memo_pays;     /* enough instructions that a memo may skip */
    char memo_busy;     /* one is being made or used further up the stack */
    char valid;
} dg_Program;

typedef struct {
    PyTypeObject *program_type;
    PyTypeObject *tensor_type;
    PyObject *report; /* callable taking an exception, or NULL */
    PyObject *unbound; /* stands for an argument without a value, or NULL */
    PyObject *str_parameters;
    PyObject *str_buffers;
    PyObject *str_modules;
    int marks; /* whether dicts can be followed */
} dg_State;

extern dg_State dg_state;

/* access.c: 1 = loaded, 0 = there is no such value (no exception), -1 = exception set. */
int dg_load(const dg_Instruction *in, const dg_Frame *frame, dg_Register *registers);
PyObject *dg_module_attr(PyObject *module, PyObject *name); /* borrowed, or NULL without an exception */

/* walk.c: 1 = holds, 0 = miss, -1 = exception set. */
int dg_test(const dg_Instruction *in, dg_Register *registers);
int dg_step(const dg_Instruction *in, const dg_Frame *frame, dg_Register *registers);
int dg_walk(dg_Program *self, const dg_Frame *frame);
Py_ssize_t dg_walk_first_loud(const dg_Program *self);
int dg_is_relation(PyObject *operand, Py_ssize_t register_count);
static inline const dg_Instruction *
dg_next(const dg_Instruction *in)
{
    return in + (in->op == DG_TEST_UNBOUND ? 2 : 1); /* the test that a load finds nothing has the load after it */
}

/* memo.c: dg_memo_check is a walk that skips what cannot have changed since the memo was made. */
#define DG_NO_MEMO (-2)
int dg_memo_pays(const dg_Program *self);
int dg_memo_check(dg_Program *self, const dg_Frame *frame); /* 1, 0, -1 as a walk, or DG_NO_MEMO */
int dg_memo_record(dg_Program *self, const dg_Frame *frame); /* a whole walk that leaves a memo: 1, 0, -1 */
void dg_memo_free(dg_Memo *memo);
Py_ssize_t dg_memo_size(const dg_Memo *memo);

/* value.c: 1 = equal down to type and bits, 0 = not, -1 = exception set. */
int dg_same(PyObject *left, PyObject *right);
/* Whether the dict's keys have an order that is not the one of PyDict_Next: OrderedDict.move_to_end.  The order as a
 * tuple: new reference. */
int dg_dict_has_own_order(PyObject *dict);
PyObject *dg_dict_own_order(PyObject *dict);
/* 1, 0: keys of a dict equal `keys` (a tuple) in order. */
int dg_dict_keys(PyObject *dict, PyObject *keys);

/* tensor.c */
int dg_tensor_check(PyObject *spec, PyObject *value); /* 1, 0, -1 with exception */
int dg_tensor_is_quiet(PyObject *spec);               /* the check never runs Python code */
extern PyMethodDef dg_tensor_methods[];

/* ambient.c */
#define DG_AMBIENT_MAX 32

/* Every reader is called as a function of one word that gives one word.  The callee reads what it declares (an unused
 * argument is ignored by the C calling conventions that libtorch is built for), and what is no part of its result is
 * masked off. */
typedef struct {
    uint64_t (*read)(intptr_t argument);
    intptr_t argument; /* the object when the function is a method */
    uint64_t mask;
} dg_Ambient;

extern dg_Ambient dg_ambients[DG_AMBIENT_MAX];
extern Py_ssize_t dg_ambient_count;

static inline Py_ssize_t
dg_ambient_read(const dg_Ambient *state)
{
    return (Py_ssize_t)(state->read(state->argument) & state->mask);
}

/* 1 = the state has the expected number, 0 = not. */
static inline int
dg_ambient_check(Py_ssize_t which, Py_ssize_t expected)
{
    return which >= 0 && which < dg_ambient_count && dg_ambient_read(&dg_ambients[which]) == expected;
}

extern PyMethodDef dg_ambient_methods[];

/* program.c */
int dg_program_setup(PyObject *module);
int dg_program_check(PyObject *program, PyObject *const *args, PyObject *closure, PyObject *globals,
                     PyObject *builtins);
int dg_program_valid(PyObject *program);

typedef struct {
    uint32_t version;
    int (*check)(PyObject *program, PyObject *const *args, PyObject *closure, PyObject *globals, PyObject *builtins);
    int (*valid)(PyObject *program);
} dg_API;

#pragma GCC visibility pop

#endif
