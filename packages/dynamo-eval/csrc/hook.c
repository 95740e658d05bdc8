/* The frame evaluation function (PEP 523), and whether it is installed.
 *
 * The interpreter has one such function; each thread has its own callback.  The function is installed
 * while any thread has a callback, and a thread takes its callback away while it captures and while it
 * runs cached code that calls nothing worth capturing.  Installing costs a few nanoseconds, leaving it
 * installed slows every Python call, so it is off wherever it can be.
 */
#include "eval.h"

#include <pthread.h>

#if defined(__GNUC__) && defined(__linux__)
_Thread_local de_Thread de_thread __attribute__((tls_model("initial-exec")));
#else
_Thread_local de_Thread de_thread;
#endif

static Py_ssize_t hook_users;             /* callbacks set in all threads */
static _PyFrameEvalFunction hook_below;   /* what was installed before us */
static PyInterpreterState *hook_interpreter;

static PyObject *hook_evaluate(PyThreadState *tstate, de_Frame *frame, int throwflag);

/* ---- installed or not ---- */

static void
hook_install(void)
{
    _PyFrameEvalFunction current = _PyInterpreterState_GetEvalFrameFunc(hook_interpreter);
    if (current != hook_evaluate) {
        hook_below = current;
        _PyInterpreterState_SetEvalFrameFunc(hook_interpreter, hook_evaluate);
    }
}

void
de_hook_uninstall(void)
{
    /* Somebody who came after us holds a pointer to our function: then it stays, and passes frames on. */
    if (_PyInterpreterState_GetEvalFrameFunc(hook_interpreter) == hook_evaluate) {
        _PyInterpreterState_SetEvalFrameFunc(hook_interpreter, hook_below);
    }
}

static inline void
hook_count(PyObject *old, PyObject *new)
{
    if ((old != NULL) == (new != NULL)) {
        return;
    }
    if (new != NULL) {
        if (hook_users++ == 0) {
            hook_install();
        }
    }
    else if (--hook_users == 0) {
        de_hook_uninstall();
    }
}

PyObject *
de_hook_set(PyObject *callback)
{
    PyObject *previous = de_thread.callback;
    de_thread.callback = Py_XNewRef(callback);
    hook_count(previous, callback);
    return previous;
}

void
de_hook_restore(PyObject *previous)
{
    PyObject *current = de_thread.callback;
    de_thread.callback = previous;
    hook_count(current, previous);
    Py_XDECREF(current);
}

PyObject *
de_hook_call(PyObject *callback, PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    if (de_thread.callback == callback) {
        return PyObject_Vectorcall(callable, args, nargsf, kwnames);
    }
    PyObject *previous = de_hook_set(callback);
    PyObject *result = PyObject_Vectorcall(callable, args, nargsf, kwnames);
    de_hook_restore(previous);
    return result;
}

PyObject *
de_hook_run_cached(PyObject *callback, de_Guarded *guarded, PyObject *function, PyObject *const *args, size_t nargsf)
{
    PyObject *active = de_thread.active;
    de_thread.active = callback;
    PyObject *result = de_hook_call(guarded->needs_hook ? callback : NULL, function, args, nargsf, NULL);
    de_thread.active = active;
    return result;
}

int
de_hook_find(de_Cache *cache, PyObject *callback, PyObject *const *args, PyObject *closure, PyObject *globals,
             PyObject *builtins, de_Guarded **found)
{
    PyCodeObject *code = (PyCodeObject *)Py_NewRef((PyObject *)cache->code);
    PyObject *current = de_thread.callback;
    de_thread.callback = NULL;
    int status = de_cache_find(cache, de_callback_key(callback), args, closure, globals, builtins, found);
    PyObject *stray = de_thread.callback;
    de_thread.callback = current;
    if (stray != NULL) {
        /* A guard set a callback and left it. */
        hook_count(stray, NULL);
        Py_DECREF(stray);
    }
    Py_DECREF(code);
    return status;
}

/* ---- one frame ---- */

/* Run the frame as if we were not there.  Lends the C recursion counter what the nesting costs. */
static inline PyObject *
hook_pass(PyThreadState *tstate, de_Frame *frame, int throwflag)
{
    de_recursion_lend(tstate);
    PyObject *result = hook_below(tstate, frame, throwflag);
    de_recursion_repay(tstate);
    return result;
}

/* Run the frame, and what it calls, without the hook. */
static PyObject *
hook_pass_unhooked(PyThreadState *tstate, de_Frame *frame, int throwflag)
{
    PyObject *callback = de_hook_set(NULL);
    PyObject *result = hook_pass(tstate, frame, throwflag);
    de_hook_restore(callback);
    return result;
}

/* Deep in the C stack: run without the hook, where Python calls need no C stack; or give up before it ends. */
static PyObject *
hook_pass_deep(PyThreadState *tstate, de_Frame *frame, int throwflag, de_Stack left)
{
    if (left == DE_STACK_HARD && !throwflag && frame->owner == FRAME_OWNED_BY_THREAD) {
        de_frame_drop(tstate, frame);
        PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded");
        return NULL;
    }
    return hook_pass_unhooked(tstate, frame, throwflag);
}

static inline int
hook_is_function_start(de_Frame *frame, PyCodeObject *code, int throwflag)
{
    /* A generator is resumed with a frame of its own; module and class bodies have no fast locals. */
    return !throwflag && frame->owner == FRAME_OWNED_BY_THREAD && (code->co_flags & CO_OPTIMIZED) &&
           frame->f_locals == NULL;
}

/* Take what the callback returned (steals) as a capture of `code`.  NULL with error set when it is none. */
static de_Guarded *
hook_accept(PyCodeObject *code, PyObject *key, PyObject *answer)
{
    if (!PyObject_TypeCheck(answer, de_GuardedType)) {
        PyErr_Format(PyExc_TypeError, "a capture callback returns GuardedCode, None or NotImplemented, not %.200s",
                     Py_TYPE(answer)->tp_name);
        goto error;
    }
    de_Guarded *guarded = (de_Guarded *)answer;
    de_Cache *cache = de_cache_ensure(code);
    /* A capture is slow anyway: let it pay for freeing those whose owners died. */
    de_cache_sweep();
    if (cache == NULL || de_guarded_admit(guarded, code) < 0 || de_cache_add(cache, guarded, key) < 0) {
        goto error;
    }
    cache->captures++;
    return guarded;
error:
    Py_DECREF(answer);
    return NULL;
}

/* Ask the callback about a frame that no capture fits. 1 *found is one (new reference), 0 skip it, 2 not now, -1 error. */
static int
hook_capture(PyThreadState *tstate, de_Frame *frame, PyCodeObject *code, de_Guarded **found)
{
    PyObject *answer = NULL;
    PyObject *view = de_view_new(frame);
    if (view == NULL) {
        return -1;
    }
    de_Cache *cache = de_cache_get(code);
    PyObject *key = Py_XNewRef(de_callback_key(de_thread.callback));
    PyObject *size = PyLong_FromSsize_t(cache ? de_cache_count(cache, key) : 0);
    /* A debugger or profiler of the user's code has nothing to see here.  Where none is active, tracing
     * stays possible: one may set a breakpoint in a backend. */
    int traced = de_is_traced(tstate);
    PyObject *callback = de_hook_set(NULL);
    if (size != NULL) {
        if (traced) {
            PyThreadState_EnterTracing(tstate);
        }
        PyObject *args[] = {NULL, view, size};
        answer = PyObject_Vectorcall(callback, args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL);
        if (traced) {
            PyThreadState_LeaveTracing(tstate);
        }
        Py_DECREF(size);
    }
    de_hook_restore(callback);
    Py_DECREF(view);
    int status = -1;
    if (answer == Py_NotImplemented) {
        Py_DECREF(answer);
        status = 2;
    }
    else if (answer == Py_None) {
        Py_DECREF(answer);
        cache = de_cache_ensure(code);
        status = cache ? de_cache_decline(cache, key) : -1;
    }
    else if (answer != NULL) {
        *found = hook_accept(code, key, answer);
        status = *found ? 1 : -1;
    }
    Py_XDECREF(key);
    return status;
}

/* Capture of `code` whose guards hold for this frame: 1 and a new reference, 0 none, -1 error. */
static int
hook_find(de_Cache *cache, de_Frame *frame, PyCodeObject *code, de_Guarded **found)
{
    if (cache == NULL || cache->size == 0) {
        return 0;
    }
    if (de_thread.missed == code) {
        de_thread.missed = NULL;
        return 0;
    }
    PyFunctionObject *function = de_frame_function(frame);
    int status =
        de_hook_find(cache, de_thread.callback, frame->localsplus, function->func_closure, frame->f_globals,
                     frame->f_builtins, found);
    return status < 0 ? -1 : *found != NULL;
}

static PyObject *
hook_run(PyThreadState *tstate, de_Frame *frame, de_Guarded *guarded)
{
    PyObject *callback = Py_NewRef(de_thread.callback);
    PyObject *active = de_thread.active;
    PyObject *result;
    de_thread.active = callback;
    de_recursion_lend(tstate);
    if (guarded->needs_hook) {
        result = de_run_guarded(tstate, frame, guarded, hook_below);
    }
    else {
        PyObject *previous = de_hook_set(NULL);
        result = de_run_guarded(tstate, frame, guarded, hook_below);
        de_hook_restore(previous);
    }
    de_recursion_repay(tstate);
    de_thread.active = active;
    Py_DECREF(callback);
    return result;
}

static PyObject *
hook_evaluate(PyThreadState *tstate, de_Frame *frame, int throwflag)
{
    de_Stack left = de_stack_left();
    if (left != DE_STACK_ENOUGH) {
        return hook_pass_deep(tstate, frame, throwflag, left);
    }
    if (de_thread.callback == NULL) {
        return hook_pass(tstate, frame, throwflag);
    }
    PyCodeObject *code = de_frame_code(frame);
    if (!hook_is_function_start(frame, code, throwflag)) {
        return hook_pass(tstate, frame, throwflag);
    }
    de_Cache *cache = de_cache_get(code);
    PyObject *key = de_callback_key(de_thread.callback);
    if (cache != NULL && (cache->plain || (cache->size == 0 && de_cache_declines(cache, key)))) {
        return hook_pass(tstate, frame, throwflag);
    }
    de_Guarded *found = NULL;
    int status = hook_find(cache, frame, code, &found);
    if (status == 0) {
        if (cache != NULL && de_cache_declines(cache, key)) {
            return hook_pass(tstate, frame, throwflag);
        }
        status = hook_capture(tstate, frame, code, &found);
    }
    if (status < 0) {
        de_frame_drop(tstate, frame);
        return NULL;
    }
    if (status == 0) {
        return hook_pass(tstate, frame, throwflag);
    }
    if (status == 2) {
        return hook_pass_unhooked(tstate, frame, throwflag);
    }
    PyObject *result = hook_run(tstate, frame, found);
    Py_DECREF(found);
    return result;
}

/* ---- life ---- */

static void
hook_after_fork(void)
{
    /* Only the forking thread lives on. The hook itself leaves with its next change of state. */
    hook_users = de_thread.callback != NULL;
}

int
de_hook_init(void)
{
    hook_interpreter = PyInterpreterState_Get();
    hook_below = _PyInterpreterState_GetEvalFrameFunc(hook_interpreter);
    if (pthread_atfork(NULL, NULL, hook_after_fork) != 0) {
        PyErr_NoMemory();
        return -1;
    }
    return 0;
}
