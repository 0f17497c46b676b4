/* The state of a scanner: scan.c turns lines into its rows, finish.c turns the rows of a query into results. */
#ifndef CRANFIELD_SCANNER_H
#define CRANFIELD_SCANNER_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strtod_l */
#endif
#include <locale.h>
#if defined(__APPLE__) || defined(__FreeBSD__)
#include <xlocale.h>
#endif

#include "index.h"
#include "types.h"

/* A result line of a judged query. */
typedef struct {
    uint64_t id;     /* place in the scanner's ids */
    uint32_t length; /* of the id */
    uint32_t hash;   /* of the id */
    double score;
    int64_t rank; /* the fourth column, or NO_RANK */
    uint64_t line;
} Row;

/* The rows of one query of an interleaved file: a chain through `links`. */
typedef struct {
    size_t first, last, count;
} Chain;

typedef struct {
    const Index *index;
    ScanOptions options;
    ScanStatus status;
    locale_t locale;
    uint64_t line; /* number of the current line */
    uint64_t n_lines;
    Array carry; /* the beginning of an unfinished line */

    /* the query of the last valid line: its first eight bytes, and all of them with spare room */
    uint64_t query_word, query_mask;
    size_t query_length;
    Array query;
    int64_t current; /* its place in the index; negative: not judged, or none yet */
    bool begun;

    Array rows; /* Row: of the current query, or of all when gathering */
    Array ids;  /* bytes of their documents, with room for 16 more */
    Array links, chains, met; /* size_t: next row of a row; Chain: of a query; size_t: queries in file order */
    uint8_t *seen;            /* bit per query of the index */

    Array extra, extra_bytes, extra_slots; /* ExtraQuery, bytes, Slot: queries that are not judged */

    Array block, order, keys, sorted, spare, slots, found; /* work space of finish.c */

    Array judged, answered, hit_score, hit_length, hit_item, hit_ids; /* results: see ScanResult */
    Array problems, tag;
    bool has_tag;
} Scanner;

static inline ScanStatus fail(Scanner *scanner) { return scanner->status = SCAN_NO_MEMORY; }

/* The index has to outlive the scanner. NULL when memory is short. */
Scanner *scanner_new(const Index *index, const ScanOptions *options);
/* The results so far; valid until the next call. */
void scanner_result(const Scanner *scanner, ScanResult *result);
void scanner_free(Scanner *scanner);

/* Record a problem, with a copy of what it got; false when reading has to stop. */
bool note_problem(Scanner *scanner, const ScanProblem *problem);

#endif
