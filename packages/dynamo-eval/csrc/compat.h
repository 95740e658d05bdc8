/* The one place that knows how CPython lays out frames and code objects.
 *
 * compat_311.h, compat_312.h and compat_313.h each define the same functions for their version; the
 * comment at each declaration below says what they promise.  The rest of the core is free of versions.
 */
#ifndef DE_COMPAT_H
#define DE_COMPAT_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#ifndef Py_BUILD_CORE
#define Py_BUILD_CORE 1
#define DE_DEFINED_BUILD_CORE
#endif
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030C0000
#undef _PyGC_FINALIZED /* a public macro of 3.12, a function of the internal header */
#include <internal/pycore_interp.h>
#endif
#pragma GCC diagnostic pop
#ifdef DE_DEFINED_BUILD_CORE
#undef Py_BUILD_CORE
#undef DE_DEFINED_BUILD_CORE
#endif

typedef _PyInterpreterFrame de_Frame;

/* Code object that the frame runs; borrowed. */
static inline PyCodeObject *de_frame_code(de_Frame *frame);
/* Function that the frame belongs to; borrowed. */
static inline PyFunctionObject *de_frame_function(de_Frame *frame);
/* Slots (pointers) that a frame for this code takes on the data stack. */
static inline Py_ssize_t de_code_slots(PyCodeObject *code);
/* Give the frame, which has not run, another code object at its first instruction.  Takes a new reference to it. */
static inline void de_frame_set_code(de_Frame *frame, PyCodeObject *code);
/* Finish a thread-owned frame that will not run, as the version's evaluator would have done. */
static inline void de_frame_drop(PyThreadState *tstate, de_Frame *frame);
/* Let one more C-level evaluation pass the C recursion counter; the hooked call nests in C where plain
 * Python would not, and must not fail earlier than plain Python does.  `de_recursion_repay` undoes it. */
static inline void de_recursion_lend(PyThreadState *tstate);
static inline void de_recursion_repay(PyThreadState *tstate);

/* Whether a debugger, profiler or monitoring tool listens to what this thread runs. */
static inline int de_is_traced(PyThreadState *tstate);

#if PY_VERSION_HEX < 0x030B0000
#error "dynamo.eval needs CPython 3.11 or newer"
#elif PY_VERSION_HEX < 0x030C0000
#include "compat_311.h"
#elif PY_VERSION_HEX < 0x030D0000
#include "compat_312.h"
#elif PY_VERSION_HEX < 0x030E0000
#include "compat_313.h"
#else
#error "dynamo.eval does not know the frame layout of this CPython yet"
#endif

#endif
