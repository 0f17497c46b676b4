/* Growing arrays: the reallocation. */
#include "array.h"

bool array_grow(Array *array, size_t more, size_t element) {
    size_t most = SIZE_MAX / 2 / element;
    if (more > most || array->used > most - more) return false;
    size_t size = array->used + more, doubled = array->size > most / 2 ? most : array->size * 2;
    if (size < doubled) size = doubled;
    if (size < 16) size = 16;
    void *data = SCAN_REALLOC(array->data, size * element);
    if (!data) return false;
    array->data = data, array->size = size;
    return true;
}
