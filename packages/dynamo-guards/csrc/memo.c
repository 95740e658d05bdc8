/* Checking by a memo (memo.h), and what to do when something in it moved. */
#include "memo.h"

/* Memos of no use in a row double the number of checks until the next try, up to two to this. */
#define MEMO_MAX_STRIKES 10
#define MEMO_USEFUL_HITS 4

void
dg_memo_free(dg_Memo *memo)
{
    if (memo == NULL) {
        return;
    }
    for (int32_t i = 0; i < memo->dicts.count; i++) {
        dg_mark_close(memo->dicts.items[i].mark);
    }
    PyMem_Free(memo->steps.items);
    PyMem_Free(memo->quick.items);
    PyMem_Free(memo->owners.items);
    PyMem_Free(memo->dicts.items);
    PyMem_Free(memo->facts.items);
    PyMem_Free(memo->tensors.items);
    PyMem_Free(memo->late.items);
    PyMem_Free(memo->loaded.items);
    PyMem_Free(memo);
}

Py_ssize_t
dg_memo_size(const dg_Memo *memo)
{
    if (memo == NULL) {
        return 0;
    }
    size_t size = sizeof *memo;
    size += (size_t)(memo->steps.space + memo->quick.space) * sizeof(memo_Step);
    size += (size_t)(memo->owners.space + memo->loaded.space) * sizeof(int32_t);
    size += (size_t)memo->dicts.space * sizeof(memo_Dict) + (size_t)memo->facts.space * sizeof(memo_Fact);
    size += (size_t)memo->tensors.space * sizeof(memo_Tensor) + (size_t)memo->late.space * sizeof(void *);
    return (Py_ssize_t)size;
}

static int
memo_fact_holds(const memo_Fact *fact, PyObject *dict, const dg_Frame *frame, dg_Register *registers)
{
    if (fact->key != NULL) {
        PyObject *found = PyDict_GetItemWithError(dict, fact->key);
        return found == NULL && PyErr_Occurred() ? -1 : found == fact->expected;
    }
    int going = dg_step(fact->in, frame, registers);
    if (going > 0 && fact->in->op < DG_TEST_TYPE) {
        return registers[fact->in->target].value == fact->expected;
    }
    return going;
}

/* A dict moved: 1 when all that was read of it is as it was (its mark is taken anew), 0 when not, -1 on error. */
static int
memo_refresh(dg_Memo *memo, int32_t owner, memo_Step *step, const dg_Frame *frame)
{
    memo_Dict *dict = &memo->dicts.items[owner];
    if (!dg_mark_lives(dict->mark)) {
        return 0;
    }
    uint64_t mark = *dict->mark;
    for (int32_t i = dict->facts; i >= 0; i = memo->facts.items[i].next) {
        int holds = memo_fact_holds(&memo->facts.items[i], dict->dict, frame, memo->registers);
        if (holds <= 0) {
            return holds;
        }
    }
    step->what = (uintptr_t)mark;
    return 1;
}

/* The number of the register that lies at an address, or -1. */
static int32_t
memo_register_at(const dg_Memo *memo, uintptr_t address)
{
    uintptr_t number = (address - (uintptr_t)memo->registers) / sizeof(dg_Register);
    return number < (uintptr_t)memo->register_count ? (int32_t)number : -1;
}

/* 1 = all hold, 0 = an instruction says miss, -1 = exception, DG_NO_MEMO = the memo does not fit any more. */
static int
memo_steps_hold(dg_Memo *memo, const dg_Frame *frame)
{
    uint64_t epoch = dg_marks_epoch;
    int is_quick = DG_MARKS_HAVE_EPOCH && memo->epoch == epoch;
    memo_Step *first = is_quick ? memo->quick.items : memo->steps.items;
    memo_Step *end = first + (is_quick ? memo->quick.count : memo->steps.count);
    for (memo_Step *step = first; step < end; step++) {
        if (MEMO_KIND(step) == MEMO_WORD) {
            if (*(const uintptr_t *)step->where == step->what) {
                continue;
            }
            int32_t owner = is_quick ? -1 : memo->owners.items[step - first];
            int fresh = owner >= 0 ? memo_refresh(memo, owner, step, frame) : 0;
            if (fresh <= 0) {
                memo->misfit = owner >= 0 ? memo->dicts.items[owner].from : memo_register_at(memo, step->where);
                return fresh < 0 ? -1 : DG_NO_MEMO;
            }
        }
        else if (MEMO_KIND(step) == MEMO_RUN) {
            int going = dg_step(MEMO_ADDRESS(const dg_Instruction, step), frame, memo->registers);
            if (going <= 0) {
                return going;
            }
        }
        else if (*MEMO_ADDRESS(const unsigned int, step) != (unsigned int)step->what) {
            return DG_NO_MEMO;
        }
    }
    memo->epoch = epoch;
    return 1;
}

static int
memo_tensors_hold(const dg_Memo *memo)
{
    const memo_Tensor *end = memo->tensors.items + memo->tensors.count;
    for (const memo_Tensor *each = memo->tensors.items; each < end; each++) {
        int holds = dg_tensor_check(each->spec, each->tensor);
        if (holds <= 0) {
            return holds;
        }
    }
    return 1;
}

/* The calls into Python; what they are given is owned before the first of them runs. */
static int
memo_late_hold(dg_Memo *memo, const dg_Frame *frame)
{
    int holds = 1;
    for (int32_t i = 0; memo->late.count > 0 && i < memo->loaded.count; i++) {
        dg_Register *each = &memo->registers[memo->loaded.items[i]];
        if (!each->owned && each->value != NULL) {
            each->owned = 1;
            Py_INCREF(each->value);
        }
    }
    for (int32_t i = 0; holds > 0 && i < memo->late.count; i++) {
        holds = dg_step(memo->late.items[i], frame, memo->registers);
    }
    return holds;
}

static void
memo_release(dg_Memo *memo)
{
    for (int32_t i = 0; i < memo->loaded.count; i++) {
        dg_Register *each = &memo->registers[memo->loaded.items[i]];
        if (each->owned) {
            each->owned = 0;
            Py_DECREF(each->value);
        }
    }
}

/* The memo was made for one object in a register and never met it again, such as the dict of keyword arguments of a call:
 * the next one must not rest on it. */
static int
memo_loosen(dg_Program *self, const dg_Memo *memo)
{
    if (memo->misfit < 0 || memo->hits >= MEMO_USEFUL_HITS) {
        return 0;
    }
    if (self->loose == NULL) {
        self->loose = PyMem_Calloc((size_t)self->register_count, 1);
    }
    if (self->loose == NULL || self->loose[memo->misfit]) {
        return 0;
    }
    self->loose[memo->misfit] = 1;
    return 1;
}

static void
memo_drop(dg_Program *self)
{
    dg_Memo *memo = self->memo;
    self->memo = NULL;
    if (memo_loosen(self, memo)) {
        self->memo_wait = 0;
        dg_memo_free(memo);
        return;
    }
    self->memo_strikes = memo->hits >= MEMO_USEFUL_HITS ? 0 : Py_MIN(self->memo_strikes + 1, MEMO_MAX_STRIKES);
    self->memo_wait = self->memo_strikes > 0 ? 1 << self->memo_strikes : 0;
    dg_memo_free(memo);
}

int
dg_memo_check(dg_Program *self, const dg_Frame *frame)
{
    dg_Memo *memo = self->memo;
    if (memo == NULL) {
        return DG_NO_MEMO;
    }
    self->memo_busy = 1;
    int holds = memo_steps_hold(memo, frame);
    if (holds > 0) {
        holds = memo_tensors_hold(memo);
    }
    if (holds > 0) {
        holds = memo_late_hold(memo, frame);
    }
    memo_release(memo);
    self->memo_busy = 0;
    if (holds == DG_NO_MEMO || !self->valid) {
        memo_drop(self);
        return self->valid ? DG_NO_MEMO : 0;
    }
    memo->hits += holds > 0;
    return holds;
}
