/* How much C stack is left.
 *
 * While the hook is installed every Python call nests in C, where plain CPython would not.  So a hooked
 * region looks at the stack itself: with a quarter left it goes on without the hook (plain Python calls
 * need no C stack), and with almost nothing left it raises RecursionError instead of crashing.
 */
#include "eval.h"

#include <pthread.h>

typedef struct {
    uintptr_t low, high;
    uintptr_t soft, hard;
} stack_Bounds;

static _Thread_local stack_Bounds stack_bounds;

#define STACK_HARD_BYTES ((uintptr_t)192 * 1024)

/* Fill in the bounds of the running thread's stack; leave them empty where the platform cannot tell. */
static void
stack_measure(void)
{
    void *low = NULL;
    size_t size = 0;
#if defined(__linux__)
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &low, &size) != 0) {
            size = 0;
        }
        pthread_attr_destroy(&attributes);
    }
#elif defined(__APPLE__)
    size = pthread_get_stacksize_np(pthread_self());
    low = (char *)pthread_get_stackaddr_np(pthread_self()) - size;
#endif
    uintptr_t quarter = size / 4;
    stack_bounds.low = (uintptr_t)low;
    stack_bounds.high = (uintptr_t)low + size;
    stack_bounds.soft = stack_bounds.low + quarter;
    stack_bounds.hard = stack_bounds.low + (quarter / 2 < STACK_HARD_BYTES ? quarter / 2 : STACK_HARD_BYTES);
}

de_Stack
de_stack_look(uintptr_t here)
{
    if (de_thread.soft == 0) {
        stack_measure();
        de_thread.soft = stack_bounds.soft ? stack_bounds.soft : 1;
    }
    if (here < stack_bounds.low || here >= stack_bounds.soft) {
        /* Enough; or a stack that somebody else made for this thread, of which nothing is known. */
        return DE_STACK_ENOUGH;
    }
    return here < stack_bounds.hard ? DE_STACK_HARD : DE_STACK_SOFT;
}
