/* CPython 3.13: the evaluator clears and pops the frame; `_PyEval_FrameClearAndPop` is exported. */

#define de_request_extra_index PyUnstable_Eval_RequestCodeExtraIndex
#define de_code_get_extra PyUnstable_Code_GetExtra
#define de_code_set_extra PyUnstable_Code_SetExtra

/* Declared in internal/pycore_ceval.h, which pulls in far more than this line. */
PyAPI_FUNC(void) _PyEval_FrameClearAndPop(PyThreadState *tstate, _PyInterpreterFrame *frame);

static inline PyCodeObject *
de_frame_code(de_Frame *frame)
{
    return (PyCodeObject *)frame->f_executable;
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
    PyObject *old = frame->f_executable;
    frame->f_executable = Py_NewRef((PyObject *)code);
    frame->instr_ptr = _PyCode_CODE(code);
    frame->stacktop = code->co_nlocalsplus;
    Py_DECREF(old);
}

static inline void
de_frame_drop(PyThreadState *tstate, de_Frame *frame)
{
    _PyEval_FrameClearAndPop(tstate, frame);
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
