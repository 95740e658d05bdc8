/* CPython 3.12: the evaluator clears and pops the frame, and exports nothing to do it with. */

#define de_request_extra_index PyUnstable_Eval_RequestCodeExtraIndex
#define de_code_get_extra PyUnstable_Code_GetExtra
#define de_code_set_extra PyUnstable_Code_SetExtra

static inline PyCodeObject *
de_frame_code(de_Frame *frame)
{
    return frame->f_code;
}

static inline PyFunctionObject *
de_frame_function(de_Frame *frame)
{
    return (PyFunctionObject *)frame->f_funcobj;
}

static inline Py_ssize_t
de_code_slots(PyCodeObject *code)
{
    return code->co_framesize;
}

static inline void
de_frame_set_code(de_Frame *frame, PyCodeObject *code)
{
    PyCodeObject *old = frame->f_code;
    frame->f_code = (PyCodeObject *)Py_NewRef((PyObject *)code);
    frame->prev_instr = _PyCode_CODE(code) - 1;
    frame->stacktop = code->co_nlocalsplus;
    Py_DECREF(old);
}

/* Take the frame from the data stack, and its chunk if it was the first in it (Python/pystate.c, 3.12). */
static inline void
de_datastack_pop(PyThreadState *tstate, de_Frame *frame)
{
    PyObject **base = (PyObject **)frame;
    _PyStackChunk *chunk = tstate->datastack_chunk;
    if (base != &chunk->data[0]) {
        tstate->datastack_top = base;
        return;
    }
    _PyStackChunk *previous = chunk->previous;
    PyObjectArenaAllocator arena;
    PyObject_GetArenaAllocator(&arena);
    tstate->datastack_top = &previous->data[previous->top];
    tstate->datastack_chunk = previous;
    tstate->datastack_limit = (PyObject **)((char *)previous + previous->size);
    arena.free(arena.ctx, chunk, chunk->size);
}

static inline void
de_frame_drop(PyThreadState *tstate, de_Frame *frame)
{
    /* A frame that never ran was never linked, so no frame object can have been made for it. */
    assert(frame->frame_obj == NULL);
    for (int i = 0; i < frame->stacktop; i++) {
        Py_XDECREF(frame->localsplus[i]);
    }
    Py_XDECREF(frame->f_locals);
    Py_DECREF(frame->f_funcobj);
    Py_DECREF(frame->f_code);
    de_datastack_pop(tstate, frame);
}

/* One evaluation costs this much of the counter (PY_EVAL_C_STACK_UNITS of Python/ceval.c; read in the
 * machine code of 3.12.1, whose evaluator begins by taking 2). */
#define DE_EVALUATION_UNITS 2

static inline void
de_recursion_lend(PyThreadState *tstate)
{
    tstate->c_recursion_remaining += DE_EVALUATION_UNITS;
}

static inline void
de_recursion_repay(PyThreadState *tstate)
{
    tstate->c_recursion_remaining -= DE_EVALUATION_UNITS;
}

static inline int
de_is_traced(PyThreadState *tstate)
{
    if (tstate->c_tracefunc != NULL || tstate->c_profilefunc != NULL) {
        return 1;
    }
    /* sys.monitoring keeps one byte of tools for each kind of event. */
    const unsigned char *tools = (const unsigned char *)&tstate->interp->monitors;
    unsigned char any = 0;
    for (size_t i = 0; i < sizeof(tstate->interp->monitors); i++) {
        any |= tools[i];
    }
    return any != 0;
}
