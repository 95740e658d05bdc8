/* CPython 3.11: the caller of the evaluator (`_PyEval_Vector`) clears and pops the frame. */

#define de_request_extra_index _PyEval_RequestCodeExtraIndex
#define de_code_get_extra _PyCode_GetExtra
#define de_code_set_extra _PyCode_SetExtra

static inline PyCodeObject *
de_frame_code(de_Frame *frame)
{
    return frame->f_code;
}

static inline PyFunctionObject *
de_frame_function(de_Frame *frame)
{
    return frame->f_func;
}

static inline Py_ssize_t
de_code_slots(PyCodeObject *code)
{
    return (Py_ssize_t)FRAME_SPECIALS_SIZE + code->co_nlocalsplus + code->co_stacksize;
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

static inline void
de_frame_drop(PyThreadState *tstate, de_Frame *frame)
{
    /* Python/ceval.c, 3.11: `_PyEval_Vector` calls `_PyEvalFrameClearAndPop` whatever we return. */
    (void)tstate;
    (void)frame;
}

static inline void
de_recursion_lend(PyThreadState *tstate)
{
    /* 3.11 has one counter for C and Python; a call costs one in both worlds. */
    (void)tstate;
}

static inline void
de_recursion_repay(PyThreadState *tstate)
{
    (void)tstate;
}

static inline int
de_is_traced(PyThreadState *tstate)
{
    return tstate->c_tracefunc != NULL || tstate->c_profilefunc != NULL;
}
