/* How scores order results: what files and mappings share. */
#ifndef CRANFIELD_ORDER_H
#define CRANFIELD_ORDER_H

#include "text.h"

typedef struct {
    uint64_t key;
    uint32_t row;
} Keyed;

/* A number that orders as scores do, larger first: the bits of a double, turned so that whole numbers compare alike. */
static inline uint64_t score_key(double score, bool single) {
    if (single) score = (double)(float)score;
    score += 0.0; /* -0 and 0 are one score */
    uint64_t bits;
    memcpy(&bits, &score, 8);
    uint64_t ascending = bits ^ ((uint64_t)((int64_t)bits >> 63) | (1ULL << 63));
    return ~ascending;
}

/* Sort by key, rows of equal keys as they stand; there are fewer than 2**32. */
void sort_keyed(Keyed *entries, Keyed *spare, size_t n);

#endif
