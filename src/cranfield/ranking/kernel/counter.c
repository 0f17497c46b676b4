/* The Python face of counting: cranfield.ranking._kernel.Counter. Buffers come in, and arrays go out as bytes. */
#include "binding.h"

#include "count.h"

enum { N_BUFFERS = 6, N_JUDGED = 5 };

typedef struct {
    PyObject_HEAD
    Counter counter;
    JudgedRows judged;
    Py_buffer held[N_BUFFERS];        /* the judgments, and the filter */
    Py_buffer judged_held[N_JUDGED]; /* what `judge` was given */
    int n_held, n_judged_held;
    int n_running; /* calls that have let go of the interpreter */
} CounterObject;

static bool hold(PyObject *object, Py_buffer *view, int flags, size_t element) {
    if (PyObject_GetBuffer(object, view, flags) < 0) return false;
    if (view->len % (Py_ssize_t)element == 0 && (uintptr_t)view->buf % element == 0) return true;
    PyErr_SetString(PyExc_ValueError, "a buffer is no array of its kind");
    PyBuffer_Release(view);
    return false;
}

static void release(Py_buffer *views, int *n) {
    while (*n) PyBuffer_Release(&views[--*n]);
}

/* Offsets and bytes as texts; false when an offset lies outside, or they fall. */
static bool texts_of(const Py_buffer *offsets, const Py_buffer *bytes, Texts *texts) {
    size_t n = (size_t)offsets->len / 8;
    *texts = (Texts){offsets->buf, bytes->buf, n ? n - 1 : 0, (size_t)bytes->len};
    bool good = n > 0 && texts->offset[0] >= 0 && texts->offset[n - 1] <= bytes->len;
    for (size_t i = 1; good && i < n; i++) good = texts->offset[i - 1] <= texts->offset[i];
    if (!good) PyErr_SetString(PyExc_ValueError, "offsets do not lie in their bytes");
    return good;
}

static bool rising(const int64_t *start, size_t n, size_t last) {
    bool good = start[0] == 0 && (size_t)start[n] == last;
    for (size_t i = 0; good && i < n; i++) good = start[i] <= start[i + 1];
    if (!good) PyErr_SetString(PyExc_ValueError, "starts do not lie in their array");
    return good;
}

static bool read_ties(const char *text, Ties *ties) {
    static const char *const NAMES[] = {"descending", "ascending", "given"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(text, NAMES[i])) return *ties = (Ties)i, true;
    return PyErr_Format(PyExc_ValueError, "no such order of ties: %s", text), false;
}

static bool fill_counter(CounterObject *self, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"query_offsets", "query_bytes", "doc_start", "doc_offsets", "doc_bytes", "ties", "seed", "met", NULL};
    PyObject *parts[N_BUFFERS];
    const char *ties, *seed;
    Py_ssize_t seed_length;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOOOOsy#O:Counter", names, parts, parts + 1, parts + 2, parts + 3,
                                     parts + 4, &ties, &seed, &seed_length, parts + 5))
        return false;
    static const size_t ELEMENT[N_BUFFERS] = {8, 1, 8, 8, 1, 8};
    for (; self->n_held < N_BUFFERS; self->n_held++) {
        int flags = self->n_held == N_BUFFERS - 1 ? PyBUF_WRITABLE : PyBUF_SIMPLE;
        if (!hold(parts[self->n_held], self->held + self->n_held, flags, ELEMENT[self->n_held])) return false;
    }
    Counter *counter = &self->counter;
    const Py_buffer *held = self->held;
    if (!read_ties(ties, &counter->ties) || !texts_of(held, held + 1, &counter->queries) ||
        !texts_of(held + 3, held + 4, &counter->documents))
        return false;
    if (seed_length != 16 || (size_t)held[2].len != 8 * (counter->queries.n + 1) || counter->queries.n >= INT32_MAX ||
        counter->documents.n >= INT32_MAX || held[5].len / 8 > UINT32_MAX)
        return PyErr_SetString(PyExc_ValueError, "the judgments do not go together, or are too many"), false;
    memcpy(counter->seed, seed, 16);
    counter->doc_start = held[2].buf;
    counter->filter = held[5].buf, counter->filter_words = (size_t)held[5].len / 8;
    return rising(counter->doc_start, counter->queries.n, counter->documents.n);
}

static PyObject *counter_make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    CounterObject *self = PyObject_New(CounterObject, type);
    if (!self) return NULL;
    memset((char *)self + offsetof(CounterObject, counter), 0, sizeof *self - offsetof(CounterObject, counter));
    bool good = fill_counter(self, args, kwargs);
    size_t twice = SIZE_MAX;
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        good = counter_init(&self->counter, &twice);
        Py_END_ALLOW_THREADS
        if (!good && twice == SIZE_MAX) PyErr_NoMemory();
        else if (!good) PyErr_Format(PyExc_ValueError, "query %zu, or a document of it, is there twice", twice);
    }
    if (good) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void counter_dealloc(PyObject *object) {
    CounterObject *self = (CounterObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    counter_free(&self->counter);
    release(self->held, &self->n_held);
    release(self->judged_held, &self->n_judged_held);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *counter_queries_method(PyObject *object, PyObject *args) {
    CounterObject *self = (CounterObject *)object;
    PyObject *parts[2], *result = NULL;
    Py_buffer held[2];
    int n = 0;
    if (!PyArg_ParseTuple(args, "OO:queries", parts, parts + 1)) return NULL;
    for (; n < 2; n++)
        if (!hold(parts[n], held + n, PyBUF_SIMPLE, n ? 1 : 8)) return release(held, &n), NULL;
    Texts texts;
    if (texts_of(held, held + 1, &texts)) result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * texts.n));
    if (result) {
        int32_t *places = (int32_t *)(void *)PyBytes_AsString(result);
        Py_BEGIN_ALLOW_THREADS
        counter_queries(&self->counter, texts, places);
        Py_END_ALLOW_THREADS
    }
    release(held, &n);
    return result;
}

static PyObject *counter_order_method(PyObject *object, PyObject *Py_UNUSED(none)) {
    CounterObject *self = (CounterObject *)object;
    PyObject *result = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(4 * self->counter.documents.n));
    if (!result) return NULL;
    int32_t *order = (int32_t *)(void *)PyBytes_AsString(result);
    bool good;
    Py_BEGIN_ALLOW_THREADS
    good = counter_document_order(&self->counter, order);
    Py_END_ALLOW_THREADS
    if (good) return result;
    Py_DECREF(result);
    return PyErr_NoMemory();
}

/* ---- rows ---- */

enum { N_ROWS = 4 };

static bool rows_of(CounterObject *self, PyObject *const parts[N_ROWS], unsigned long long ordinal, size_t n_groups,
                    Py_buffer held[N_ROWS], int *n, Rows *rows) {
    static const size_t ELEMENT[N_ROWS] = {4, 8, 1, 8};
    for (; *n < N_ROWS; ++*n)
        if (!hold(parts[*n], held + *n, PyBUF_SIMPLE, ELEMENT[*n])) return false;
    *rows = (Rows){held[0].buf, {0}, held[3].buf, ordinal, (size_t)held[0].len / 4};
    if (!texts_of(held + 1, held + 2, &rows->documents)) return false;
    bool good = rows->documents.n == rows->n && (size_t)held[3].len == 8 * rows->n && rows->n <= INT32_MAX;
    for (size_t i = 0; good && i < rows->n; i++) good = rows->group[i] < 0 || (size_t)rows->group[i] < n_groups;
    if (!good) PyErr_SetString(PyExc_ValueError, "the columns of the rows do not go together");
    return good;
}

static PyObject *counter_find_method(PyObject *object, PyObject *args) {
    CounterObject *self = (CounterObject *)object;
    PyObject *parts[N_ROWS], *result = NULL;
    unsigned long long ordinal;
    if (!PyArg_ParseTuple(args, "OOOOK:find", parts, parts + 1, parts + 2, parts + 3, &ordinal)) return NULL;
    Py_buffer held[N_ROWS];
    int n = 0;
    Rows rows;
    if (rows_of(self, parts, ordinal, self->counter.queries.n ? (size_t)INT32_MAX : 0, held, &n, &rows)) {
        Array found = {0}, repeated = {0};
        bool good;
        self->n_running++;
        Py_BEGIN_ALLOW_THREADS
        good = counter_find(&self->counter, &rows, &found, &repeated);
        Py_END_ALLOW_THREADS
        self->n_running--;
        result = good ? Py_BuildValue("y#y#", found.data ? found.data : "", (Py_ssize_t)(found.used * sizeof(FoundRow)),
                                      repeated.data ? repeated.data : "", (Py_ssize_t)(repeated.used * 8))
                      : PyErr_NoMemory();
        SCAN_FREE(found.data), SCAN_FREE(repeated.data);
    }
    release(held, &n);
    return result;
}

static bool fill_judged(CounterObject *self, PyObject *const parts[N_JUDGED]) {
    static const size_t ELEMENT[N_JUDGED] = {8, 8, 4, 8, 4};
    release(self->judged_held, &self->n_judged_held);
    self->judged.start = NULL;
    for (; self->n_judged_held < N_JUDGED; self->n_judged_held++) {
        int flags = self->n_judged_held == N_JUDGED - 1 ? PyBUF_WRITABLE : PyBUF_SIMPLE;
        if (!hold(parts[self->n_judged_held], self->judged_held + self->n_judged_held, flags, ELEMENT[self->n_judged_held]))
            return false;
    }
    const Py_buffer *held = self->judged_held;
    size_t n_groups = (size_t)held[0].len / 8, n = (size_t)held[1].len / 8;
    n_groups -= n_groups > 0;
    bool good = held[0].len > 0 && (size_t)held[2].len == 4 * n && (size_t)held[3].len == 8 * n &&
                (size_t)held[4].len == 12 * (n + n_groups);
    const int32_t *judgment = held[2].buf;
    for (size_t i = 0; good && i < n; i++) good = judgment[i] >= 0 && (size_t)judgment[i] < self->counter.documents.n;
    if (!good) return PyErr_SetString(PyExc_ValueError, "the judged rows do not go together"), false;
    if (!rising(held[0].buf, n_groups, n)) return false;
    self->judged = (JudgedRows){held[0].buf, held[1].buf, judgment, held[3].buf, held[4].buf, n_groups};
    return true;
}

static PyObject *counter_judge_method(PyObject *object, PyObject *args) {
    CounterObject *self = (CounterObject *)object;
    PyObject *parts[N_JUDGED], *suspects;
    if (!PyArg_ParseTuple(args, "OOOOOO:judge", parts, parts + 1, parts + 2, parts + 3, parts + 4, &suspects)) return NULL;
    if (self->n_running) return PyErr_SetString(PyExc_ValueError, "another thread still counts"), NULL;
    if (!fill_judged(self, parts)) return NULL;
    if (self->n_held == N_BUFFERS) PyBuffer_Release(&self->held[--self->n_held]); /* the filter has done its work */
    self->counter.filter = NULL, self->counter.filter_words = 0;
    Py_buffer hashes;
    if (!hold(suspects, &hashes, PyBUF_SIMPLE, 8)) return NULL;
    bool good = counter_suspect(&self->counter, hashes.buf, (size_t)hashes.len / 8);
    PyBuffer_Release(&hashes);
    if (!good) return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *counter_count_method(PyObject *object, PyObject *args) {
    CounterObject *self = (CounterObject *)object;
    PyObject *parts[N_ROWS], *result = NULL;
    unsigned long long ordinal;
    int delta;
    if (!PyArg_ParseTuple(args, "OOOOKi:count", parts, parts + 1, parts + 2, parts + 3, &ordinal, &delta)) return NULL;
    if (!self->judged.start) return PyErr_SetString(PyExc_ValueError, "no judged rows were given"), NULL;
    Py_buffer held[N_ROWS];
    int n = 0;
    Rows rows;
    if (rows_of(self, parts, ordinal, self->judged.n_groups, held, &n, &rows)) {
        Array suspects = {0};
        bool good;
        self->n_running++;
        Py_BEGIN_ALLOW_THREADS
        good = counter_count(&self->counter, &rows, &self->judged, delta, &suspects);
        Py_END_ALLOW_THREADS
        self->n_running--;
        result = good ? PyBytes_FromStringAndSize(suspects.data, (Py_ssize_t)(suspects.used * sizeof(SuspectRow)))
                      : PyErr_NoMemory();
        SCAN_FREE(suspects.data);
    }
    release(held, &n);
    return result;
}

static PyMethodDef METHODS[] = {
    {"queries", counter_queries_method, METH_VARARGS, "queries(offsets, bytes)\n--\n\nint32: the place of each, or -1."},
    {"document_order", counter_order_method, METH_NOARGS, "document_order()\n--\n\nint32: byte order within the query."},
    {"find", counter_find_method, METH_VARARGS, "find(groups, offsets, bytes, keys, ordinal)\n--\n\nJudged rows, hashes."},
    {"judge", counter_judge_method, METH_VARARGS,
     "judge(start, keys, judgments, ordinals, counts, suspects)\n--\n\nWhat rows are counted at."},
    {"count", counter_count_method, METH_VARARGS, "count(groups, offsets, bytes, keys, ordinal, delta)\n--\n\nSuspects."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot COUNTER_SLOTS[] = {
    {Py_tp_doc, "Counter(query_offsets, query_bytes, doc_start, doc_offsets, doc_bytes, ties, seed, met)\n--\n\n"
                "Ranks by counting; see cranfield.ranking.counter_python for what it computes."},
    {Py_tp_new, counter_make},
    {Py_tp_dealloc, counter_dealloc},
    {Py_tp_methods, METHODS},
    {0, NULL},
};
PyType_Spec COUNTER_SPEC = {
    "cranfield.ranking._kernel.Counter", sizeof(CounterObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    COUNTER_SLOTS,
};
