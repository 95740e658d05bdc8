/* What is known about one code object, in its extra slot: captures with the latest hit first, counters.
 *
 * Guard checks may run Python code, which may change the very cache that is being searched: a search
 * holds its own reference to the capture in hand, and starts again when the cache has changed.
 */
#include "eval.h"

#include <string.h>

Py_ssize_t de_cache_index = -1;
de_Cache *de_caches = NULL;

#define CACHE_SEARCH_RESTARTS 3

static void
cache_free(void *extra)
{
    de_Cache *self = (de_Cache *)extra;
    if (self == NULL) {
        return;
    }
    *self->link = self->next;
    if (self->next != NULL) {
        self->next->link = self->link;
    }
    self->code = NULL;
    de_cache_clear(self);
    Py_CLEAR(self->reasons);
    Py_CLEAR(self->declined);
    PyMem_Free(self->entries);
    PyMem_Free(self);
}

int
de_cache_init(void)
{
    if (de_cache_index < 0) {
        de_cache_index = de_request_extra_index(cache_free);
    }
    if (de_cache_index < 0) {
        PyErr_SetString(PyExc_ImportError, "CPython has no extra slot for code objects left");
        return -1;
    }
    return 0;
}

de_Cache *
de_cache_ensure(PyCodeObject *code)
{
    de_Cache *self = de_cache_get(code);
    if (self != NULL) {
        return self;
    }
    self = PyMem_Calloc(1, sizeof(de_Cache));
    if (self == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    if (de_code_set_extra((PyObject *)code, de_cache_index, self) < 0) {
        PyMem_Free(self);
        return NULL;
    }
    self->code = code;
    self->next = de_caches;
    self->link = &de_caches;
    if (de_caches != NULL) {
        de_caches->link = &self->next;
    }
    de_caches = self;
    return self;
}

/* ---- entries ---- */

static Py_ssize_t
cache_position(de_Cache *self, de_Guarded *guarded)
{
    for (Py_ssize_t i = 0; i < self->size; i++) {
        if (self->entries[i] == guarded) {
            return i;
        }
    }
    return -1;
}

static void
cache_move_to_front(de_Cache *self, de_Guarded *guarded)
{
    Py_ssize_t at = cache_position(self, guarded);
    if (at > 0) {
        memmove(self->entries + 1, self->entries, (size_t)at * sizeof(de_Guarded *));
        self->entries[0] = guarded;
    }
}

int
de_cache_add(de_Cache *self, de_Guarded *guarded, PyObject *key)
{
    if (guarded->cache != NULL) {
        PyErr_SetString(PyExc_ValueError, "this GuardedCode already is in the cache of a code object");
        return -1;
    }
    PyObject *reference = key ? PyWeakref_NewRef(key, NULL) : NULL;
    if (key != NULL && reference == NULL) {
        return -1;
    }
    Py_XSETREF(guarded->key, reference);
    if (self->size == self->capacity) {
        Py_ssize_t capacity = self->capacity ? 2 * self->capacity : 2;
        de_Guarded **entries = PyMem_Realloc(self->entries, (size_t)capacity * sizeof(de_Guarded *));
        if (entries == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        self->entries = entries;
        self->capacity = capacity;
    }
    memmove(self->entries + 1, self->entries, (size_t)self->size * sizeof(de_Guarded *));
    self->entries[0] = (de_Guarded *)Py_NewRef((PyObject *)guarded);
    self->size++;
    self->version++;
    guarded->cache = self;
    return 0;
}

void
de_cache_remove(de_Cache *self, de_Guarded *guarded)
{
    Py_ssize_t at = cache_position(self, guarded);
    if (at < 0) {
        return;
    }
    self->size--;
    memmove(self->entries + at, self->entries + at + 1, (size_t)(self->size - at) * sizeof(de_Guarded *));
    self->version++;
    self->dropped++;
    guarded->cache = NULL;
    guarded->follower = NULL;
    for (Py_ssize_t i = 0; i < self->size; i++) {
        if (self->entries[i]->follower == guarded) {
            self->entries[i]->follower = NULL;
        }
    }
    de_guarded_retire(guarded);
    Py_DECREF(guarded);
}

void
de_cache_clear(de_Cache *self)
{
    while (self->size > 0) {
        de_cache_remove(self, self->entries[self->size - 1]);
    }
}

Py_ssize_t
de_cache_count(de_Cache *self, PyObject *key)
{
    Py_ssize_t count = 0;
    for (Py_ssize_t i = 0; i < self->size; i++) {
        count += de_key_is(self->entries[i]->key, key);
    }
    return count;
}

/* ---- who declined ---- */

int
de_cache_decline(de_Cache *self, PyObject *key)
{
    if (key == NULL) {
        self->skip = 1;
        return 0;
    }
    PyObject *kept = PyList_New(0);
    PyObject *reference = kept ? PyWeakref_NewRef(key, NULL) : NULL;
    int status = reference ? PyList_Append(kept, reference) : -1;
    for (Py_ssize_t i = 0; status == 0 && self->declined && i < PyList_GET_SIZE(self->declined); i++) {
        PyObject *other = PyList_GET_ITEM(self->declined, i);
        if (!de_key_is_gone(other) && other != reference) {
            status = PyList_Append(kept, other);
        }
    }
    Py_XDECREF(reference);
    if (status < 0) {
        Py_XDECREF(kept);
        return -1;
    }
    Py_XSETREF(self->declined, kept);
    return 0;
}

int
de_cache_declines(de_Cache *self, PyObject *key)
{
    if (self->skip) {
        return 1;
    }
    for (Py_ssize_t i = 0; self->declined && i < PyList_GET_SIZE(self->declined); i++) {
        if (de_key_is(PyList_GET_ITEM(self->declined, i), key)) {
            return 1;
        }
    }
    return 0;
}

/* ---- search ---- */

typedef struct {
    PyObject *key;
    PyObject *const *args;
    PyObject *closure, *globals, *builtins;
} cache_Call;

/* Whether the capture can be used no more by anybody. */
static int
cache_is_dead(de_Guarded *guarded)
{
    return de_key_is_gone(guarded->key) || !de_guards_valid(guarded);
}

/* Ask one capture, and drop it when it can hold no more.  1 holds (and a new reference to it is made), 0 not,
 * -1 error, 2 the cache changed. */
static int
cache_ask(de_Cache *self, de_Guarded *guarded, const cache_Call *call)
{
    if (!de_key_is(guarded->key, call->key)) {
        return 0;
    }
    uint64_t version = self->version;
    Py_INCREF(guarded);
    int holds = de_guards_hold(guarded, call->args, self->code, call->closure, call->globals, call->builtins);
    if (holds == 0 && version != self->version) {
        holds = 2;
    }
    else if (holds == 0 && cache_is_dead(guarded)) {
        de_cache_remove(self, guarded);
        holds = 2;
    }
    if (holds != 1) {
        Py_DECREF(guarded);
    }
    return holds;
}

/* Ask first what followed the latest hit when it last was the latest, then all, the latest hit first.
 * The same capture again and again, and captures in turn, so both cost one check.  As cache_ask. */
static int
cache_search(de_Cache *self, const cache_Call *call, de_Guarded **found)
{
    de_Guarded *likely = self->size > 0 ? self->entries[0]->follower : NULL;
    int status = likely ? cache_ask(self, likely, call) : 0;
    if (status != 0) {
        *found = likely;
        return status;
    }
    for (Py_ssize_t i = 0; i < self->size; i++) {
        de_Guarded *guarded = self->entries[i];
        if (guarded != likely) {
            status = cache_ask(self, guarded, call);
            if (status != 0) {
                *found = guarded;
                return status;
            }
        }
    }
    return 0;
}

/* The capture hit; it may have left the cache while its guards ran. */
static void
cache_hit(de_Cache *self, de_Guarded *guarded)
{
    self->hits++;
    guarded->hits++;
    if (guarded->cache == self) {
        de_Guarded *latest = self->entries[0];
        latest->follower = guarded;
        if (latest != guarded) {
            cache_move_to_front(self, guarded);
        }
    }
}

int
de_cache_find(de_Cache *self, PyObject *key, PyObject *const *args, PyObject *closure, PyObject *globals,
              PyObject *builtins, de_Guarded **found)
{
    const cache_Call call = {key, args, closure, globals, builtins};
    de_Guarded *hit = NULL;
    int status = 2;
    /* Guards written in Python are no business of the user's debugger or profiler. */
    PyThreadState *tstate = PyThreadState_Get();
    int traced = de_is_traced(tstate);
    if (traced) {
        PyThreadState_EnterTracing(tstate);
    }
    for (Py_ssize_t i = self->size + CACHE_SEARCH_RESTARTS; status == 2 && i > 0; i--) {
        status = cache_search(self, &call, &hit);
    }
    if (traced) {
        PyThreadState_LeaveTracing(tstate);
    }
    if (status == 1) {
        cache_hit(self, hit);
        *found = hit;
        return 0;
    }
    self->misses++;
    return status < 0 ? -1 : 0;
}

/* ---- everywhere ---- */

/* Drop one invalid capture of this cache; 0 when there is none. */
static int
cache_drop_invalid(de_Cache *self)
{
    for (Py_ssize_t i = 0; i < self->size; i++) {
        if (cache_is_dead(self->entries[i])) {
            de_cache_remove(self, self->entries[i]);
            return 1;
        }
    }
    return 0;
}

Py_ssize_t
de_cache_sweep(void)
{
    Py_ssize_t count = 0;
    de_Cache *cache = de_caches;
    while (cache != NULL) {
        if (cache_drop_invalid(cache)) {
            /* That may have freed code objects, and their caches with them: start over. */
            count++;
            cache = de_caches;
        }
        else {
            cache = cache->next;
        }
    }
    return count;
}

/* ---- what people read ---- */

int
de_cache_add_reason(de_Cache *self, PyObject *reason)
{
    if (self->reasons == NULL) {
        self->reasons = PyList_New(0);
        if (self->reasons == NULL) {
            return -1;
        }
    }
    return PyList_Append(self->reasons, reason);
}

PyObject *
de_cache_entries(de_Cache *self)
{
    Py_ssize_t size = self ? self->size : 0;
    PyObject *list = PyList_New(size);
    if (list == NULL) {
        return NULL;
    }
    for (Py_ssize_t i = 0; i < size; i++) {
        PyList_SET_ITEM(list, i, Py_NewRef((PyObject *)self->entries[i]));
    }
    return list;
}

PyObject *
de_cache_stats(de_Cache *self)
{
    de_Cache nothing = {0};
    de_Cache *cache = self ? self : &nothing;
    return Py_BuildValue("{s:n,s:K,s:K,s:K,s:K,s:K,s:O}", "entries", cache->size, "hits",
                         (unsigned long long)cache->hits, "misses", (unsigned long long)cache->misses, "captures",
                         (unsigned long long)cache->captures, "recompiles",
                         (unsigned long long)(cache->captures > 1 ? cache->captures - 1 : 0), "dropped",
                         (unsigned long long)cache->dropped, "skip", cache->skip || cache->declined ? Py_True : Py_False);
}
