/* What the two halves of the scanner share: scan.c makes rows of lines, finish.c makes results of a query's rows. */
#ifndef CRANFIELD_SCANNER_H
#define CRANFIELD_SCANNER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l */
#endif
#include <locale.h>
#include <stdlib.h>
#if defined(__APPLE__) || defined(__FreeBSD__)
#include <xlocale.h>
#endif

#include "order.h"
#include "scan.h"

/* The fuzzer has allocations fail by naming functions of its own. */
#ifndef SCAN_REALLOC
#define SCAN_REALLOC realloc
#define SCAN_FREE free
#endif

/* An array that grows; its elements are what its user says they are. */
typedef struct {
    void *data;
    size_t used, size; /* elements */
} Array;

#define NO_RANK INT64_MIN

/* A result line of a judged query. */
typedef struct {
    uint64_t id;     /* place in the scanner's ids */
    uint32_t length; /* of the id */
    uint32_t hash;   /* of the id */
    double score;
    int64_t rank; /* the fourth column, or NO_RANK */
    uint64_t line;
} Row;

/* Rows of one query in a file of interleaved ones: a chain through `links`. */
typedef struct {
    size_t first, last, count;
} Chain;

typedef struct {
    uint32_t hash;
    uint32_t place; /* of the entry, counted from 1; 0 is empty */
} Slot;

struct Index {
    const Slice *query_ids, *doc_ids;
    const size_t *doc_start;
    const bool *whole;
    size_t n_queries;
    uint64_t seed[2];
    Slot *slots;
    size_t mask;
};

struct Scanner {
    const Index *index;
    ScanOptions options;
    ScanStatus status;
    locale_t locale;
    uint64_t line; /* number of the line looked at */
    uint64_t n_lines;
    Array carry; /* bytes of a line whose end has not come */

    /* the query of the last good line: its first eight bytes, and all of them with as many to spare */
    uint64_t query_word, query_mask;
    size_t query_length;
    Array query;
    int64_t current; /* its place in the index; negative: not judged, or none yet */
    bool begun;

    Array rows; /* Row: of the current query, or of all when gathering */
    Array ids;  /* bytes of their documents, with room for 16 more than are used */
    Array links, chains, met; /* size_t: next row of a row; Chain: of a query; size_t: queries as they were met */
    uint8_t *seen;            /* bit per query of the index */

    Array extra, extra_bytes, extra_slots; /* ExtraQuery, bytes, Slot: queries that are not judged */

    Array block, order, keys, sorted, spare, slots, found; /* work space of finish.c */

    Array judged, answered, hit_score, hit_length, hit_item, hit_ids; /* results: see ScanResult */
    Array problems, tag;
    bool has_tag;
};

static inline ScanStatus fail(Scanner *scanner) { return scanner->status = SCAN_NO_MEMORY; }

/* Make room for so many more elements; false when there is none. */
bool array_grow(Array *array, size_t more, size_t element);

static inline bool array_reserve(Array *array, size_t more, size_t element) {
    return LIKELY(array->size - array->used >= more) || array_grow(array, more, element);
}

#define ELEMENTS(array, type) ((type *)(array).data)

static inline bool append_bytes(Array *array, const void *bytes, size_t n, size_t spare) {
    if (n > SIZE_MAX - spare || !array_reserve(array, n + spare, 1)) return false;
    if (n) memcpy(ELEMENTS(*array, uint8_t) + array->used, bytes, n);
    array->used += n;
    return true;
}

/* Note a problem, with a copy of what it got; false when reading has to stop. */
bool note_problem(Scanner *scanner, const ScanProblem *problem);

/* Order the rows of one judged query, note its duplicates, and keep what measures need. */
bool finish_query(Scanner *scanner, size_t query, const Row *rows, size_t n_rows);

#endif
