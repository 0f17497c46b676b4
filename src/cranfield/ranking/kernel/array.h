/* Growing arrays, and the allocator of the kernel. */
#ifndef CRANFIELD_ARRAY_H
#define CRANFIELD_ARRAY_H

#include <stdlib.h>

#include "text.h"

/* The fuzzer substitutes functions that fail. */
#ifndef SCAN_REALLOC
#define SCAN_REALLOC realloc
#define SCAN_FREE free
#endif

/* A growing array; the element type is the caller's. */
typedef struct {
    void *data;
    size_t used, size; /* elements */
} Array;

/* Allocate room for `more` elements; false when memory is short. */
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

#endif
