/* The order of results by score, in files and in mappings. */
#ifndef CRANFIELD_ORDER_H
#define CRANFIELD_ORDER_H

#include "text.h"

typedef struct {
    uint64_t key;
    uint32_t row;
} Keyed;

/* An unsigned key that sorts larger scores first: the bits of the double, rearranged. */
static inline uint64_t score_key(double score, bool single) {
    if (single) score = (double)(float)score;
    score += 0.0; /* -0 equals 0 */
    uint64_t bits;
    memcpy(&bits, &score, 8);
    uint64_t ascending = bits ^ ((uint64_t)((int64_t)bits >> 63) | (1ULL << 63));
    return ~ascending;
}

/* Stable sort by key; n is less than 2**32. */
void sort_keyed(Keyed *entries, Keyed *spare, size_t n);

#endif
