/* Ranks by counting: how many rows of a query stand above each judged one, from rows in any order, seen twice.
 *
 * The first time the judged rows are found; the caller sorts them by group, key and tie. The second time every row is
 * counted at its place among them. A group is one query of one system: group % n_queries is the query. */
#ifndef CRANFIELD_COUNT_H
#define CRANFIELD_COUNT_H

#include "array.h"
#include "index.h"
#include "types.h"

/* Text as Arrow has it: value i is bytes[offset[i] .. offset[i + 1]]. */
typedef struct {
    const int64_t *offset;
    const uint8_t *bytes;
    size_t n, length; /* values; bytes */
} Texts;

/* A row whose document is judged. */
typedef struct {
    double key;
    uint64_t ordinal;
    int32_t group, judgment;
} FoundRow;

/* A row that may repeat another: the hash of its group and document was met twice. */
typedef struct {
    uint64_t hash, ordinal;
    double key;
    int32_t group, row;
} SuspectRow;

/* Rows to look at; a larger key is better. */
typedef struct {
    const int32_t *group; /* negative: not looked at */
    Texts documents;
    const double *key;
    uint64_t ordinal; /* of the first row */
    size_t n;
} Rows;

/* The judged rows of all groups, sorted by group, then in the order of the results, and what is counted at them. */
typedef struct {
    const int64_t *start; /* [groups + 1] */
    const double *key;
    const int32_t *judgment;
    const uint64_t *ordinal;
    /* Group g counts in places start[g] + g and on, one more than it has judged rows. A place has three numbers: rows
     * whose key lies between those of the judged rows around it; rows that tie with the judged row of this place and
     * stand before the next of the same key, itself among them; rows that tie with it and stand after the last such. */
    int32_t *counts;
    size_t n_groups;
} JudgedRows;

typedef struct {
    Texts queries, documents; /* of the judgments; documents of query q are doc_start[q] .. doc_start[q + 1] */
    const int64_t *doc_start;
    Ties ties;
    uint64_t seed[2];
    Slot *query_slots, *doc_slots;
    size_t query_mask, doc_mask;
    uint64_t *near; /* a bit for each judged document, by its hash */
    size_t near_mask;
    uint64_t *filter; /* the caller's: bits of every row that was met */
    size_t filter_words;
    uint64_t *suspects; /* a table of hashes; 0 is an empty slot */
    size_t suspect_mask;
} Counter;

/* Makes the tables; false when memory is short, or a query or a document of a query is repeated: then *twice is its
 * place, else SIZE_MAX. */
bool counter_init(Counter *counter, size_t *twice);
void counter_free(Counter *counter);

/* The place of each query, -1 where it is absent. */
void counter_queries(const Counter *counter, Texts queries, int32_t *places);

/* Rank of each document within its query in byte order, from 0; false when memory is short. */
bool counter_document_order(const Counter *counter, int32_t *order);

/* Appends FoundRow and the hashes (uint64_t) that were met before; false when memory is short. May run in several threads. */
bool counter_find(const Counter *counter, const Rows *rows, Array *found, Array *repeated);

/* Takes the hashes whose rows `counter_count` reports. */
bool counter_suspect(Counter *counter, const uint64_t *hashes, size_t n);

/* Adds `delta` at the place of every row, and appends SuspectRow; false when memory is short. May run in several threads. */
bool counter_count(const Counter *counter, const Rows *rows, const JudgedRows *judged, int32_t delta, Array *suspects);

#endif
