/* Ranks by counting. */
#include "count.h"

enum { BLOCK = 64, NEAR_BITS = 16 };

static inline Slice text_at(Texts texts, size_t i) {
    return (Slice){texts.bytes + texts.offset[i], (size_t)(texts.offset[i + 1] - texts.offset[i])};
}

static inline uint64_t text_hash(Texts texts, size_t i, const uint64_t seed[2]) {
    Slice text = text_at(texts, i);
    bool readable = (size_t)texts.offset[i + 1] + 16 <= texts.length;
    return readable ? hash_readable(text.bytes, text.length, seed) : hash_id(text.bytes, text.length, seed);
}

/* The hash of a document within a query or a group; never 0, which is an empty slot. */
static inline uint64_t within(uint64_t hash, size_t place, const uint64_t seed[2]) {
    uint64_t mixed = folded(hash ^ seed[0], (place + 1) * 0x9e3779b97f4a7c15ULL ^ seed[1]);
    return mixed + !mixed;
}

static inline bool same_text(Texts texts, size_t i, Slice other) {
    return same_bytes(text_at(texts, i), other.bytes, other.length);
}

/* ---- tables ---- */

static size_t table_size(size_t n) {
    size_t size = 16;
    while (size / 2 < n) size *= 2;
    return size;
}

static void *zeroed(size_t n, size_t element) {
    void *data = SCAN_REALLOC(NULL, n * element);
    if (data) memset(data, 0, n * element);
    return data;
}

static int64_t find_query(const Counter *counter, Slice query, uint64_t hash) {
    for (size_t at = hash & counter->query_mask; counter->query_slots[at].place; at = (at + 1) & counter->query_mask) {
        Slot slot = counter->query_slots[at];
        if (slot.hash == (uint32_t)(hash >> 32) && same_text(counter->queries, slot.place - 1, query)) return slot.place - 1;
    }
    return -1;
}

static int64_t find_document(const Counter *counter, size_t query, Slice document, uint64_t hash) {
    size_t first = (size_t)counter->doc_start[query], last = (size_t)counter->doc_start[query + 1];
    for (size_t at = (hash >> 32) & counter->doc_mask; counter->doc_slots[at].place; at = (at + 1) & counter->doc_mask) {
        Slot slot = counter->doc_slots[at];
        size_t place = slot.place - 1;
        if (slot.hash == (uint32_t)(hash >> 32) && place >= first && place < last &&
            same_text(counter->documents, place, document))
            return (int64_t)place;
    }
    return -1;
}

static void add_slot(Slot *slots, size_t mask, size_t at, uint64_t hash, size_t place) {
    at &= mask;
    while (slots[at].place) at = (at + 1) & mask;
    slots[at] = (Slot){(uint32_t)(hash >> 32), (uint32_t)(place + 1)};
}

static bool add_queries(Counter *counter, size_t *twice) {
    for (size_t query = 0; query < counter->queries.n; query++) {
        uint64_t hash = text_hash(counter->queries, query, counter->seed);
        if (find_query(counter, text_at(counter->queries, query), hash) >= 0) return *twice = query, false;
        add_slot(counter->query_slots, counter->query_mask, hash, hash, query);
    }
    return true;
}

static bool add_documents(Counter *counter, size_t *twice) {
    for (size_t query = 0; query < counter->queries.n; query++)
        for (size_t i = (size_t)counter->doc_start[query]; i < (size_t)counter->doc_start[query + 1]; i++) {
            uint64_t hash = within(text_hash(counter->documents, i, counter->seed), query, counter->seed);
            if (find_document(counter, query, text_at(counter->documents, i), hash) >= 0) return *twice = query, false;
            add_slot(counter->doc_slots, counter->doc_mask, hash >> 32, hash, i);
            counter->near[(hash & counter->near_mask) >> 6] |= 1ULL << (hash & 63);
        }
    return true;
}

bool counter_init(Counter *counter, size_t *twice) {
    *twice = SIZE_MAX;
    size_t n_queries = table_size(counter->queries.n), n_documents = table_size(counter->documents.n);
    counter->query_mask = n_queries - 1, counter->doc_mask = n_documents - 1;
    counter->near_mask = n_documents * (NEAR_BITS / 2) - 1;
    counter->query_slots = zeroed(n_queries, sizeof(Slot));
    counter->doc_slots = zeroed(n_documents, sizeof(Slot));
    counter->near = zeroed(n_documents * (NEAR_BITS / 2) / 64, sizeof(uint64_t));
    if (!counter->query_slots || !counter->doc_slots || !counter->near) return false;
    return add_queries(counter, twice) && add_documents(counter, twice);
}

void counter_free(Counter *counter) {
    SCAN_FREE(counter->query_slots), SCAN_FREE(counter->doc_slots);
    SCAN_FREE(counter->near), SCAN_FREE(counter->suspects);
}

void counter_queries(const Counter *counter, Texts queries, int32_t *places) {
    for (size_t i = 0; i < queries.n; i++) {
        if (i && same_text(queries, i - 1, text_at(queries, i)))
            places[i] = places[i - 1];
        else
            places[i] = (int32_t)find_query(counter, text_at(queries, i), text_hash(queries, i, counter->seed));
    }
}

/* ---- the byte order of documents ---- */

static inline int compare_documents(const Counter *counter, size_t a, size_t b) {
    Slice x = text_at(counter->documents, a), y = text_at(counter->documents, b);
    return compare_ids(x.bytes, x.length, y.bytes, y.length);
}

/* Merge sort of n places from `places`; the result is in one of the two arrays. */
static int32_t *sort_documents(const Counter *counter, int32_t *places, int32_t *spare, size_t n) {
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t begin = 0; begin < n; begin += 2 * width) {
            size_t middle = begin + width < n ? begin + width : n, end = begin + 2 * width < n ? begin + 2 * width : n;
            size_t i = begin, j = middle;
            for (size_t at = begin; at < end; at++) {
                bool left = j == end || (i < middle && compare_documents(counter, (size_t)places[i], (size_t)places[j]) <= 0);
                spare[at] = left ? places[i++] : places[j++];
            }
        }
        int32_t *other = places;
        places = spare, spare = other;
    }
    return places;
}

bool counter_document_order(const Counter *counter, int32_t *order) {
    size_t most = 1;
    for (size_t query = 0; query < counter->queries.n; query++) {
        size_t n = (size_t)(counter->doc_start[query + 1] - counter->doc_start[query]);
        if (n > most) most = n;
    }
    int32_t *places = zeroed(2 * most, sizeof *places);
    if (!places) return false;
    for (size_t query = 0; query < counter->queries.n; query++) {
        size_t first = (size_t)counter->doc_start[query], n = (size_t)counter->doc_start[query + 1] - first;
        for (size_t i = 0; i < n; i++) places[i] = (int32_t)(first + i);
        const int32_t *sorted = sort_documents(counter, places, places + most, n);
        for (size_t i = 0; i < n; i++) order[sorted[i]] = (int32_t)i;
    }
    SCAN_FREE(places);
    return true;
}

/* ---- the first time: judged rows, and rows that may be repeated ---- */

/* The hashes of a block of rows: by query, and by group. */
typedef struct {
    uint64_t by_query[BLOCK], by_group[BLOCK];
} Hashes;

static inline uint64_t *filter_word(const Counter *counter, uint64_t hash) {
    return counter->filter + ((hash >> 32) * counter->filter_words >> 32);
}

static inline uint64_t filter_bits(uint64_t hash) {
    return 1ULL << (hash & 63) | 1ULL << (hash >> 6 & 63) | 1ULL << (hash >> 12 & 63);
}

static void hash_block(const Counter *counter, const Rows *rows, size_t first, size_t n, Hashes *hashes) {
    size_t n_queries = counter->queries.n;
    for (size_t i = 0; i < n; i++) {
        int32_t group = rows->group[first + i];
        if (group < 0) continue;
        size_t query = (size_t)group < n_queries ? (size_t)group : (size_t)group % n_queries;
        uint64_t hash = text_hash(rows->documents, first + i, counter->seed);
        hashes->by_query[i] = within(hash, query, counter->seed);
        hashes->by_group[i] = query == (size_t)group ? hashes->by_query[i] : within(hash, (size_t)group, counter->seed);
        __builtin_prefetch(counter->near + ((hashes->by_query[i] & counter->near_mask) >> 6));
        if (counter->filter_words) __builtin_prefetch(filter_word(counter, hashes->by_group[i]), 1);
    }
}

/* Whether a hash was met before; from now on it was. */
static inline bool met(const Counter *counter, uint64_t hash) {
    uint64_t *word = filter_word(counter, hash), bits = filter_bits(hash);
    return (__atomic_fetch_or(word, bits, __ATOMIC_RELAXED) & bits) == bits;
}

static bool find_row(const Counter *counter, const Rows *rows, size_t row, uint64_t hash, Array *found) {
    if (LIKELY(!(counter->near[(hash & counter->near_mask) >> 6] >> (hash & 63) & 1))) return true;
    int32_t group = rows->group[row];
    size_t query = (size_t)group % counter->queries.n;
    int64_t judgment = find_document(counter, query, text_at(rows->documents, row), hash);
    if (judgment < 0) return true;
    if (!array_reserve(found, 1, sizeof(FoundRow))) return false;
    ELEMENTS(*found, FoundRow)[found->used++] =
        (FoundRow){rows->key[row], rows->ordinal + row, group, (int32_t)judgment};
    return true;
}

bool counter_find(const Counter *counter, const Rows *rows, Array *found, Array *repeated) {
    Hashes hashes;
    for (size_t first = 0; first < rows->n; first += BLOCK) {
        size_t n = rows->n - first < BLOCK ? rows->n - first : BLOCK;
        hash_block(counter, rows, first, n, &hashes);
        for (size_t i = 0; i < n; i++) {
            if (rows->group[first + i] < 0) continue;
            if (!find_row(counter, rows, first + i, hashes.by_query[i], found)) return false;
            if (!counter->filter_words || LIKELY(!met(counter, hashes.by_group[i]))) continue;
            if (!array_reserve(repeated, 1, sizeof(uint64_t))) return false;
            ELEMENTS(*repeated, uint64_t)[repeated->used++] = hashes.by_group[i];
        }
    }
    return true;
}

/* ---- the second time: every row at its place ---- */

bool counter_suspect(Counter *counter, const uint64_t *hashes, size_t n) {
    SCAN_FREE(counter->suspects);
    counter->suspects = NULL, counter->suspect_mask = 0;
    if (!n) return true;
    size_t size = table_size(4 * n); /* an eighth full: most rows meet an empty slot at once */
    counter->suspects = zeroed(size, sizeof(uint64_t));
    if (!counter->suspects) return false;
    counter->suspect_mask = size - 1;
    for (size_t i = 0; i < n; i++) {
        size_t at = hashes[i] & counter->suspect_mask;
        while (counter->suspects[at] && counter->suspects[at] != hashes[i]) at = (at + 1) & counter->suspect_mask;
        counter->suspects[at] = hashes[i];
    }
    return true;
}

static inline bool is_suspect(const Counter *counter, uint64_t hash) {
    for (size_t at = hash & counter->suspect_mask; counter->suspects[at]; at = (at + 1) & counter->suspect_mask)
        if (counter->suspects[at] == hash) return true;
    return false;
}

/* Whether a judged row stands before a row of the same key. */
static bool stands_before(const Counter *counter, const JudgedRows *judged, size_t i, const Rows *rows, size_t row) {
    if (counter->ties == TIES_GIVEN) return judged->ordinal[i] < rows->ordinal + row;
    Slice a = text_at(counter->documents, (size_t)judged->judgment[i]), b = text_at(rows->documents, row);
    int order = compare_ids(a.bytes, a.length, b.bytes, b.length);
    return counter->ties == TIES_DESCENDING ? order > 0 : order < 0;
}

/* The first of the places from first to last whose key is at most (below: less than) the given one. */
static inline size_t bound(const double *key, size_t first, size_t last, double given, bool below) {
    while (first < last) {
        size_t middle = first + (last - first) / 2;
        bool higher = below ? key[middle] >= given : key[middle] > given;
        if (higher) first = middle + 1;
        else last = middle;
    }
    return first;
}

static void count_row(const Counter *counter, const Rows *rows, size_t row, const JudgedRows *judged, int32_t delta) {
    size_t group = (size_t)rows->group[row];
    size_t first = (size_t)judged->start[group], last = (size_t)judged->start[group + 1];
    double key = rows->key[row];
    size_t place = bound(judged->key, first, last, key, false), kind = 0;
    if (place < last && judged->key[place] == key) {
        size_t end = bound(judged->key, place, last, key, true);
        size_t low = place, high = end;
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (stands_before(counter, judged, middle, rows, row)) low = middle + 1;
            else high = middle;
        }
        place = low < end ? low : end - 1;
        kind = low < end ? 1 : 2;
    }
    __atomic_fetch_add(judged->counts + 3 * (place + group) + kind, delta, __ATOMIC_RELAXED);
}

static bool add_suspect(const Rows *rows, size_t row, uint64_t hash, Array *suspects) {
    if (!array_reserve(suspects, 1, sizeof(SuspectRow))) return false;
    ELEMENTS(*suspects, SuspectRow)[suspects->used++] =
        (SuspectRow){hash, rows->ordinal + row, rows->key[row], rows->group[row], (int32_t)row};
    return true;
}

bool counter_count(const Counter *counter, const Rows *rows, const JudgedRows *judged, int32_t delta, Array *suspects) {
    for (size_t row = 0; row < rows->n; row++) {
        int32_t group = rows->group[row];
        if (group < 0) continue;
        if (row + 16 < rows->n && rows->group[row + 16] >= 0) {
            int64_t ahead = judged->start[rows->group[row + 16]];
            __builtin_prefetch(judged->key + ahead);
            __builtin_prefetch(judged->counts + 3 * (ahead + rows->group[row + 16]), 1);
        }
        count_row(counter, rows, row, judged, delta);
        if (!counter->suspects) continue;
        uint64_t hash = within(text_hash(rows->documents, row, counter->seed), (size_t)group, counter->seed);
        if (UNLIKELY(is_suspect(counter, hash)) && !add_suspect(rows, row, hash, suspects)) return false;
    }
    return true;
}
