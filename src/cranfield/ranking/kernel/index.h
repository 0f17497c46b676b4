/* The judged queries and documents that a scanner recognises; any number of scanners share one. */
#ifndef CRANFIELD_INDEX_H
#define CRANFIELD_INDEX_H

#include "array.h"

/* A slot of a hash table with open addressing. */
typedef struct {
    uint32_t hash;
    uint32_t place; /* of the entry, from 1; 0: empty */
} Slot;

typedef struct {
    const Slice *query_ids, *doc_ids;
    const size_t *doc_start;
    const bool *whole;
    size_t n_queries;
    uint64_t seed[2];
    Slot *slots;
    size_t mask;
} Index;

/* Copies nothing: ids, `doc_start` and `whole` have to outlive the index. The documents of query q are
 * doc_ids[doc_start[q] .. doc_start[q + 1]]; `whole` may be NULL. `seed` keys the hash tables. NULL when memory is
 * short, or when a query is repeated: then *twice is its place, else n_queries. */
Index *index_new(const Slice *query_ids, size_t n_queries, const Slice *doc_ids, const size_t *doc_start,
                 const bool *whole, const uint64_t seed[2], size_t *twice);
void index_free(Index *index);

/* Place of a query in the index; negative when it is absent. `hash` is the low half of its `hash_id`. */
int64_t index_find(const Index *index, Slice query, uint32_t hash);

#endif
