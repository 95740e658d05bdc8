/* A memo: what a successful walk rested on, so that the next one may skip it.  memo.c uses one, record.c makes one.
 *
 * Most instructions of a program on a module read dicts: the instance's, its parameters, its hooks …  While none of these
 * dicts changed, no object reached through them has another class or another dict, and no class was patched, such an
 * instruction must answer as it did.  All these are words of memory: the mark of a dict, the class word of an object,
 * the place of its dict pointer, the version of a class.  The steps of a memo compare the words, run the instructions
 * that rest on something else (a tensor's metadata, a list, a cell, ambient state), and do so in the program's order:
 * what a later step looks at is kept alive by what an earlier one vouched for.  A memo holds no reference.
 */
#ifndef DG_MEMO_H
#define DG_MEMO_H

#include "check.h"

typedef enum {
    MEMO_WORD, /* 8 bytes at `where` are still `what` */
    MEMO_HALF, /* 4 bytes are */
    MEMO_RUN,  /* the instruction at `where` holds */
} memo_Kind;

/* The kind is in the low bits of `where`. */
typedef struct {
    uintptr_t where;
    uintptr_t what;
} memo_Step;

#define MEMO_KIND(step) ((memo_Kind)((step)->where & 3))
#define MEMO_ADDRESS(type, step) ((type *)((step)->where & ~(uintptr_t)3))

/* What must still be true of a dict whose mark moved: a lookup gives the same object (NULL: none), or, where `key` is
 * NULL, an instruction on it or on what was found in it answers the same. */
typedef struct {
    const dg_Instruction *in;
    PyObject *key;      /* borrowed from the program */
    PyObject *expected; /* an address only */
    int32_t next;       /* of the same dict, or -1 */
} memo_Fact;

typedef struct {
    PyObject *dict;
    const uint64_t *mark; /* open */
    int32_t facts;        /* the first, or -1 */
    int32_t from;         /* the register that was loaded with the dict itself on that check, or -1 */
} memo_Dict;

typedef struct {
    PyObject *tensor; /* an address that the steps vouch for */
    PyObject *spec;   /* borrowed from the program */
} memo_Tensor;

#define MEMO_ARRAY(type) \
    struct { \
        type *items; \
        int32_t count, space; \
    }

struct dg_Memo {
    MEMO_ARRAY(memo_Step) steps;
    MEMO_ARRAY(memo_Step) quick;  /* the steps without the marks of dicts; enough while the epoch stands */
    MEMO_ARRAY(int32_t) owners;   /* of each step: the dict whose mark it compares, or -1 */
    MEMO_ARRAY(memo_Dict) dicts;
    MEMO_ARRAY(memo_Fact) facts;
    MEMO_ARRAY(memo_Tensor) tensors;
    MEMO_ARRAY(const dg_Instruction *) late; /* calls into Python, after all that borrows */
    MEMO_ARRAY(int32_t) loaded;   /* registers that a check may own */
    uint64_t epoch;
    int hits;
    int32_t misfit; /* the register whose object did not fit, or -1 */
    int32_t register_count;
    dg_Register registers[];
};

#endif
