/* What the fuzzers of the kernel share: an allocator that fails when it is told to, and a check that ends the run.
 * Included before the sources of the kernel, which it gives that allocator. */
#include <stdio.h>
#include <stdlib.h>

#define SCAN_REALLOC fuzz_realloc
#define SCAN_FREE free

#define REQUIRE(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

/* Allocations until one fails; negative: none does. */
static long allocations_left = -1;

static void *fuzz_realloc(void *data, size_t size) {
    if (allocations_left == 0) return NULL;
    if (allocations_left > 0) allocations_left--;
    return realloc(data, size);
}
