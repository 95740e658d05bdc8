/* dynamo.eval._frame: the module, and the functions by which Python reaches the core. */
#include "eval.h"

static int
module_code(PyObject *arg)
{
    if (!PyCode_Check(arg)) {
        PyErr_Format(PyExc_TypeError, "expected a code object, not %.200s", Py_TYPE(arg)->tp_name);
        return -1;
    }
    return 0;
}

static PyObject *
module_set_eval_frame(PyObject *module, PyObject *callback)
{
    if (callback != Py_None && !PyCallable_Check(callback)) {
        PyErr_Format(PyExc_TypeError, "the callback is a callable or None, not %.200s", Py_TYPE(callback)->tp_name);
        return NULL;
    }
    PyObject *previous = de_hook_set(callback == Py_None ? NULL : callback);
    return previous ? previous : Py_NewRef(Py_None);
}

static PyObject *
module_get_eval_frame(PyObject *module, PyObject *unused)
{
    return Py_NewRef(de_thread.callback ? de_thread.callback : Py_None);
}

static PyObject *
module_skip_code(PyObject *module, PyObject *code)
{
    de_Cache *cache = module_code(code) < 0 ? NULL : de_cache_ensure((PyCodeObject *)code);
    if (cache == NULL) {
        return NULL;
    }
    cache->skip = 1;
    Py_RETURN_NONE;
}

static void
module_forget(de_Cache *cache)
{
    if (!cache->plain) {
        cache->skip = 0;
    }
    cache->hits = cache->misses = cache->captures = 0;
    Py_CLEAR(cache->reasons);
    Py_CLEAR(cache->declined);
    de_cache_clear(cache);
    cache->dropped = 0;
}

static PyObject *
module_reset_code(PyObject *module, PyObject *code)
{
    if (module_code(code) < 0) {
        return NULL;
    }
    de_Cache *cache = de_cache_get((PyCodeObject *)code);
    if (cache != NULL) {
        module_forget(cache);
    }
    Py_RETURN_NONE;
}

static int
module_is_blank(de_Cache *cache)
{
    return cache->size == 0 && !cache->skip && cache->captures == 0 && cache->hits == 0 && cache->misses == 0 &&
           cache->reasons == NULL && cache->declined == NULL;
}

static PyObject *
module_reset(PyObject *module, PyObject *unused)
{
    de_Cache *cache = de_caches;
    while (cache != NULL) {
        if (module_is_blank(cache)) {
            cache = cache->next;
            continue;
        }
        /* Freeing may free code objects, and their caches with them: start over. */
        module_forget(cache);
        cache = de_caches;
    }
    Py_RETURN_NONE;
}

static PyObject *
module_cache_entries(PyObject *module, PyObject *code)
{
    return module_code(code) < 0 ? NULL : de_cache_entries(de_cache_get((PyCodeObject *)code));
}

static PyObject *
module_add_reason(PyObject *module, PyObject *args)
{
    PyObject *code, *reason;
    if (!PyArg_ParseTuple(args, "O!U:add_reason", &PyCode_Type, &code, &reason)) {
        return NULL;
    }
    de_Cache *cache = de_cache_ensure((PyCodeObject *)code);
    if (cache == NULL || de_cache_add_reason(cache, reason) < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
module_reasons(PyObject *module, PyObject *code)
{
    if (module_code(code) < 0) {
        return NULL;
    }
    de_Cache *cache = de_cache_get((PyCodeObject *)code);
    return cache && cache->reasons ? PySequence_List(cache->reasons) : PyList_New(0);
}

static PyObject *
module_code_stats(PyObject *module, PyObject *code)
{
    return module_code(code) < 0 ? NULL : de_cache_stats(de_cache_get((PyCodeObject *)code));
}

/* Whether the cache has something to tell: marks on our own code have not. */
static int
module_tells(de_Cache *cache)
{
    return !cache->plain && !module_is_blank(cache);
}

static PyObject *
module_codes(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    for (de_Cache *cache = de_caches; list != NULL && cache != NULL; cache = cache->next) {
        if (module_tells(cache) && PyList_Append(list, (PyObject *)cache->code) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *
module_stats(PyObject *module, PyObject *unused)
{
    de_Cache total = {0};
    uint64_t recompiles = 0;
    Py_ssize_t codes = 0, skipped = 0;
    for (de_Cache *cache = de_caches; cache != NULL; cache = cache->next) {
        total.size += cache->size;
        total.hits += cache->hits;
        total.misses += cache->misses;
        total.captures += cache->captures;
        total.dropped += cache->dropped;
        recompiles += cache->captures > 1 ? cache->captures - 1 : 0;
        codes += cache->captures > 0;
        skipped += cache->skip || cache->declined;
    }
    return Py_BuildValue("{s:n,s:n,s:K,s:K,s:K,s:K,s:K,s:n}", "codes", codes, "entries", total.size, "hits",
                         (unsigned long long)total.hits, "misses", (unsigned long long)total.misses, "captures",
                         (unsigned long long)total.captures, "recompiles", (unsigned long long)recompiles, "dropped",
                         (unsigned long long)total.dropped, "skipped", skipped);
}

static PyObject *
module_drop_invalid(PyObject *module, PyObject *unused)
{
    return PyLong_FromSsize_t(de_cache_sweep());
}

#define DOC(signature, text) PyDoc_STR(signature "\n--\n\n" text)

static PyMethodDef module_methods[] = {
    {"set_eval_frame", module_set_eval_frame, METH_O,
     DOC("set_eval_frame($module, callback, /)", "Set this thread's capture callback; the previous one.")},
    {"get_eval_frame", module_get_eval_frame, METH_NOARGS,
     DOC("get_eval_frame($module, /)", "This thread's capture callback, or None.")},
    {"skip_code", module_skip_code, METH_O,
     DOC("skip_code($module, code, /)", "Capture this code no more; captures that exist stay in use.")},
    {"reset_code", module_reset_code, METH_O,
     DOC("reset_code($module, code, /)", "Forget all about this code.")},
    {"reset", module_reset, METH_NOARGS, DOC("reset($module, /)", "Forget all about every code.")},
    {"cache_entries", module_cache_entries, METH_O,
     DOC("cache_entries($module, code, /)", "Captures of this code, latest hit first.")},
    {"add_reason", module_add_reason, METH_VARARGS,
     DOC("add_reason($module, code, reason, /)", "Keep why this code was captured again.")},
    {"reasons", module_reasons, METH_O, DOC("reasons($module, code, /)", "Why this code was captured again.")},
    {"code_stats", module_code_stats, METH_O, DOC("code_stats($module, code, /)", "Counters of this code.")},
    {"codes", module_codes, METH_NOARGS, DOC("codes($module, /)", "Code objects with something in their cache.")},
    {"stats", module_stats, METH_NOARGS, DOC("stats($module, /)", "Counters over all code objects.")},
    {"drop_invalid", module_drop_invalid, METH_NOARGS,
     DOC("drop_invalid($module, /)", "Free captures whose guards refer to dead objects; how many.")},
    {NULL},
};

static int
module_add_type(PyObject *module, PyTypeObject *type)
{
    int status = type ? PyModule_AddType(module, type) : -1;
    Py_XDECREF(type);
    return status;
}

static int
module_exec(PyObject *module)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "dynamo.eval works in the main interpreter only, not in a subinterpreter");
        return -1;
    }
    if (de_GuardedType != NULL) {
        PyErr_SetString(PyExc_ImportError, "dynamo.eval._frame is loaded once per process");
        return -1;
    }
    if (de_cache_init() < 0 || de_hook_init() < 0) {
        return -1;
    }
    de_GuardedType = de_guarded_type(module);
    if (de_GuardedType == NULL || PyModule_AddType(module, de_GuardedType) < 0) {
        return -1;
    }
    de_CallbackType = de_callback_type(module);
    if (de_CallbackType == NULL || PyModule_AddType(module, de_CallbackType) < 0) {
        return -1;
    }
    if (module_add_type(module, de_view_type(module)) < 0 || module_add_type(module, de_entry_type(module)) < 0 ||
        module_add_type(module, de_rest_type(module)) < 0) {
        return -1;
    }
    return module_add_type(module, de_entry_function_type(module));
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "dynamo.eval._frame",
    .m_doc = "The C core of dynamo.eval: frame hook (PEP 523), cache per code object, entry points.",
    .m_methods = module_methods,
    .m_slots = module_slots,
};

PyMODINIT_FUNC
PyInit__frame(void)
{
    return PyModuleDef_Init(&module_definition);
}
