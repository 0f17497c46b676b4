/* The Python face of the scanner: cranfield.ranking._kernel. Bytes come in, and arrays go out as bytes for numpy. */
#include "binding.h"

#include <string.h>

#include "scan.h"

typedef struct {
    uint64_t seed[2];
    PyTypeObject *index_type, *scanner_type, *counter_type;
} ModuleState;

typedef struct {
    PyObject_HEAD
    Index *index;
    PyObject *query_ids, *doc_ids; /* the tuples that hold the bytes the slices point at */
    Slice *queries, *documents;
    size_t *doc_start;
    bool *whole;
} IndexObject;

typedef struct {
    PyObject_HEAD
    Scanner *scanner;
    PyObject *index;
    bool busy; /* in a thread that has let go of the interpreter */
} ScannerObject;

/* ---- Index ---- */

static bool bytes_slice(PyObject *object, Slice *slice) {
    char *bytes;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(object, &bytes, &length) < 0) return false;
    *slice = (Slice){(const uint8_t *)bytes, (size_t)length};
    return true;
}

/* Count the documents of all queries, and see that every part is what it should be. */
static bool count_documents(PyObject *doc_ids, Py_ssize_t n_queries, size_t *n_documents) {
    *n_documents = 0;
    for (Py_ssize_t query = 0; query < n_queries; query++) {
        PyObject *documents = PyTuple_GetItem(doc_ids, query);
        if (!PyTuple_Check(documents)) {
            PyErr_SetString(PyExc_TypeError, "the documents of a query are no tuple");
            return false;
        }
        *n_documents += (size_t)PyTuple_Size(documents);
    }
    return true;
}

static bool fill_index(IndexObject *self, PyObject *whole, Py_ssize_t n_queries) {
    size_t n_documents, n = (size_t)n_queries, at = 0;
    if (!count_documents(self->doc_ids, n_queries, &n_documents)) return false;
    self->queries = PyMem_Calloc(n + 1, sizeof(Slice));
    self->documents = PyMem_Calloc(n_documents + 1, sizeof(Slice));
    self->doc_start = PyMem_Calloc(n + 1, sizeof(size_t));
    self->whole = PyMem_Calloc(n + 1, sizeof(bool));
    if (!self->queries || !self->documents || !self->doc_start || !self->whole) return PyErr_NoMemory(), false;
    Py_ssize_t n_whole = PyTuple_Size(whole);
    if (n_whole < 0) return false;
    for (Py_ssize_t query = 0; query < n_queries; query++) {
        if (!bytes_slice(PyTuple_GetItem(self->query_ids, query), self->queries + query)) return false;
        PyObject *documents = PyTuple_GetItem(self->doc_ids, query);
        for (Py_ssize_t i = 0; i < PyTuple_Size(documents); i++)
            if (!bytes_slice(PyTuple_GetItem(documents, i), self->documents + at++)) return false;
        self->doc_start[query + 1] = at;
        int is_whole = query < n_whole ? PyObject_IsTrue(PyTuple_GetItem(whole, query)) : 0;
        if (is_whole < 0) return false;
        self->whole[query] = is_whole;
    }
    return true;
}

static PyObject *index_make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"query_ids", "doc_ids", "whole", NULL};
    PyObject *query_ids, *doc_ids, *whole;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!O!:Index", names, &PyTuple_Type, &query_ids, &PyTuple_Type,
                                     &doc_ids, &PyTuple_Type, &whole))
        return NULL;
    Py_ssize_t n_queries = PyTuple_Size(query_ids);
    if (PyTuple_Size(doc_ids) != n_queries) {
        PyErr_SetString(PyExc_ValueError, "query_ids and doc_ids differ in length");
        return NULL;
    }
    ModuleState *state = PyType_GetModuleState(type);
    IndexObject *self = state ? PyObject_New(IndexObject, type) : NULL;
    if (!self) return NULL;
    self->index = NULL, self->queries = self->documents = NULL, self->doc_start = NULL, self->whole = NULL;
    Py_INCREF(query_ids), Py_INCREF(doc_ids);
    self->query_ids = query_ids, self->doc_ids = doc_ids;
    if (fill_index(self, whole, n_queries)) {
        size_t twice;
        self->index = index_new(self->queries, (size_t)n_queries, self->documents, self->doc_start, self->whole,
                                state->seed, &twice);
        if (!self->index && twice < (size_t)n_queries) {
            PyErr_Format(PyExc_ValueError, "query %R is there twice", PyTuple_GetItem(query_ids, (Py_ssize_t)twice));
        } else if (!self->index) {
            PyErr_NoMemory();
        }
    }
    if (self->index) return (PyObject *)self;
    Py_DECREF(self);
    return NULL;
}

static void index_dealloc(PyObject *object) {
    IndexObject *self = (IndexObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    index_free(self->index);
    PyMem_Free(self->queries), PyMem_Free(self->documents);
    PyMem_Free(self->doc_start), PyMem_Free(self->whole);
    Py_XDECREF(self->query_ids), Py_XDECREF(self->doc_ids);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyType_Slot INDEX_SLOTS[] = {
    {Py_tp_doc, "Index(query_ids, doc_ids, whole)\n--\n\nWhat a scanner has to recognise: tuples of bytes."},
    {Py_tp_new, index_make},
    {Py_tp_dealloc, index_dealloc},
    {0, NULL},
};
static PyType_Spec INDEX_SPEC = {
    "cranfield.ranking._kernel.Index", sizeof(IndexObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, INDEX_SLOTS,
};

/* ---- Scanner ---- */

/* Place of a word among some, NULL at their end; -1 with an exception set when it is none of them. */
static int word_place(const char *option, const char *word, const char *const words[]) {
    for (int i = 0; words[i]; i++)
        if (!strcmp(word, words[i])) return i;
    PyErr_Format(PyExc_ValueError, "%s is '%s'", option, word);
    return -1;
}

static PyObject *scanner_make(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *const ORDERS[] = {"score", "given", "rank", NULL};
    static const char *const TIES[] = {"descending", "ascending", "given", NULL};
    static const char *const DUPLICATES[] = {"error", "first", NULL};
    static char *names[] = {"index", "order", "ties", "duplicates", "single", "depth", "keep", "gather", "inner",
                            "problem_limit", NULL};
    const char *order_word, *ties_word, *duplicates_word;
    long long depth, keep;
    Py_ssize_t limit;
    int single, gather, inner;
    PyObject *index;
    ModuleState *state = PyType_GetModuleState(type);
    if (!state || !PyArg_ParseTupleAndKeywords(args, kwargs, "O!sssp" "LL" "ppn:Scanner", names, state->index_type, &index,
                                               &order_word, &ties_word, &duplicates_word, &single, &depth, &keep,
                                               &gather, &inner, &limit))
        return NULL;
    int order = word_place("order", order_word, ORDERS), ties = order < 0 ? -1 : word_place("ties", ties_word, TIES);
    int duplicates = ties < 0 ? -1 : word_place("duplicates", duplicates_word, DUPLICATES);
    if (duplicates < 0) return NULL;
    ScanOptions options = {
        .order = (Order)order,
        .ties = (Ties)ties,
        .keep_first = duplicates == 1,
        .single = single,
        .gather = gather,
        .inner = inner,
        .depth = depth,
        .keep = keep,
        .problem_limit = limit < 1 ? 1 : (size_t)limit,
    };
    ScannerObject *self = PyObject_New(ScannerObject, type);
    if (!self) return NULL;
    Py_INCREF(index);
    self->index = index, self->busy = false;
    self->scanner = scanner_new(((IndexObject *)index)->index, &options);
    if (self->scanner) return (PyObject *)self;
    Py_DECREF(self);
    return PyErr_NoMemory();
}

static void scanner_dealloc(PyObject *object) {
    ScannerObject *self = (ScannerObject *)object;
    PyTypeObject *type = Py_TYPE(object);
    scanner_free(self->scanner);
    Py_DECREF(self->index);
    PyObject_Free(object);
    Py_DECREF(type);
}

static bool is_free(ScannerObject *self) {
    if (self->busy) PyErr_SetString(PyExc_RuntimeError, "another thread is using this scanner");
    return !self->busy;
}

static PyObject *status_result(ScanStatus status) {
    return status == SCAN_NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLong((long)status);
}

static PyObject *method_feed(PyObject *object, PyObject *bytes) {
    ScannerObject *self = (ScannerObject *)object;
    Py_buffer view;
    if (!is_free(self) || PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) < 0) return NULL;
    ScanStatus status;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    status = scanner_feed(self->scanner, view.buf, (size_t)view.len);
    Py_END_ALLOW_THREADS
    self->busy = false;
    PyBuffer_Release(&view);
    return status_result(status);
}

static PyObject *method_finish(PyObject *object, PyObject *Py_UNUSED(nothing)) {
    ScannerObject *self = (ScannerObject *)object;
    if (!is_free(self)) return NULL;
    ScanStatus status;
    self->busy = true;
    Py_BEGIN_ALLOW_THREADS
    status = scanner_finish(self->scanner);
    Py_END_ALLOW_THREADS
    self->busy = false;
    return status_result(status);
}

static PyObject *slice_bytes(Slice slice) { return array_bytes(slice.bytes, slice.length, 1); }

static PyObject *extra_list(const ScanResult *result) {
    PyObject *list = PyList_New((Py_ssize_t)result->n_extra);
    for (size_t i = 0; list && i < result->n_extra; i++) {
        ExtraQuery name = result->extra[i];
        PyObject *bytes = slice_bytes((Slice){result->extra_bytes + name.place, name.length});
        if (!bytes || PyList_SetItem(list, (Py_ssize_t)i, bytes) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *problem_list(const ScanResult *result) {
    PyObject *list = PyList_New((Py_ssize_t)result->n_problems);
    for (size_t i = 0; list && i < result->n_problems; i++) {
        const ScanProblem *problem = result->problems + i;
        PyObject *got = slice_bytes(problem->got), *query = slice_bytes(problem->query);
        PyObject *entry = NULL;
        if (got && query)
            entry = Py_BuildValue("iKKnOO", (int)problem->code, (unsigned long long)problem->line,
                                  (unsigned long long)problem->other_line, (Py_ssize_t)problem->n_columns, got, query);
        Py_XDECREF(got), Py_XDECREF(query);
        if (!entry || PyList_SetItem(list, (Py_ssize_t)i, entry) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *method_result(PyObject *object, PyObject *Py_UNUSED(nothing)) {
    ScannerObject *self = (ScannerObject *)object;
    if (!is_free(self)) return NULL;
    ScanResult found;
    scanner_result(self->scanner, &found);
    PyObject *parts[] = {
        array_bytes(found.judged, found.n_judged, sizeof(JudgedRow)),
        array_bytes(found.answered, found.n_answered, sizeof(AnsweredRow)),
        array_bytes(found.hit_score, found.n_hits, sizeof(double)),
        array_bytes(found.hit_length, found.n_hits, sizeof(int64_t)),
        array_bytes(found.hit_item, found.n_hits, sizeof(int32_t)),
        slice_bytes(found.hit_ids),
        PyLong_FromUnsignedLongLong(found.n_lines),
        found.has_tag ? slice_bytes(found.tag) : Py_BuildValue(""),
        extra_list(&found),
        problem_list(&found),
    };
    enum { N_PARTS = sizeof parts / sizeof *parts };
    PyObject *tuple = PyTuple_New(N_PARTS);
    for (Py_ssize_t i = 0; i < N_PARTS; i++) {
        if (!tuple || !parts[i]) {
            Py_XDECREF(parts[i]);
            Py_CLEAR(tuple);
        } else if (PyTuple_SetItem(tuple, i, parts[i]) < 0) {
            Py_CLEAR(tuple);
        }
    }
    return tuple;
}

static PyMethodDef SCANNER_METHODS[] = {
    {"feed", method_feed, METH_O, "feed(bytes)\n--\n\nTake the next bytes of the file; returns a status."},
    {"finish", method_finish, METH_NOARGS, "finish()\n--\n\nThe file is at its end; returns a status."},
    {"result", method_result, METH_NOARGS,
     "result()\n--\n\n"
     "What was found: judged rows (int32[J, 5]: query, rank, item, tie_first, tie_last), answered queries (int32[A, 6]:\n"
     "query, n_returned, n_duplicates, n_tied, misranked, n_hits), scores, id lengths, items and ids of the first hits,\n"
     "number of lines, tag, extra queries, problems (code, line, other line, columns, got, query)."},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot SCANNER_SLOTS[] = {
    {Py_tp_doc, "Scanner(index, order, ties, duplicates, single, depth, keep, gather, inner, problem_limit)\n--\n\n"
                "A push parser of TREC run files; see scan.h."},
    {Py_tp_new, scanner_make},
    {Py_tp_dealloc, scanner_dealloc},
    {Py_tp_methods, SCANNER_METHODS},
    {0, NULL},
};
static PyType_Spec SCANNER_SPEC = {
    "cranfield.ranking._kernel.Scanner", sizeof(ScannerObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    SCANNER_SLOTS,
};

/* ---- module ---- */

static PyObject *method_query_change(PyObject *Py_UNUSED(module), PyObject *bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(bytes, &view, PyBUF_SIMPLE) < 0) return NULL;
    size_t place;
    Py_BEGIN_ALLOW_THREADS
    place = query_change(view.buf, (size_t)view.len);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&view);
    return PyLong_FromSize_t(place);
}

static PyMethodDef METHODS[] = {
    {"query_change", method_query_change, METH_O,
     "query_change(bytes)\n--\n\n"
     "Offset of the first line that names another query than the line before it, else the length.\n\n"
     "What stands before the first line feed is not looked at."},
    {"rank_mappings", rank_mappings, METH_VARARGS, RANK_MAPPINGS_DOC},
    {"rank_table", rank_table, METH_VARARGS, RANK_TABLE_DOC},
    {NULL, NULL, 0, NULL},
};

/* Sixteen random bytes. */
static bool draw_seed(uint64_t seed[2]) {
    PyObject *os = PyImport_ImportModule("os"), *drawn = os ? PyObject_CallMethod(os, "urandom", "i", 16) : NULL;
    Slice bytes = {NULL, 0};
    bool good = drawn && bytes_slice(drawn, &bytes) && bytes.length == 16;
    if (good) memcpy(seed, bytes.bytes, 16);
    Py_XDECREF(drawn), Py_XDECREF(os);
    return good;
}

static bool add_type(PyObject *module, PyType_Spec *spec, PyTypeObject **kept) {
    *kept = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return *kept && PyModule_AddType(module, *kept) == 0;
}

static const struct {
    const char *name;
    long value;
} CONSTANTS[] = {
    {"FINE", SCAN_FINE},
    {"INTERLEAVED", SCAN_INTERLEAVED},
    {"STOPPED", SCAN_STOPPED},
    {"COLUMNS", PROBLEM_COLUMNS},
    {"CARRIAGE_RETURN", PROBLEM_CARRIAGE_RETURN},
    {"SCORE", PROBLEM_SCORE},
    {"RANK", PROBLEM_RANK},
    {"DUPLICATE", PROBLEM_DUPLICATE},
    {"LONG_LINE", PROBLEM_LONG_LINE},
};

static int module_exec(PyObject *module) {
    ModuleState *state = PyModule_GetState(module);
    if (!state || !draw_seed(state->seed)) return -1;
    if (!add_type(module, &INDEX_SPEC, &state->index_type)) return -1;
    if (!add_type(module, &SCANNER_SPEC, &state->scanner_type)) return -1;
    if (!add_type(module, &COUNTER_SPEC, &state->counter_type)) return -1;
    for (size_t i = 0; i < sizeof CONSTANTS / sizeof *CONSTANTS; i++)
        if (PyModule_AddIntConstant(module, CONSTANTS[i].name, CONSTANTS[i].value) < 0) return -1;
    return 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    ModuleState *state = PyModule_GetState(module);
    Py_VISIT(state->index_type);
    Py_VISIT(state->scanner_type);
    Py_VISIT(state->counter_type);
    return 0;
}

static int module_clear(PyObject *module) {
    ModuleState *state = PyModule_GetState(module);
    Py_CLEAR(state->index_type);
    Py_CLEAR(state->scanner_type);
    Py_CLEAR(state->counter_type);
    return 0;
}

static PyModuleDef_Slot MODULE_SLOTS[] = {
    {Py_mod_exec, module_exec},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL},
};
static struct PyModuleDef MODULE = {
    PyModuleDef_HEAD_INIT, "cranfield.ranking._kernel", "The native reader of TREC run files.", sizeof(ModuleState), METHODS,
    MODULE_SLOTS,          module_traverse,             module_clear,                           NULL,
};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&MODULE); }
