/* Making a memo (memo.h): a whole walk that notes what each answer rests on. */
#include "memo.h"

#include <string.h>

/* A program with fewer instructions that a memo could skip is walked as quickly as a memo is compared. */
#define RECORD_LEAST_GAIN 16

/* What is known of a register's value: */
typedef enum {
    RECORD_FREE,   /* loaded on each check, may be any value */
    RECORD_FIXED,  /* loaded on each check, and its address compared with that of now */
    RECORD_STABLE, /* not loaded again: the steps before vouch for it */
} record_State;

typedef struct {
    dg_Program *program;
    dg_Memo *memo;
    const dg_Frame *frame;
    dg_Register *registers; /* those of the memo */
    uint8_t *states;        /* a record_State for each register */
    int32_t *owners;        /* the dict that a stable register's value was found in, or -1 */
    uintptr_t *seen;        /* open hash table of addresses whose steps are there; 0 = empty */
    size_t seen_space, seen_count;
    int failed;             /* out of memory, or something cannot be followed: the walk goes on, the memo is dropped */
} record_Record;

#define RECORD_APPEND(record, array) record_append(record, (void **)&(array).items, &(array).count, &(array).space, \
                                                   sizeof *(array).items)

/* Room for one more item of an array; its place, or -1. */
static int32_t
record_append(record_Record *record, void **items, int32_t *count, int32_t *space, size_t size)
{
    if (*count == *space) {
        int32_t wanted = *space > 0 ? *space + *space / 2 + 1 : 16;
        void *larger = PyMem_Realloc(*items, (size_t)wanted * size);
        if (larger == NULL) {
            record->failed = 1;
            return -1;
        }
        *items = larger;
        *space = wanted;
    }
    return (*count)++;
}

static void
record_step(record_Record *record, memo_Kind kind, const void *where, uintptr_t what, int32_t owner)
{
    dg_Memo *memo = record->memo;
    int32_t place = RECORD_APPEND(record, memo->steps), owner_place = RECORD_APPEND(record, memo->owners);
    int32_t quick = owner < 0 ? RECORD_APPEND(record, memo->quick) : -1;
    if (record->failed) {
        return;
    }
    memo->steps.items[place] = (memo_Step){(uintptr_t)where | kind, what};
    memo->owners.items[owner_place] = owner;
    if (quick >= 0) {
        memo->quick.items[quick] = memo->steps.items[place];
    }
}

static void
record_fact(record_Record *record, int32_t owner, memo_Fact fact)
{
    dg_Memo *memo = record->memo;
    int32_t place = owner >= 0 && !record->failed ? RECORD_APPEND(record, memo->facts) : -1;
    if (place >= 0) {
        fact.next = memo->dicts.items[owner].facts;
        memo->facts.items[place] = fact;
        memo->dicts.items[owner].facts = place;
    }
}

/* The slot of an address in the table of what has steps already; NULL when there is no memory. */
static uintptr_t *
record_slot(record_Record *record, uintptr_t address)
{
    if (2 * record->seen_count >= record->seen_space) {
        size_t space = record->seen_space > 0 ? 2 * record->seen_space : 64;
        uintptr_t *old = record->seen, *table = PyMem_Calloc(space, 2 * sizeof *table);
        size_t old_space = record->seen_space;
        if (table == NULL) {
            record->failed = 1;
            return NULL;
        }
        record->seen = table;
        record->seen_space = space;
        record->seen_count = 0;
        for (size_t i = 0; i < old_space; i++) {
            if (old[2 * i] != 0) {
                uintptr_t *slot = record_slot(record, old[2 * i]);
                slot[0] = old[2 * i];
                slot[1] = old[2 * i + 1];
                record->seen_count++;
            }
        }
        PyMem_Free(old);
    }
    size_t i = ((address >> 3) * 0x9E3779B1u) & (record->seen_space - 1);
    while (record->seen[2 * i] != 0 && record->seen[2 * i] != address) {
        i = (i + 1) & (record->seen_space - 1);
    }
    return &record->seen[2 * i];
}

/* Compare a word from now on; once for each address. */
static void
record_word(record_Record *record, const void *where, uintptr_t what)
{
    uintptr_t *slot = record_slot(record, (uintptr_t)where);
    if (slot != NULL && slot[0] == 0) {
        slot[0] = (uintptr_t)where;
        record->seen_count++;
        record_step(record, MEMO_WORD, where, what, -1);
    }
}

static void
record_class(record_Record *record, PyTypeObject *cls, PyObject *name)
{
    const unsigned int *mark = dg_class_mark(cls, name);
    uintptr_t *slot = mark != NULL ? record_slot(record, (uintptr_t)mark) : NULL;
    if (slot == NULL) {
        record->failed = 1; /* the interpreter has run out of versions */
    }
    else if (slot[0] == 0) {
        slot[0] = (uintptr_t)mark;
        record->seen_count++;
        record_step(record, MEMO_HALF, mark, *mark, -1);
    }
}

/* The number of a dict whose mark is compared from now on, or -1; `from` as in memo_Dict. */
static int32_t
record_dict(record_Record *record, PyObject *dict, int32_t from)
{
    dg_Memo *memo = record->memo;
    uintptr_t *slot = record_slot(record, (uintptr_t)dict);
    if (slot == NULL || slot[0] != 0) {
        return slot == NULL ? -1 : (int32_t)slot[1];
    }
    const uint64_t *mark = dg_mark_open(dict);
    int32_t place = mark != NULL ? RECORD_APPEND(record, memo->dicts) : -1;
    if (place < 0) {
        if (mark != NULL) {
            dg_mark_close(mark);
        }
        record->failed = 1;
        return -1;
    }
    memo->dicts.items[place] = (memo_Dict){dict, mark, -1, from};
    slot[0] = (uintptr_t)dict;
    slot[1] = (uintptr_t)place;
    record->seen_count++;
    record_step(record, MEMO_WORD, mark, (uintptr_t)*mark, place);
    return place;
}

/* From here on the register holds the value of now, or the memo does not fit. */
static void
record_fix(record_Record *record, int32_t number)
{
    if (record->states[number] == RECORD_FREE) {
        record->states[number] = RECORD_FIXED;
        record_step(record, MEMO_WORD, &record->registers[number].value, (uintptr_t)record->registers[number].value, -1);
    }
}

static int
record_is_loose(const record_Record *record, int32_t number)
{
    return record->program->loose != NULL && record->program->loose[number];
}

/* The register itself where its value is loaded on each check, or -1. */
static int32_t
record_from(const record_Record *record, int32_t number)
{
    return record->states[number] == RECORD_FIXED ? number : -1;
}

static int
record_class_may_change(PyObject *value)
{
    return PyType_HasFeature(Py_TYPE(value), Py_TPFLAGS_HEAPTYPE) || PyModule_Check(value);
}

/* Whether the value of a register can be built upon; its class is compared where the object could get another one, or
 * another object could have come to its address. */
static int
record_object(record_Record *record, int32_t number)
{
    PyObject *value = record->registers[number].value;
    record_fix(record, number);
    if (record_class_may_change(value) || record->states[number] == RECORD_FIXED) {
        record_word(record, &value->ob_type, (uintptr_t)Py_TYPE(value));
    }
    return 1;
}

/* The instance dict of an object, at a place that does not move, with steps for the class and the place; or NULL. */
static PyObject *
record_instance_dict(record_Record *record, int32_t number)
{
    PyObject *value = record->registers[number].value;
    if (Py_TYPE(value)->tp_itemsize != 0) {
        return NULL;
    }
    PyObject **place = _PyObject_GetDictPtr(value);
    if (place == NULL || *place == NULL || !PyDict_Check(*place)) {
        return NULL;
    }
    record_object(record, number);
    record_word(record, place, (uintptr_t)*place);
    return *place;
}

static int
record_is_scalar(PyObject *value)
{
    return PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyUnicode_CheckExact(value) ||
           PyBool_Check(value) || value == Py_None || PyComplex_CheckExact(value) || PyBytes_CheckExact(value);
}

/* A value found in a dict under a key: expected in the register, which is stable from now on. */
static int
record_found(record_Record *record, const dg_Instruction *in, PyObject *dict, int32_t from, PyObject *key)
{
    int32_t owner = record_dict(record, dict, from);
    PyObject *value = PyDict_GetItemWithError(dict, key);
    if (value == NULL) {
        return PyErr_Occurred() ? -1 : 0;
    }
    record_fact(record, owner, (memo_Fact){NULL, key, value, -1});
    record->registers[in->target] = (dg_Register){value, 0};
    record->states[in->target] = RECORD_STABLE;
    record->owners[in->target] = owner;
    return 1;
}

/* Something else than a lookup that answers the same while the dict `owner` stands. */
static void
record_answer(record_Record *record, int32_t owner, const dg_Instruction *in)
{
    PyObject *expected = in->op < DG_TEST_TYPE ? record->registers[in->target].value : NULL;
    record_fact(record, owner, (memo_Fact){in, NULL, expected, -1});
}

/* Run on every check; nothing is known of what it loads. */
static int
record_run(record_Record *record, const dg_Instruction *in)
{
    int is_late = in->op == DG_TEST_CALL || in->op == DG_TEST_RELATION;
    if (is_late) {
        int32_t place = RECORD_APPEND(record, record->memo->late);
        if (place >= 0) {
            record->memo->late.items[place] = in;
        }
        return 1; /* after the walk: record_late */
    }
    record_step(record, MEMO_RUN, in, 0, -1);
    if (in->op < DG_TEST_TYPE) {
        int32_t place = RECORD_APPEND(record, record->memo->loaded);
        if (place >= 0) {
            record->memo->loaded.items[place] = in->target;
        }
        record->owners[in->target] = -1;
    }
    return dg_step(in, record->frame, record->registers);
}

/* A stable load: the value stays while the owner of its base stands. */
static int
record_stable_load(record_Record *record, const dg_Instruction *in)
{
    int loaded = dg_load(in, record->frame, record->registers);
    if (loaded > 0) {
        int32_t owner = in->op == DG_CONSTANT ? -1 : record->owners[in->source];
        record->states[in->target] = RECORD_STABLE;
        record->owners[in->target] = owner;
        record_answer(record, owner, in);
    }
    return loaded;
}

/* `x.name` found in the instance's own dict, because the class has no data descriptor of that name. */
static int
record_attribute(record_Record *record, const dg_Instruction *in)
{
    PyObject *base = record->registers[in->source].value;
    PyTypeObject *cls = Py_TYPE(base);
    PyObject *held = _PyType_Lookup(cls, in->object);
    int is_data = held != NULL && Py_TYPE(held)->tp_descr_set != NULL;
    if (cls->tp_getattro != PyObject_GenericGetAttr || is_data) {
        return record_run(record, in);
    }
    PyObject *dict = record_instance_dict(record, in->source);
    if (dict == NULL || PyDict_GetItemWithError(dict, in->object) == NULL) {
        PyErr_Clear();
        return record_run(record, in);
    }
    record_class(record, cls, in->object);
    return record_found(record, in, dict, -1, in->object);
}

/* `module.name`: in the instance's dict, or in one of the three dicts that nn.Module.__getattr__ looks at. */
static int
record_module_attribute(record_Record *record, const dg_Instruction *in)
{
    PyObject *const stores[] = {dg_state.str_parameters, dg_state.str_buffers, dg_state.str_modules};
    PyObject *base = record->registers[in->source].value;
    PyObject *held = _PyType_Lookup(Py_TYPE(base), in->object);
    PyObject *dict = held == NULL ? record_instance_dict(record, in->source) : NULL;
    if (dict == NULL) {
        return record_run(record, in);
    }
    record_class(record, Py_TYPE(base), in->object);
    int has = PyDict_Contains(dict, in->object);
    if (has != 0) {
        return has < 0 ? -1 : record_found(record, in, dict, -1, in->object);
    }
    int32_t owner = record_dict(record, dict, -1);
    record_fact(record, owner, (memo_Fact){NULL, in->object, NULL, -1});
    for (int i = 0; i < 3; i++) {
        PyObject *store = PyDict_GetItemWithError(dict, stores[i]);
        record_fact(record, owner, (memo_Fact){NULL, stores[i], store, -1});
        if (store == NULL || !PyDict_Check(store)) {
            record->failed = 1;
            break;
        }
        has = PyDict_Contains(store, in->object);
        if (has != 0) {
            return has < 0 ? -1 : record_found(record, in, store, -1, in->object);
        }
        record_fact(record, record_dict(record, store, -1), (memo_Fact){NULL, in->object, NULL, -1});
    }
    return record_run(record, in);
}

static int
record_load(record_Record *record, const dg_Instruction *in)
{
    if (in->op == DG_CONSTANT) {
        return record_stable_load(record, in);
    }
    if (in->op < DG_CONSTANT || record_is_loose(record, in->source)) {
        return record_run(record, in);
    }
    PyObject *base = record->registers[in->source].value;
    int is_stable = record->states[in->source] == RECORD_STABLE;
    switch (in->op) {
    case DG_ATTR:
        return record_attribute(record, in);
    case DG_MODULE_ATTR:
        return record_module_attribute(record, in);
    case DG_INSTANCE_DICT: {
        PyObject *dict = record_instance_dict(record, in->source);
        if (dict == NULL) {
            return record_run(record, in);
        }
        record->registers[in->target] = (dg_Register){dict, 0};
        record->states[in->target] = RECORD_STABLE;
        record->owners[in->target] = -1;
        return 1;
    }
    case DG_DICT_ITEM:
        if (!PyDict_Check(base)) {
            return 0;
        }
        record_object(record, in->source);
        return record_found(record, in, base, record_from(record, in->source), in->object);
    case DG_DICT_KEY_AT:
        if (!PyDict_Check(base) || dg_dict_has_own_order(base)) {
            return record_run(record, in);
        }
        record_object(record, in->source);
        record->owners[in->source] = record_dict(record, base, record_from(record, in->source)); /* what is found rests on the dict itself */
        return record_stable_load(record, in);
    case DG_TUPLE_ITEM:
        return is_stable ? record_stable_load(record, in) : record_run(record, in);
    case DG_TYPE_OF:
        record_object(record, in->source);
        return record_stable_load(record, in);
    case DG_CLASS_ATTR:
        if (!is_stable || !PyType_Check(base)) {
            return record_run(record, in);
        }
        record_class(record, (PyTypeObject *)base, in->object);
        return record_stable_load(record, in);
    case DG_SUPER_ATTR:
        if (PyType_Check(base)) {
            return record_run(record, in);
        }
        record_object(record, in->source);
        record_class(record, Py_TYPE(base), in->object);
        return record_stable_load(record, in);
    default:
        return record_run(record, in);
    }
}

/* A test whose answer stays while a dict stands: that of the value itself, or the one that the value was found in. */
static int
record_stable_test(record_Record *record, const dg_Instruction *in, int32_t owner)
{
    record_answer(record, owner, in);
    return dg_test(in, record->registers);
}

static int
record_test_of_dict(record_Record *record, const dg_Instruction *in)
{
    record_object(record, in->source);
    PyObject *dict = record->registers[in->source].value;
    return record_stable_test(record, in, record_dict(record, dict, record_from(record, in->source)));
}

static int
record_tensor(record_Record *record, const dg_Instruction *in)
{
    PyObject *tensor = record->registers[in->source].value;
    int32_t place = RECORD_APPEND(record, record->memo->tensors);
    if (place >= 0) {
        record->memo->tensors.items[place] = (memo_Tensor){tensor, in->object};
    }
    return dg_tensor_check(in->object, tensor);
}

static int
record_test(record_Record *record, const dg_Instruction *in)
{
    if (in->op == DG_TEST_AMBIENT || in->op == DG_TEST_CALL || in->op == DG_TEST_RELATION) {
        return record_run(record, in);
    }
    if (record_is_loose(record, in->source)) {
        return record_run(record, in);
    }
    PyObject *value = record->registers[in->source].value;
    int is_stable = record->states[in->source] == RECORD_STABLE;
    int32_t owner = record->owners[in->source];
    switch (in->op) {
    case DG_TEST_LENGTH:
    case DG_TEST_BOOL:
    case DG_TEST_DICT_KEYS:
    case DG_TEST_CONTAINS:
    case DG_TEST_LACKS:
        if (PyDict_Check(value) && !(in->op == DG_TEST_DICT_KEYS && dg_dict_has_own_order(value))) {
            return record_test_of_dict(record, in);
        }
        break;
    case DG_TEST_ALIAS:
    case DG_TEST_NOT_ALIAS:
        is_stable = is_stable && record->states[in->target] == RECORD_STABLE;
        return is_stable ? dg_test(in, record->registers) : record_run(record, in);
    default:
        break;
    }
    if (!is_stable) {
        return record_run(record, in);
    }
    switch (in->op) {
    case DG_TEST_TYPE:
        record_object(record, in->source);
        return record_stable_test(record, in, owner);
    case DG_TEST_ID:
    case DG_TEST_NOT_ID:
        return dg_test(in, record->registers);
    case DG_TEST_EQUAL:
    case DG_TEST_BOOL:
        return record_is_scalar(value) ? record_stable_test(record, in, owner) : record_run(record, in);
    case DG_TEST_LENGTH:
        return PyTuple_CheckExact(value) || PyUnicode_CheckExact(value) ? record_stable_test(record, in, owner)
                                                                        : record_run(record, in);
    case DG_TEST_CLASS_ATTR:
        if (!PyType_Check(value)) {
            return record_run(record, in);
        }
        record_class(record, (PyTypeObject *)value, in->object);
        return record_stable_test(record, in, owner);
    case DG_TEST_TENSOR:
        return record_tensor(record, in);
    default:
        return record_run(record, in);
    }
}

/* The calls into Python, and the registers that they read, which must be owned meanwhile. */
static int
record_late(record_Record *record)
{
    dg_Memo *memo = record->memo;
    for (int32_t i = 0; memo->late.count > 0 && i < record->program->register_count; i++) {
        dg_Register *each = &record->registers[i];
        if (each->value == NULL) {
            continue;
        }
        int32_t place = RECORD_APPEND(record, memo->loaded);
        if (place >= 0) {
            memo->loaded.items[place] = i;
        }
        if (!each->owned) {
            each->owned = 1;
            Py_INCREF(each->value);
        }
    }
    for (int32_t i = 0; i < memo->late.count; i++) {
        int holds = dg_step(memo->late.items[i], record->frame, record->registers);
        if (holds <= 0) {
            return holds;
        }
    }
    return 1;
}

static int
record_walk(record_Record *record)
{
    const dg_Program *self = record->program;
    const dg_Instruction *end = self->code + self->count;
    uint64_t epoch = dg_marks_epoch;
    for (const dg_Instruction *in = self->code; in < end; in = dg_next(in)) {
        int going;
        if (in->op == DG_TEST_UNBOUND) {
            going = record_run(record, in);
        }
        else {
            going = in->op < DG_TEST_TYPE ? record_load(record, in) : record_test(record, in);
        }
        if (going <= 0) {
            return going;
        }
    }
    record->memo->epoch = epoch;
    return record_late(record);
}

static int
record_setup(record_Record *record)
{
    size_t count = (size_t)record->program->register_count;
    record->memo = PyMem_Calloc(1, sizeof *record->memo + count * sizeof(dg_Register));
    record->states = PyMem_Calloc(count + 1, sizeof *record->states);
    record->owners = PyMem_Calloc(count + 1, sizeof *record->owners);
    if (record->memo == NULL || record->states == NULL || record->owners == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    record->registers = record->memo->registers;
    record->memo->misfit = -1;
    record->memo->register_count = (int32_t)count;
    return 0;
}

int
dg_memo_record(dg_Program *self, const dg_Frame *frame)
{
    record_Record record = {self, NULL, frame, NULL, NULL, NULL, NULL, 0, 0, 0};
    int holds = -1;
    self->memo_busy = 1;
    if (record_setup(&record) == 0) {
        holds = record_walk(&record);
        for (Py_ssize_t i = 0; i < self->register_count; i++) {
            if (record.registers[i].owned) {
                record.registers[i].owned = 0;
                Py_DECREF(record.registers[i].value);
            }
        }
    }
    self->memo_busy = 0;
    if (holds > 0 && !record.failed && self->valid) {
        self->memo = record.memo;
        record.memo = NULL;
    }
    else if (holds > 0 && record.failed) {
        self->memo_pays = 0; /* it would fail again */
    }
    dg_memo_free(record.memo);
    PyMem_Free(record.states);
    PyMem_Free(record.owners);
    PyMem_Free(record.seen);
    return holds;
}

int
dg_memo_pays(const dg_Program *self)
{
    int gain = 0;
    for (Py_ssize_t i = 0; i < self->count; i++) {
        int op = self->code[i].op;
        gain += op == DG_INSTANCE_DICT || op == DG_DICT_ITEM || op == DG_MODULE_ATTR || op == DG_ATTR ||
                op == DG_TEST_DICT_KEYS || op == DG_TEST_CONTAINS || op == DG_TEST_LACKS;
    }
    return dg_state.marks && gain >= RECORD_LEAST_GAIN;
}
