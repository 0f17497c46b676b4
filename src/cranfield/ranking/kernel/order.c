/* The sort by score: a stable radix sort. */
#include "order.h"

enum { FEW_KEYS = 64, KEY_BYTES = 8 };

static void sort_few(Keyed *entries, size_t n) {
    for (size_t i = 1; i < n; i++) {
        Keyed moving = entries[i];
        size_t j = i;
        for (; j && entries[j - 1].key > moving.key; j--) entries[j] = entries[j - 1];
        entries[j] = moving;
    }
}

/* Radix sort by bytes, lowest first; a byte that all keys share is skipped. */
void sort_keyed(Keyed *entries, Keyed *spare, size_t n) {
    if (n <= FEW_KEYS) {
        sort_few(entries, n);
        return;
    }
    uint32_t counts[KEY_BYTES][256] = {{0}};
    for (size_t i = 0; i < n; i++)
        for (int digit = 0; digit < KEY_BYTES; digit++) counts[digit][entries[i].key >> (8 * digit) & 0xff]++;
    Keyed *from = entries, *to = spare;
    for (int digit = 0; digit < KEY_BYTES; digit++) {
        uint32_t *places = counts[digit], place = 0;
        if (places[entries[0].key >> (8 * digit) & 0xff] == n) continue;
        for (int value = 0; value < 256; value++) {
            uint32_t count = places[value];
            places[value] = place;
            place += count;
        }
        for (size_t i = 0; i < n; i++) to[places[from[i].key >> (8 * digit) & 0xff]++] = from[i];
        Keyed *other = from;
        from = to, to = other;
    }
    if (from != entries) memcpy(entries, from, n * sizeof *entries);
}
