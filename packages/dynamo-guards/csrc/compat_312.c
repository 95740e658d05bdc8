/* Marks of dicts from CPython 3.12 on: a counter for each followed dict, moved by a dict watcher.
 *
 * One watcher of the interpreter's eight is taken when the module is imported; without one, marks are off.
 * A followed dict costs its writers the call of `mark_event`; readers pay nothing, and while `dg_marks_epoch` stands
 * still no followed dict has changed.
 */
#include "compat.h"

#if PY_VERSION_HEX >= 0x030C0000

typedef struct mark_Cell {
    uint64_t changes; /* first, so that the mark is the address of the cell */
    PyObject *dict;   /* borrowed; NULL once it died */
    Py_ssize_t users;
    struct mark_Cell *next;
} mark_Cell;

uint64_t dg_marks_epoch = 0;

static int mark_watcher = -1;
static mark_Cell **mark_buckets = NULL;
static size_t mark_bucket_count = 0; /* a power of two */
static size_t mark_cell_count = 0;

static size_t
mark_bucket(PyObject *dict, size_t count)
{
    return (((uintptr_t)dict >> 4) * 0x9E3779B1u) & (count - 1);
}

/* The link that points to the cell of a dict, or to NULL at the end of its chain. */
static mark_Cell **
mark_find(PyObject *dict)
{
    mark_Cell **link = &mark_buckets[mark_bucket(dict, mark_bucket_count)];
    while (*link != NULL && (*link)->dict != dict) {
        link = &(*link)->next;
    }
    return link;
}

static int
mark_grow(void)
{
    size_t count = mark_bucket_count > 0 ? 2 * mark_bucket_count : 64;
    mark_Cell **buckets = PyMem_RawCalloc(count, sizeof *buckets);
    if (buckets == NULL) {
        return -1;
    }
    for (size_t i = 0; i < mark_bucket_count; i++) {
        for (mark_Cell *cell = mark_buckets[i], *next; cell != NULL; cell = next) {
            mark_Cell **head = &buckets[mark_bucket(cell->dict, count)];
            next = cell->next;
            cell->next = *head;
            *head = cell;
        }
    }
    PyMem_RawFree(mark_buckets);
    mark_buckets = buckets;
    mark_bucket_count = count;
    return 0;
}

static void
mark_unlink(mark_Cell **link)
{
    mark_Cell *cell = *link;
    *link = cell->next;
    cell->dict = NULL;
    mark_cell_count--;
}

/* Called before each change of a followed dict, and when it dies. */
static int
mark_event(PyDict_WatchEvent event, PyObject *dict, PyObject *key, PyObject *value)
{
    if (mark_bucket_count == 0) {
        return 0;
    }
    mark_Cell **link = mark_find(dict);
    if (*link != NULL) {
        (*link)->changes++;
        dg_marks_epoch++;
        if (event == PyDict_EVENT_DEALLOCATED) {
            mark_unlink(link);
        }
    }
    return 0;
}

int
dg_marks_setup(void)
{
    if (mark_watcher < 0) {
        mark_watcher = PyDict_AddWatcher(mark_event);
        PyErr_Clear(); /* all eight are taken: every check walks all of its guards */
    }
    return mark_watcher >= 0;
}

#if PY_VERSION_HEX >= 0x030D0000
/* Give an instance's dict a table of its own, with the same items in the same order; 0 when it cannot have one.
 *
 * On 3.13 the dict shares the values that lie in the object, and 3.13.0 tells no watcher of a store to them
 * (Objects/dictobject.c, store_instance_attr_lock_held).  popitem(), and a key that is no string, make the table the
 * dict's own. */
static int
mark_detach(PyObject *dict)
{
    if (((PyDictObject *)dict)->ma_values == NULL) {
        return 1;
    }
    if (PyDict_GET_SIZE(dict) == 0) {
        if (PyDict_SetItem(dict, Py_None, Py_None) < 0 || PyDict_DelItem(dict, Py_None) < 0) {
            PyErr_Clear();
        }
        return ((PyDictObject *)dict)->ma_values == NULL;
    }
    PyObject *last = PyObject_CallMethod(dict, "popitem", NULL);
    if (last == NULL) {
        PyErr_Clear();
        return 0;
    }
    int stored = PyDict_SetItem(dict, PyTuple_GET_ITEM(last, 0), PyTuple_GET_ITEM(last, 1));
    Py_DECREF(last);
    PyErr_Clear();
    return stored == 0 && ((PyDictObject *)dict)->ma_values == NULL;
}
#else
static int
mark_detach(PyObject *dict)
{
    return 1;
}
#endif

static mark_Cell *
mark_new(PyObject *dict, mark_Cell **link)
{
    mark_Cell *cell = PyMem_RawCalloc(1, sizeof *cell);
    if (cell == NULL || PyDict_Watch(mark_watcher, dict) < 0) {
        PyErr_Clear();
        PyMem_RawFree(cell);
        return NULL;
    }
    cell->dict = dict;
    *link = cell;
    mark_cell_count++;
    return cell;
}

const uint64_t *
dg_mark_open(PyObject *dict)
{
    if (mark_watcher < 0 || !mark_detach(dict)) {
        return NULL;
    }
    if (mark_cell_count >= mark_bucket_count && mark_grow() < 0) {
        return NULL;
    }
    mark_Cell **link = mark_find(dict);
    mark_Cell *cell = *link != NULL ? *link : mark_new(dict, link);
    if (cell == NULL) {
        return NULL;
    }
    cell->users++;
    return &cell->changes;
}

int
dg_mark_lives(const uint64_t *mark)
{
    return ((const mark_Cell *)mark)->dict != NULL;
}

void
dg_mark_close(const uint64_t *mark)
{
    mark_Cell *cell = (mark_Cell *)mark;
    if (--cell->users > 0) {
        return;
    }
    if (cell->dict != NULL) {
        PyDict_Unwatch(mark_watcher, cell->dict);
        mark_unlink(mark_find(cell->dict));
    }
    PyMem_RawFree(cell);
}

Py_ssize_t
dg_marks_open(void)
{
    return (Py_ssize_t)mark_cell_count;
}

#endif
