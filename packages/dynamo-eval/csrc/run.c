/* Running other code in place of a frame's own.
 *
 * In place: the frame gets the new code and CPython's evaluator runs it; possible when the frame lies on
 * top of the data stack with room to grow, and neither code makes a generator (measured: swapping
 * generator code crashes 3.11 and 3.13).  Otherwise by a call of a function over the new code with the
 * frame's arguments, after which the frame is dropped without having run.
 */
#include "eval.h"

#include <string.h>

static inline int
run_can_swap(PyThreadState *tstate, de_Frame *frame, PyCodeObject *old, PyCodeObject *new)
{
    PyObject **base = (PyObject **)frame;
    return !((old->co_flags | new->co_flags) & DE_GENERATOR_FLAGS) &&
           base + de_code_slots(old) == tstate->datastack_top &&
           base + de_code_slots(new) < tstate->datastack_limit;
}

static PyObject *
run_swapped(PyThreadState *tstate, de_Frame *frame, PyCodeObject *old, PyCodeObject *new,
            _PyFrameEvalFunction evaluate)
{
    Py_ssize_t arguments = de_code_arguments(old);
    memset(frame->localsplus + arguments, 0, (size_t)(new->co_nlocalsplus - arguments) * sizeof(PyObject *));
    tstate->datastack_top = (PyObject **)frame + de_code_slots(new);
    de_frame_set_code(frame, new);
    return evaluate(tstate, frame, 0);
}

PyObject *
de_run_function(de_Guarded *guarded, PyObject *globals, PyObject *builtins, PyObject *closure, PyObject *qualname)
{
    PyObject *function = PyFunction_NewWithQualName((PyObject *)guarded->flat, globals, qualname);
    if (function == NULL) {
        return NULL;
    }
    PyFunctionObject *fields = (PyFunctionObject *)function;
    Py_XSETREF(fields->func_closure, Py_XNewRef(closure));
    Py_SETREF(fields->func_builtins, Py_NewRef(builtins));
    return function;
}

PyObject *
de_run_guarded(PyThreadState *tstate, de_Frame *frame, de_Guarded *guarded, _PyFrameEvalFunction evaluate)
{
    PyCodeObject *old = de_frame_code(frame);
    if (run_can_swap(tstate, frame, old, guarded->code)) {
        return run_swapped(tstate, frame, old, guarded->code, evaluate);
    }
    PyFunctionObject *function = de_frame_function(frame);
    PyObject *result = NULL;
    PyObject *substitute = de_run_function(guarded, frame->f_globals, frame->f_builtins, function->func_closure,
                                           function->func_qualname);
    if (substitute != NULL) {
        result = PyObject_Vectorcall(substitute, frame->localsplus, (size_t)de_code_arguments(old), NULL);
        Py_DECREF(substitute);
    }
    de_frame_drop(tstate, frame);
    return result;
}
