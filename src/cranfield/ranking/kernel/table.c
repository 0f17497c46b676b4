/* Runs that are arrays of whole numbers, a row a query: where the judged documents stand. No Python object is read. */
#include "binding.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "text.h"

const char RANK_TABLE_DOC[] =
    "rank_table(ids, scores, single, width, starts, judged, drop)\n--\n\n"
    "Find the judged documents of each row, in the order of its columns. Threads run meanwhile.\n\n"
    "Args:\n"
    "    ids: int64[N, K], best first; -1 is padding, which ends a row.\n"
    "    scores: float32[N, K] or float64[N, K]; None: the order is all that there is.\n"
    "    single: scores are compared as 32-bit floats.\n"
    "    width: K.\n"
    "    starts: int64[N + 1], where the judged documents of each row begin.\n"
    "    judged: int64[J], the judged documents; a negative one is in no row.\n"
    "    drop: a document that a row has again is dropped; otherwise it is a problem.\n\n"
    "Returns:\n"
    "    judged rows (int32[F, 3]: row, rank, item; by row, then rank), rows (int32[N, 3]: n_returned, n_duplicates,\n"
    "    order), and problems (int32[P, 4]: kind, row, column, other column), 20 at most. Orders: FALLING, TIED, LEVEL,\n"
    "    MIXED, RISING. Kinds: NEGATIVE_ID, AFTER_PADDING, REPEATED, NOT_FINITE.";

enum { SHOWN_PROBLEMS = 20 };
enum { FALLING, TIED, LEVEL, MIXED, RISING };
enum { NEGATIVE_ID, AFTER_PADDING, REPEATED, NOT_FINITE };

typedef struct {
    int32_t row, rank, item;
} FoundRow;

typedef struct {
    int32_t n_returned, n_duplicates, order;
} RowCounts;

typedef struct {
    int32_t kind, row, column, other;
} TableProblem;

/* A document of the row in hand: judged, returned, or both. */
typedef struct {
    int64_t id;
    uint32_t row;  /* row + 1 that it is of; other entries are free */
    int32_t item;  /* -1: not judged */
    int32_t place; /* first column that has it; -1: not returned so far */
} Slot;

typedef struct {
    const int64_t *ids, *starts, *judged;
    const void *scores;
    bool is_float, single, drop;
    size_t n_rows, width;
    Slot *slots;
    size_t mask;
    int shift;
    FoundRow *found;
    size_t n_found, room;
    RowCounts *counts;
    TableProblem problems[SHOWN_PROBLEMS];
    size_t n_problems;
} Table;

static inline double score_at(const Table *table, size_t at) {
    double score = table->is_float ? (double)((const float *)table->scores)[at] : ((const double *)table->scores)[at];
    return table->single ? (double)(float)score : score;
}

static void note(Table *table, int kind, size_t row, size_t column, int32_t other) {
    if (table->n_problems == SHOWN_PROBLEMS) return;
    table->problems[table->n_problems++] = (TableProblem){kind, (int32_t)row, (int32_t)column, other};
}

/* The slot of a document: its own, or the free one that it would take. */
static inline Slot *slot_of(const Table *table, int64_t id, uint32_t stamp) {
    size_t at = (size_t)(((uint64_t)id * 0x9E3779B97F4A7C15ULL) >> table->shift);
    while (table->slots[at].row == stamp && table->slots[at].id != id) at = (at + 1) & table->mask;
    return table->slots + at;
}

static inline int order_of(bool falls, bool rises, bool ties) {
    return rises ? (falls ? MIXED : RISING) : ties ? (falls ? TIED : LEVEL) : FALLING;
}

static bool rank_row(Table *table, size_t row) {
    const int64_t *ids = table->ids + row * table->width;
    const uint32_t stamp = (uint32_t)row + 1;
    int64_t first = table->starts[row], n_judged = table->starts[row + 1] - first;
    for (int64_t item = 0; item < n_judged; item++) {
        int64_t id = table->judged[first + item];
        if (id < 0) continue;
        Slot *slot = slot_of(table, id, stamp);
        if (slot->row != stamp) *slot = (Slot){id, stamp, (int32_t)item, -1};
    }
    int32_t n_returned = 0, n_duplicates = 0;
    bool padded = false, falls = false, rises = false, ties = false;
    double before = NAN;
    for (size_t column = 0; column < table->width; column++) {
        int64_t id = ids[column];
        if (UNLIKELY(id < 0)) {
            if (id != -1) note(table, NEGATIVE_ID, row, column, -1);
            padded = true;
            continue;
        }
        if (UNLIKELY(padded)) {
            note(table, AFTER_PADDING, row, column, -1);
            break;
        }
        if (table->scores) {
            double score = score_at(table, row * table->width + column);
            if (UNLIKELY(!isfinite(score))) {
                note(table, NOT_FINITE, row, column, -1);
                break;
            }
            falls |= score < before, rises |= score > before, ties |= score == before;
            before = score;
        }
        Slot *slot = slot_of(table, id, stamp);
        if (slot->row != stamp) *slot = (Slot){id, stamp, -1, -1};
        if (UNLIKELY(slot->place >= 0)) {
            n_duplicates++;
            if (!table->drop) note(table, REPEATED, row, column, slot->place);
            continue;
        }
        slot->place = (int32_t)column;
        n_returned++;
        if (slot->item < 0) continue;
        if (UNLIKELY(table->n_found == table->room)) {
            size_t room = table->room ? table->room * 2 : 1024;
            FoundRow *more = realloc(table->found, room * sizeof *more);
            if (!more) return false;
            table->found = more, table->room = room;
        }
        table->found[table->n_found++] = (FoundRow){(int32_t)row, n_returned, slot->item};
    }
    table->counts[row] = (RowCounts){n_returned, n_duplicates, order_of(falls, rises, ties)};
    return true;
}

static bool rank_rows(Table *table) {
    size_t most = 0, n_slots = 16;
    for (size_t row = 0; row < table->n_rows; row++) {
        size_t n = (size_t)(table->starts[row + 1] - table->starts[row]);
        if (n > most) most = n;
    }
    int bits = 4;
    while (n_slots < 2 * (most + table->width)) n_slots *= 2, bits++;
    table->slots = calloc(n_slots, sizeof *table->slots);
    table->counts = malloc((table->n_rows ? table->n_rows : 1) * sizeof *table->counts);
    if (!table->slots || !table->counts) return false;
    table->mask = n_slots - 1, table->shift = 64 - bits;
    for (size_t row = 0; row < table->n_rows; row++)
        if (!rank_row(table, row)) return false;
    return true;
}

/* The numbers of a buffer; what is not whole elements is refused. */
static bool elements(PyObject *object, Py_buffer *view, size_t element, size_t *n) {
    if (PyObject_GetBuffer(object, view, PyBUF_SIMPLE) < 0) return false;
    *n = (size_t)view->len / element;
    if ((size_t)view->len % element == 0) return true;
    PyErr_SetString(PyExc_ValueError, "a buffer holds a part of an element");
    return false;
}

static bool fits(Table *table, size_t n_ids, size_t n_starts, size_t n_judged) {
    if (!table->width || n_ids % table->width || n_ids / table->width + 1 != n_starts) return false;
    table->n_rows = n_ids / table->width;
    if (table->n_rows >= INT32_MAX || table->width >= INT32_MAX / 4) return false;
    for (size_t row = 0; row < table->n_rows; row++)
        if (table->starts[row] > table->starts[row + 1] || table->starts[row + 1] - table->starts[row] > INT32_MAX / 4)
            return false;
    return table->starts[0] >= 0 && (size_t)table->starts[table->n_rows] <= n_judged;
}

PyObject *rank_table(PyObject *Py_UNUSED(module), PyObject *args) {
    PyObject *objects[4], *result = NULL;
    Py_buffer views[4] = {{0}};
    Table table = {0};
    Py_ssize_t width;
    int single, drop;
    if (!PyArg_ParseTuple(args, "OOpnOOp:rank_table", &objects[0], &objects[1], &single, &width, &objects[2],
                          &objects[3], &drop))
        return NULL;
    size_t counts[4] = {0};
    bool has_scores = !Py_IsNone(objects[1]), good = true, ranked = false;
    for (int i = 0; i < 4 && good; i++)
        if (i != 1 || has_scores) good = elements(objects[i], views + i, i == 1 ? 4 : 8, counts + i);
    table.ids = views[0].buf, table.scores = views[1].buf, table.starts = views[2].buf, table.judged = views[3].buf;
    table.width = width > 0 ? (size_t)width : 0, table.single = single, table.drop = drop;
    if (good && has_scores) {
        table.is_float = counts[1] == counts[0];
        good = table.is_float || counts[1] == 2 * counts[0];
    }
    if (good && !fits(&table, counts[0], counts[2], counts[3])) good = false;
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        ranked = rank_rows(&table);
        Py_END_ALLOW_THREADS
    }
    if (!good && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the arrays do not fit together");
    if (good && !ranked) PyErr_NoMemory();
    if (ranked) {
        PyObject *found = array_bytes(table.found, table.n_found, sizeof(FoundRow));
        PyObject *rows = array_bytes(table.counts, table.n_rows, sizeof(RowCounts));
        PyObject *problems = array_bytes(table.problems, table.n_problems, sizeof(TableProblem));
        if (found && rows && problems) result = PyTuple_Pack(3, found, rows, problems);
        Py_XDECREF(found), Py_XDECREF(rows), Py_XDECREF(problems);
    }
    for (int i = 0; i < 4; i++)
        if (views[i].obj) PyBuffer_Release(views + i);
    free(table.slots), free(table.found), free(table.counts);
    return result;
}
