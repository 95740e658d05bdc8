/* Marks of dicts on CPython 3.11: the version that a dict keeps of itself (PEP 509).
 *
 * `ma_version_tag` is new, and never given again, after every change of the items (Objects/dictobject.c,
 * DICT_NEXT_VERSION), so a new dict at the address of a dead one has another one.
 */
#include "compat.h"

#if PY_VERSION_HEX < 0x030C0000

uint64_t dg_marks_epoch = 0;

int
dg_marks_setup(void)
{
    return 1;
}

const uint64_t *
dg_mark_open(PyObject *dict)
{
    return &((PyDictObject *)dict)->ma_version_tag;
}

int
dg_mark_lives(const uint64_t *mark)
{
    return 1;
}

void
dg_mark_close(const uint64_t *mark)
{
}

Py_ssize_t
dg_marks_open(void)
{
    return 0;
}

#endif
