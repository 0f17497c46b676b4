/* The index of judged queries: a hash table. */
#include "index.h"

int64_t index_find(const Index *index, Slice query, uint32_t hash) {
    for (size_t at = hash & index->mask; index->slots[at].place; at = (at + 1) & index->mask) {
        size_t place = index->slots[at].place - 1;
        if (index->slots[at].hash == hash && same_bytes(index->query_ids[place], query.bytes, query.length))
            return (int64_t)place;
    }
    return -1;
}

Index *index_new(const Slice *query_ids, size_t n_queries, const Slice *doc_ids, const size_t *doc_start,
                 const bool *whole, const uint64_t seed[2], size_t *twice) {
    *twice = n_queries;
    if (n_queries > INT32_MAX) return NULL;
    Index *index = SCAN_REALLOC(NULL, sizeof *index);
    if (!index) return NULL;
    *index = (Index){query_ids, doc_ids, doc_start, whole, n_queries, {seed[0], seed[1]}, NULL, 0};
    size_t size = 16;
    while (size / 2 < n_queries) size *= 2;
    index->slots = SCAN_REALLOC(NULL, size * sizeof(Slot));
    index->mask = size - 1;
    if (!index->slots) return index_free(index), NULL;
    memset(index->slots, 0, size * sizeof(Slot));
    for (size_t query = 0; query < n_queries; query++) {
        uint32_t hash = (uint32_t)hash_id(query_ids[query].bytes, query_ids[query].length, seed);
        bool known = index_find(index, query_ids[query], hash) >= 0;
        if (known) *twice = query;
        if (known || doc_start[query + 1] - doc_start[query] > INT32_MAX) return index_free(index), NULL;
        size_t at = hash & index->mask;
        while (index->slots[at].place) at = (at + 1) & index->mask;
        index->slots[at] = (Slot){hash, (uint32_t)(query + 1)};
    }
    return index;
}

void index_free(Index *index) {
    if (!index) return;
    SCAN_FREE(index->slots);
    SCAN_FREE(index);
}
