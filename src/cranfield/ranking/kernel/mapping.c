/* Runs that are in memory, as a dict of dicts: where the judged documents stand, without making an object a result.
 *
 * A dict whose keys are str and whose values are float or int is read as it is; no code but this runs meanwhile. Any
 * other is first made into one, so that a number's own code cannot change what is being read. */
#include "binding.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "order.h"
#include "types.h"

const char RANK_MAPPINGS_DOC[] =
    "rank_mappings(run, query_ids, judged, ties, single, see=None)\n--\n\n"
    "Rank the judged documents of a run.\n\n"
    "Args:\n"
    "    run: dict of query to dict of document to score, larger is better; other dicts are not accepted for these.\n"
    "    query_ids: tuple of str.\n"
    "    judged: per query a tuple of str, its documents.\n"
    "    ties: equal scores fall by document id, `descending` or `ascending` in bytes, or as the dict has them, `given`.\n"
    "    single: scores are compared as 32-bit floats.\n"
    "    see: called with each answered query, its number of results, and their ids (UTF-8, a line feed between two) with their\n"
    "        scores (little-endian doubles) as bytes; None for these where an id has a line feed, or characters UTF-8 has not.\n\n"
    "Returns:\n"
    "    judged rows (int32[J, 5]: query, rank, item, tie_first, tie_last; by query, then rank), answered queries\n"
    "    (int32[A, 3]: query, n_returned, n_tied), and (query, document, score) of the first 20 that are not a string and\n"
    "    a finite number; where there is one, the rest is incomplete.";

enum { SHOWN = 20, QUERIES_BETWEEN_SIGNALS = 64 };

typedef struct {
    int32_t query, n_returned, n_tied;
} AnsweredMapping;

/* An entry of a dict; the dict holds the objects. */
typedef struct {
    PyObject *key, *value;
    double score;
} Entry;

/* A judged document that the dict has: the bounds of those that tie with it. */
typedef struct {
    size_t low, high;
    int32_t item;
    PyObject *key;
} Found;

/* One of several documents of one score. */
typedef struct {
    const uint8_t *id;
    size_t length;
    uint32_t place; /* in the order, ties as the dict has them */
    int sign;
} Tied;

typedef struct {
    void *data;
    size_t size;
} Room;

typedef struct {
    PyObject *run, *query_ids, *judged, *see;
    int ties; /* as in TIES */
    bool single;
    Room entries, ordered, spare, found, tied, rows, answered, content;
    size_t n_rows, n_answered, n_content;
    bool is_content; /* whether `content` is that of the dict that was ranked last */
    PyObject *bad;   /* list of what is no score */
    PyObject *bytes; /* list that keeps the encoded ids of a tie alive */
} Mappings;

static const char *const TIES[] = {"descending", "ascending", "given"};

/* Room for so many elements; false with an exception set. */
static bool room(Room *space, size_t n, size_t element) {
    if (n <= space->size) return true;
    size_t most = PY_SSIZE_T_MAX / 2 / element, doubled = space->size * 2;
    size_t size = n < doubled ? doubled : n < 64 ? 64 : n;
    void *data = n > most ? NULL : PyMem_Realloc(space->data, size * element);
    if (!data) return PyErr_NoMemory(), false;
    space->data = data, space->size = size;
    return true;
}

static bool note_bad(Mappings *all, PyObject *query_id, PyObject *key, PyObject *value) {
    if (PyList_Size(all->bad) >= SHOWN) return true;
    PyObject *entry = PyTuple_Pack(3, query_id, key, value);
    bool noted = entry && PyList_Append(all->bad, entry) == 0;
    Py_XDECREF(entry);
    return noted;
}

/* The score of an entry, NaN where it is none that can be read without making an object. */
static inline double plain_score(PyObject *value) {
    if (LIKELY(PyFloat_Check(value))) return PyFloat_AsDouble(value);
    if (!PyLong_CheckExact(value)) return NAN;
    double score = PyLong_AsDouble(value);
    if (score != -1.0 || !PyErr_Occurred()) return score;
    PyErr_Clear(); /* beyond any double */
    return NAN;
}

/* Read a dict of str to finite float or int; false when there is something else in it. */
static bool read_plain(Mappings *all, PyObject *scores) {
    Py_ssize_t at = 0;
    PyObject *key, *value;
    Entry *entries = all->entries.data;
    size_t n = 0;
    while (PyDict_Next(scores, &at, &key, &value)) {
        __builtin_prefetch(key), __builtin_prefetch(value); /* they lie anywhere: have them come while others are read */
        entries[n].key = key, entries[n++].value = value;
    }
    for (size_t i = 0; i < n; i++) {
        double score = plain_score(entries[i].value);
        if (UNLIKELY(!isfinite(score) || !PyUnicode_CheckExact(entries[i].key))) return false;
        entries[i].score = score;
    }
    return true;
}

/* Whether it is one of the truth values, ours or numpy's, which would pass for numbers. */
static int is_truth_value(PyObject *value) {
    PyObject *name = PyType_GetName(Py_TYPE(value));
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    int is_one = text ? !strcmp(text, "bool") || !strcmp(text, "bool_") : -1;
    Py_XDECREF(name);
    return is_one;
}

/* A finite number as a float, or NULL when it is none; *failed is then -1 where there is an exception. */
static PyObject *as_float(PyObject *value, int *failed) {
    int is_truth = is_truth_value(value);
    *failed = is_truth < 0 ? -1 : 0;
    if (is_truth) return NULL;
    double score = PyFloat_AsDouble(value);
    if (score == -1.0 && PyErr_Occurred()) {
        bool is_refusal = PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
                          PyErr_ExceptionMatches(PyExc_OverflowError);
        if (is_refusal) PyErr_Clear();
        *failed = is_refusal ? 0 : -1;
        return NULL;
    }
    if (!isfinite(score)) return NULL;
    PyObject *number = PyFloat_FromDouble(score);
    if (!number) *failed = -1;
    return number;
}

/* A new dict of str to float from one of anything that can be taken for it; what cannot is noted. */
static PyObject *made_plain(Mappings *all, PyObject *scores, PyObject *query_id) {
    PyObject *copy = PyDict_Copy(scores), *plain = copy ? PyDict_New() : NULL, *key, *value;
    Py_ssize_t at = 0;
    bool good = plain != NULL;
    while (good && PyDict_Next(copy, &at, &key, &value)) {
        int failed = 0;
        PyObject *text = PyUnicode_Check(key) ? PyUnicode_FromObject(key) : NULL;
        if (PyUnicode_Check(key) && !text) failed = -1;
        PyObject *number = text ? as_float(value, &failed) : NULL;
        if (failed) {
            good = false;
        } else if (text && number) {
            good = PyDict_SetItem(plain, text, number) == 0;
        } else {
            good = note_bad(all, query_id, key, value);
        }
        Py_XDECREF(text), Py_XDECREF(number);
    }
    Py_XDECREF(copy);
    if (!good) Py_CLEAR(plain);
    return plain;
}

/* Put ids and scores of a plain dict into `content`, as they stand in it; false with an exception set. */
static bool gather_content(Mappings *all, size_t n) {
    const Entry *entries = all->entries.data;
    size_t size = 0;
    all->is_content = false;
    for (size_t i = 0; i < n; i++) {
        Py_ssize_t length;
        const char *text = PyUnicode_AsUTF8AndSize(entries[i].key, &length);
        if (!text) {
            if (!PyErr_ExceptionMatches(PyExc_UnicodeError)) return false;
            PyErr_Clear();
            return true;
        }
        if (memchr(text, '\n', (size_t)length)) return true;
        if (!room(&all->content, size + (size_t)length + 1 + 8 * n, 1)) return false;
        char *data = (char *)all->content.data + size;
        if (i) *data++ = '\n';
        memcpy(data, text, (size_t)length);
        size += (size_t)length + (i > 0);
    }
    unsigned char *data = (unsigned char *)all->content.data + size;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &entries[i].score, sizeof bits);
        for (int byte = 0; byte < 8; byte++) *data++ = (unsigned char)(bits >> 8 * byte);
    }
    all->n_content = size + 8 * n;
    all->is_content = true;
    return true;
}

/* Tell `see` of a query that was ranked. */
static bool tell(Mappings *all, int32_t query) {
    Py_ssize_t n = ((AnsweredMapping *)all->answered.data)[all->n_answered - 1].n_returned;
    PyObject *returned = all->is_content
                         ? PyObject_CallFunction(all->see, "iny#", (int)query, n,
                                                 all->n_content ? (const char *)all->content.data : "",
                                                 (Py_ssize_t)all->n_content)
                         : PyObject_CallFunction(all->see, "inO", (int)query, n, Py_None);
    Py_XDECREF(returned);
    return returned != NULL;
}

/* Order the entries by score, equal ones as they stand; returns how many tie with the one before, -1: an exception. */
static Py_ssize_t put_in_order(Mappings *all, size_t n) {
    if (!room(&all->ordered, n, sizeof(Keyed))) return -1;
    const Entry *entries = all->entries.data;
    Keyed *ordered = all->ordered.data;
    bool in_order = true;
    Py_ssize_t n_tied = 0;
    for (size_t i = 0; i < n; i++) {
        ordered[i] = (Keyed){score_key(entries[i].score, all->single), (uint32_t)i};
        in_order &= !i || ordered[i - 1].key <= ordered[i].key;
    }
    if (!in_order) {
        if (!room(&all->spare, n, sizeof(Keyed))) return -1;
        sort_keyed(ordered, all->spare.data, n);
    }
    for (size_t i = 1; i < n; i++) n_tied += ordered[i - 1].key == ordered[i].key;
    return n_tied;
}

/* First place whose key is `key` or more. */
static size_t first_place(const Keyed *ordered, size_t n, uint64_t key) {
    size_t low = 0;
    for (size_t high = n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (ordered[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Look the judged documents up in the dict. -1: an exception. */
static Py_ssize_t find_judged(Mappings *all, PyObject *scores, PyObject *documents, size_t n) {
    Py_ssize_t n_documents = PyTuple_Size(documents), n_found = 0;
    const Keyed *ordered = all->ordered.data;
    if (n_documents < 0) return -1;
    if (!room(&all->found, (size_t)n_documents, sizeof(Found))) return -1;
    Found *found = all->found.data;
    for (Py_ssize_t item = 0; item < n_documents; item++) {
        PyObject *document = PyTuple_GetItem(documents, item);
        if (!document || !PyUnicode_CheckExact(document)) {
            if (document) PyErr_SetString(PyExc_TypeError, "a judged document is not a str");
            return -1;
        }
        PyObject *value = PyDict_GetItemWithError(scores, document);
        if (!value) {
            if (PyErr_Occurred()) return -1;
            continue;
        }
        double score = PyFloat_Check(value) ? PyFloat_AsDouble(value) : PyLong_AsDouble(value);
        uint64_t key = score_key(score, all->single);
        size_t low = first_place(ordered, n, key), high = low;
        while (high < n && ordered[high].key == key && high - low < 2) high++;
        if (high - low > 1 && key < UINT64_MAX) high = first_place(ordered, n, key + 1);
        found[n_found++] = (Found){low, high, (int32_t)item, document};
    }
    return n_found;
}

static int compare_found(const void *a, const void *b) {
    const Found *x = a, *y = b;
    return x->low != y->low ? (x->low > y->low) - (x->low < y->low) : (x->item > y->item) - (x->item < y->item);
}

static int compare_tied(const void *a, const void *b) {
    const Tied *x = a, *y = b;
    int order = x->sign * compare_ids(x->id, x->length, y->id, y->length);
    return order ? order : (x->place > y->place) - (x->place < y->place);
}

/* The bytes of an id: UTF-8, where surrogates stand for bytes that were none, or for themselves. */
static bool id_bytes(Mappings *all, PyObject *key, Tied *tied) {
    Py_ssize_t length;
    const char *text = PyUnicode_AsUTF8AndSize(key, &length);
    if (!text) {
        PyErr_Clear();
        PyObject *bytes = PyUnicode_AsEncodedString(key, "utf-8", "surrogateescape");
        if (!bytes) {
            PyErr_Clear();
            bytes = PyUnicode_AsEncodedString(key, "utf-8", "surrogatepass");
        }
        if (!bytes || PyList_Append(all->bytes, bytes) < 0) {
            Py_XDECREF(bytes);
            return false;
        }
        Py_DECREF(bytes); /* the list has it */
        text = PyBytes_AsString(bytes);
        length = PyBytes_Size(bytes);
    }
    tied->id = (const uint8_t *)text, tied->length = (size_t)length;
    return true;
}

/* Fill `tied` with the documents between two places, in the order of their ids. */
static bool sort_tie(Mappings *all, size_t low, size_t high) {
    if (!room(&all->tied, high - low, sizeof(Tied))) return false;
    Tied *tied = all->tied.data;
    const Keyed *ordered = all->ordered.data;
    for (size_t place = low; place < high; place++) {
        Tied *entry = tied + (place - low);
        entry->place = (uint32_t)place, entry->sign = all->ties ? 1 : -1;
        if (!id_bytes(all, ((Entry *)all->entries.data)[ordered[place].row].key, entry)) return false;
    }
    qsort(tied, high - low, sizeof *tied, compare_tied);
    return true;
}

/* Rank of a document among `tied`, which are those between its bounds; 0: an exception. */
static size_t rank_in_tie(Mappings *all, const Found *found) {
    const Tied *tied = all->tied.data;
    const Keyed *ordered = all->ordered.data;
    Tied sought = {.place = 0, .sign = all->ties ? 1 : -1};
    if (!id_bytes(all, found->key, &sought)) return 0;
    size_t low = 0, n = found->high - found->low;
    for (size_t high = n; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (compare_tied(tied + middle, &sought) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    /* Two strings may have the same bytes, where one holds surrogates. */
    for (; low < n; low++) {
        PyObject *key = ((Entry *)all->entries.data)[ordered[tied[low].place].row].key;
        int differs = key == found->key ? 0 : PyUnicode_Compare(key, found->key);
        if (differs == -1 && PyErr_Occurred()) return 0;
        if (!differs) return all->ties == 2 ? tied[low].place + 1 : found->low + low + 1;
    }
    PyErr_SetString(PyExc_RuntimeError, "a document of the dict is not among its ties");
    return 0;
}

static int compare_rows(const void *a, const void *b) {
    const JudgedRow *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Note the rank of each judged document that was found. */
static bool keep_found(Mappings *all, int32_t query, size_t n_found) {
    Found *found = all->found.data;
    if (n_found > 1) qsort(found, n_found, sizeof *found, compare_found);
    if (!room(&all->rows, all->n_rows + n_found, sizeof(JudgedRow))) return false;
    JudgedRow *rows = (JudgedRow *)all->rows.data + all->n_rows;
    for (size_t i = 0; i < n_found; i++) {
        size_t rank = found[i].low + 1;
        if (found[i].high - found[i].low > 1) {
            bool is_sorted = i && found[i - 1].low == found[i].low;
            if (!is_sorted && !sort_tie(all, found[i].low, found[i].high)) return false;
            rank = rank_in_tie(all, found + i);
            if (!rank) return false;
        }
        rows[i] = (JudgedRow){query, (int32_t)rank, found[i].item, (int32_t)found[i].low + 1, (int32_t)found[i].high};
    }
    if (n_found > 1) qsort(rows, n_found, sizeof *rows, compare_rows);
    all->n_rows += n_found;
    return true;
}

/* Rank a dict that is plain; *is_plain: whether it is. No other code runs meanwhile, so its objects stay alive. */
static bool rank_plain(Mappings *all, PyObject *scores, int32_t query, bool *is_plain) {
    Py_ssize_t n = PyDict_Size(scores);
    if (n < 0 || n > INT32_MAX || !room(&all->entries, (size_t)n, sizeof(Entry))) {
        if (n > INT32_MAX) PyErr_NoMemory();
        return false;
    }
    *is_plain = read_plain(all, scores);
    if (!*is_plain || PyList_Size(all->bad)) return true; /* after a bad score, only more of them are looked for */
    if (all->see && !gather_content(all, (size_t)n)) return false;
    Py_ssize_t n_tied = put_in_order(all, (size_t)n);
    Py_ssize_t n_found = n_tied < 0 ? -1 : find_judged(all, scores, PyTuple_GetItem(all->judged, query), (size_t)n);
    if (n_found < 0 || !keep_found(all, query, (size_t)n_found)) return false;
    if (!room(&all->answered, all->n_answered + 1, sizeof(AnsweredMapping))) return false;
    ((AnsweredMapping *)all->answered.data)[all->n_answered++] = (AnsweredMapping){query, (int32_t)n, (int32_t)n_tied};
    return !PyList_Size(all->bytes) || PyList_SetSlice(all->bytes, 0, PY_SSIZE_T_MAX, NULL) == 0;
}

/* Rank any dict. */
static bool rank_scores(Mappings *all, PyObject *scores, PyObject *query_id, int32_t query) {
    bool is_plain = true;
    size_t n_answered = all->n_answered;
    int collects = PyGC_Disable(); /* else what it finds might have its say */
    bool good = rank_plain(all, scores, query, &is_plain);
    if (collects) PyGC_Enable();
    if (!is_plain && good) {
        PyObject *plain = made_plain(all, scores, query_id);
        good = plain && rank_plain(all, plain, query, &is_plain);
        Py_XDECREF(plain);
    }
    if (!good || !all->see || all->n_answered == n_answered) return good;
    return tell(all, query);
}

static bool rank_all(Mappings *all) {
    Py_ssize_t n_queries = PyTuple_Size(all->query_ids);
    if (n_queries > INT32_MAX || PyTuple_Size(all->judged) != n_queries) {
        PyErr_SetString(PyExc_ValueError, "query_ids and judged differ in length");
        return false;
    }
    for (Py_ssize_t query = 0; query < n_queries; query++) {
        if (query % QUERIES_BETWEEN_SIGNALS == 0 && PyErr_CheckSignals() < 0) return false;
        PyObject *query_id = PyTuple_GetItem(all->query_ids, query);
        if (!PyTuple_Check(PyTuple_GetItem(all->judged, query))) {
            PyErr_Format(PyExc_TypeError, "the judged documents of query %R are no tuple", query_id);
            return false;
        }
        PyObject *scores = PyDict_GetItemWithError(all->run, query_id);
        if (!scores && PyErr_Occurred()) return false;
        if (!scores) continue;
        if (!PyDict_Check(scores)) {
            PyErr_Format(PyExc_TypeError, "the results of query %R are no dict", query_id);
            return false;
        }
        Py_INCREF(scores);
        bool ranked = rank_scores(all, scores, query_id, (int32_t)query);
        Py_DECREF(scores);
        if (!ranked) return false;
    }
    return true;
}

PyObject *rank_mappings(PyObject *Py_UNUSED(module), PyObject *args) {
    Mappings all = {0};
    const char *ties;
    int single;
    if (!PyArg_ParseTuple(args, "O!O!O!sp|O:rank_mappings", &PyDict_Type, &all.run, &PyTuple_Type, &all.query_ids,
                          &PyTuple_Type, &all.judged, &ties, &single, &all.see))
        return NULL;
    while (all.ties < 3 && strcmp(ties, TIES[all.ties])) all.ties++;
    if (all.ties == 3) return PyErr_Format(PyExc_ValueError, "ties is '%s'", ties);
    all.single = single;
    if (all.see == Py_None) all.see = NULL;
    all.bad = PyList_New(0);
    all.bytes = PyList_New(0);
    PyObject *result = NULL;
    if (all.bad && all.bytes && rank_all(&all)) {
        PyObject *rows = array_bytes(all.rows.data, all.n_rows, sizeof(JudgedRow));
        PyObject *answered = array_bytes(all.answered.data, all.n_answered, sizeof(AnsweredMapping));
        if (rows && answered) result = PyTuple_Pack(3, rows, answered, all.bad);
        Py_XDECREF(rows), Py_XDECREF(answered);
    }
    Py_XDECREF(all.bad), Py_XDECREF(all.bytes);
    Room *rooms[] = {&all.entries, &all.ordered, &all.spare, &all.found, &all.tied, &all.rows, &all.answered, &all.content};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) PyMem_Free(rooms[i]->data);
    return result;
}
