/* What the files of this core offer each other.  One file per noun:
 *
 *   hook.c      the frame evaluation function, and whether it is installed
 *   cache.c     what is known about one code object: its captures, newest use first
 *   guarded.c   one capture: new code, and the guards under which it may stand in for the old
 *   guards.c    asking guards, through the capsule of dynamo.guards or through a Python `check_fn`
 *   callback.c  in whose name a callback captures
 *   run.c       running other code in place of a frame's own
 *   view.c      what the capture callback sees of a frame
 *   bind.c      arguments of a call → the slots of a frame, as Python binds them
 *   entry.c     the callable that checks guards and enters cached code without the hook
 *   rest.c      the callable by which cached code goes on after a graph break
 *   stack.c     how much C stack this thread has left
 */
#ifndef DE_EVAL_H
#define DE_EVAL_H

#include "compat.h"

#include <stdint.h>

typedef struct de_Cache de_Cache;
typedef struct de_Guarded de_Guarded;
typedef struct de_Runner de_Runner;

/* ---- in whose name (callback.c) ---- */

typedef struct {
    PyObject_HEAD
    PyObject *key;
} de_Callback;

extern PyTypeObject *de_CallbackType;
PyTypeObject *de_callback_type(PyObject *module);

/* Key of a callback (borrowed); NULL for one without: those share their captures. */
static inline PyObject *
de_callback_key(PyObject *callback)
{
    return callback != NULL && PyObject_TypeCheck(callback, de_CallbackType) ? ((de_Callback *)callback)->key : NULL;
}

/* Whether a weak reference (NULL: none) is to this key (NULL: none). */
static inline int
de_key_is(PyObject *reference, PyObject *key)
{
    return (reference ? ((PyWeakReference *)reference)->wr_object : NULL) == key;
}

static inline int
de_key_is_gone(PyObject *reference)
{
    return reference != NULL && ((PyWeakReference *)reference)->wr_object == Py_None;
}

/* ---- one capture (guarded.c) ---- */

struct de_Guarded {
    PyObject_HEAD
    PyCodeObject *code;  /* runs in place of the original; same arguments, same free variables */
    PyCodeObject *flat;  /* the same code with every argument positional, for calls with bound arguments */
    PyObject *manager;   /* owner of the guards */
    PyObject *program;   /* native guards, or NULL: ask check_fn */
    PyObject *check_fn;  /* NULL when program is there */
    PyObject *reason;    /* why it was captured: str or None */
    PyObject *key;       /* weak reference to the key of the callback that captured it, or NULL */
    PyObject *dict;
    PyObject *weakrefs;
    de_Cache *cache;     /* borrowed: the cache that holds it, or NULL */
    de_Runner *runners;  /* functions that entry points made for it; owned by them */
    de_Guarded *follower; /* borrowed: what hit next when this was the latest hit, or NULL */
    uint64_t hits;
    int needs_hook;      /* may call frames that need capture */
};

/* A function over `flat` with one entry point's globals and closure; lives in two lists. */
struct de_Runner {
    de_Guarded *guarded;       /* borrowed; NULL once the capture is released */
    PyObject *function;        /* owned; NULL once the capture is released */
    de_Runner *guarded_next, **guarded_link;
    de_Runner *next;           /* list of the entry point, latest use first */
};

extern PyTypeObject *de_GuardedType;
PyTypeObject *de_guarded_type(PyObject *module);
/* Raise unless the capture can stand in for `original`; from then on the hook lets its code alone. 0 or -1. */
int de_guarded_admit(de_Guarded *self, PyCodeObject *original);
/* The capture left its cache for good: drop functions made for it. */
void de_guarded_retire(de_Guarded *self);

/* ---- guards (guards.c) ---- */

/* 1 the guards hold, 0 they do not, -1 error set (only what is not an `Exception`).
 * `args` borrowed, in the order of the frame's slots. */
int de_guards_hold(de_Guarded *self, PyObject *const *args, PyCodeObject *code, PyObject *closure,
                   PyObject *globals, PyObject *builtins);
/* 0 once an object that the guards refer to is gone. */
int de_guards_valid(de_Guarded *self);
/* Check that `program` is one for the capsule, loading the capsule on first use. 0 or -1. */
int de_guards_accept(PyObject *program);

/* ---- cache of a code object (cache.c) ---- */

struct de_Cache {
    PyCodeObject *code;        /* borrowed: the cache lives in its extra slot */
    de_Guarded **entries;      /* owned references, latest hit first */
    Py_ssize_t size, capacity;
    uint64_t version;          /* grows with every change of `entries` */
    PyObject *reasons;         /* list of str, or NULL */
    PyObject *declined;        /* list of weak references to keys whose callbacks declined, or NULL */
    uint64_t hits, misses, captures, dropped;
    int skip;                  /* no further captures of this code, by any callback */
    int plain;                 /* made by a capture: never look at it */
    de_Cache *next, **link;    /* all caches */
};

int de_cache_init(void);
/* Cache of the code, or NULL without error when there is none. */
static inline de_Cache *de_cache_get(PyCodeObject *code);
/* Cache of the code, made when there is none; NULL with error set. */
de_Cache *de_cache_ensure(PyCodeObject *code);
/* First capture with this key whose guards hold, moved to the front, in *found (new reference, or NULL). 0 or -1. */
int de_cache_find(de_Cache *self, PyObject *key, PyObject *const *args, PyObject *closure, PyObject *globals,
                  PyObject *builtins, de_Guarded **found);
/* Put in front, as a capture with this key. 0 or -1. */
int de_cache_add(de_Cache *self, de_Guarded *guarded, PyObject *key);
/* How many captures have this key. */
Py_ssize_t de_cache_count(de_Cache *self, PyObject *key);
/* Make no further captures with this key. 0 or -1. */
int de_cache_decline(de_Cache *self, PyObject *key);
/* Whether to make no further captures with this key. */
int de_cache_declines(de_Cache *self, PyObject *key);
void de_cache_remove(de_Cache *self, de_Guarded *guarded);
void de_cache_clear(de_Cache *self);
int de_cache_add_reason(de_Cache *self, PyObject *reason);
/* New list of the captures. */
PyObject *de_cache_entries(de_Cache *self);
/* New dict of counters. */
PyObject *de_cache_stats(de_Cache *self);
/* Every cache, for `stats` and `reset`. */
extern de_Cache *de_caches;
/* Drop captures with invalid guards everywhere; how many went. */
Py_ssize_t de_cache_sweep(void);

extern Py_ssize_t de_cache_index;

static inline de_Cache *
de_cache_get(PyCodeObject *code)
{
    void *extra = NULL;
    if (de_code_get_extra((PyObject *)code, de_cache_index, &extra) < 0) {
        PyErr_Clear();
        return NULL;
    }
    return (de_Cache *)extra;
}

/* ---- the hook (hook.c) ---- */

/* State of a thread. */
typedef struct {
    PyObject *callback;    /* owned; NULL: frames run plainly */
    PyObject *active;      /* borrowed: in whose name the innermost cached code runs, hook set or not */
    PyCodeObject *missed;  /* borrowed: an entry point has just looked this code up in vain */
    uintptr_t soft;        /* below this stack address look closer (stack.c) */
} de_Thread;

#if defined(__GNUC__) && defined(__linux__)
extern _Thread_local de_Thread de_thread __attribute__((tls_model("initial-exec")));
#else
extern _Thread_local de_Thread de_thread;
#endif

/* Make `callback` (new reference taken; NULL for none) the thread's; returns the previous one (owned by caller). */
PyObject *de_hook_set(PyObject *callback);
/* Give back what de_hook_set returned (steals). */
void de_hook_restore(PyObject *previous);
/* Call with the thread's callback changed (NULL: hook off) for the time being. */
PyObject *de_hook_call(PyObject *callback, PyObject *callable, PyObject *const *args, size_t nargsf,
                       PyObject *kwnames);
/* Call a function over the capture's code in the name of `callback` (borrowed, kept alive by the caller). */
PyObject *de_hook_run_cached(PyObject *callback, de_Guarded *guarded, PyObject *function, PyObject *const *args,
                             size_t nargsf);
/* As de_cache_find for this callback's key; Python code that guards run is not captured. */
int de_hook_find(de_Cache *cache, PyObject *callback, PyObject *const *args, PyObject *closure, PyObject *globals,
                 PyObject *builtins, de_Guarded **found);
int de_hook_init(void);
void de_hook_uninstall(void);

/* ---- running (run.c) ---- */

/* Run the capture in place of the frame's own code, which has not run. Finishes the frame. */
PyObject *de_run_guarded(PyThreadState *tstate, de_Frame *frame, de_Guarded *guarded,
                         _PyFrameEvalFunction evaluate);
/* New function over the capture's flat code with these globals, builtins and closure (NULL: none). */
PyObject *de_run_function(de_Guarded *guarded, PyObject *globals, PyObject *builtins, PyObject *closure,
                          PyObject *qualname);

/* ---- the frame as the callback sees it (view.c) ---- */

PyTypeObject *de_view_type(PyObject *module);
/* New FrameView. */
PyObject *de_view_new(de_Frame *frame);

/* Arguments that a frame of this code starts with. */
static inline Py_ssize_t
de_code_arguments(PyCodeObject *code)
{
    return (Py_ssize_t)code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) +
           ((code->co_flags & CO_VARKEYWORDS) != 0);
}

#define DE_GENERATOR_FLAGS (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR)

/* ---- binding (bind.c) ---- */

#define DE_BOUND_SMALL 16

typedef struct {
    PyObject *const *values;  /* borrowed, in the order of the frame's slots */
    Py_ssize_t count;
    Py_ssize_t owned;         /* so many of `slots` are references of ours */
    PyObject **slots;
    PyObject *small[DE_BOUND_SMALL];
} de_Bound;

/* 1 bound; 0 the arguments do not fit (Python will say why); -1 error set. Release with de_bound_clear when 1. */
int de_bind(de_Bound *self, PyFunctionObject *function, PyObject *const *args, Py_ssize_t nargs,
            PyObject *kwnames);
void de_bound_clear(de_Bound *self);

/* ---- entry points (entry.c) ---- */

PyTypeObject *de_entry_type(PyObject *module);
/* Its subclass for functions; after de_entry_type. */
PyTypeObject *de_entry_function_type(PyObject *module);

/* ---- the rest of a function (rest.c) ---- */

PyTypeObject *de_rest_type(PyObject *module);

/* ---- C stack (stack.c) ---- */

typedef enum { DE_STACK_ENOUGH, DE_STACK_SOFT, DE_STACK_HARD } de_Stack;

de_Stack de_stack_look(uintptr_t here);

static inline de_Stack
de_stack_left(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    return here >= de_thread.soft && de_thread.soft != 0 ? DE_STACK_ENOUGH : de_stack_look(here);
}

#endif
