/* From the rows of one query to ranks: order, duplicates, depth, and the judged documents. */
#include "finish.h"

#include "order.h"

enum { SHORT_RUN = 12 };

static inline uint64_t rank_key(int64_t rank) { return (uint64_t)rank ^ (1ULL << 63); }

/* Sort key of tied rows: the id, ascending (sign 1) or descending (-1). */
typedef struct {
    const Row *rows;
    const uint8_t *ids;
    int sign;
} IdOrder;

static inline bool comes_after(const IdOrder *by, uint32_t a, uint32_t b) {
    const Row *x = by->rows + a, *y = by->rows + b;
    return by->sign * compare_ids(by->ids + x->id, x->length, by->ids + y->id, y->length) > 0;
}

/* Stable merge sort of tied rows by id. */
static void sort_tie(const IdOrder *by, uint32_t *order, uint32_t *spare, size_t n) {
    if (n <= SHORT_RUN) {
        for (size_t i = 1; i < n; i++) {
            uint32_t moving = order[i];
            size_t j = i;
            for (; j && comes_after(by, order[j - 1], moving); j--) order[j] = order[j - 1];
            order[j] = moving;
        }
        return;
    }
    size_t middle = n / 2;
    sort_tie(by, order, spare, middle);
    sort_tie(by, order + middle, spare, n - middle);
    memcpy(spare, order, middle * sizeof *spare);
    size_t a = 0, b = middle, out = 0;
    while (a < middle) order[out++] = b < n && comes_after(by, spare[a], order[b]) ? order[b++] : spare[a++];
}

/* Fill `order` with the rows by rank and `keys` with their sort keys; n_tied: rows that tie with the one before. */
static bool put_in_order(Scanner *scanner, const Row *rows, size_t n, size_t *n_tied, bool *misranked) {
    const ScanOptions *options = &scanner->options;
    uint32_t *order = scanner->order.data;
    uint64_t *keys = scanner->keys.data;
    bool by_score = options->order == ORDER_SCORE, in_order = true;
    *n_tied = 0, *misranked = false;
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i, keys[i] = i;
    if (options->order == ORDER_GIVEN) return true;
    for (size_t i = 0; i < n; i++) {
        keys[i] = by_score ? score_key(rows[i].score, options->single) : rank_key(rows[i].rank);
        in_order &= !i || keys[i - 1] <= keys[i];
        *n_tied += i && keys[i - 1] == keys[i];
    }
    if (!in_order) {
        scanner->sorted.used = scanner->spare.used = 0;
        if (!array_reserve(&scanner->sorted, n, sizeof(Keyed)) || !array_reserve(&scanner->spare, n, sizeof(Keyed)))
            return fail(scanner), false;
        Keyed *entries = scanner->sorted.data;
        for (size_t i = 0; i < n; i++) entries[i] = (Keyed){keys[i], (uint32_t)i};
        sort_keyed(entries, scanner->spare.data, n);
        *n_tied = 0;
        for (size_t i = 0; i < n; i++) {
            keys[i] = entries[i].key, order[i] = entries[i].row;
            *n_tied += i && keys[i - 1] == keys[i];
        }
    }
    if (!by_score) {
        *n_tied = 0;
        return true;
    }
    if (*n_tied && options->ties != TIES_GIVEN) {
        scanner->spare.used = 0;
        if (!array_reserve(&scanner->spare, n, sizeof(Keyed))) return fail(scanner), false;
        IdOrder by = {rows, scanner->ids.data, options->ties == TIES_DESCENDING ? -1 : 1};
        for (size_t start = 0, end; start < n; start = end) {
            for (end = start + 1; end < n && keys[end] == keys[start];) end++;
            if (end - start > 1) sort_tie(&by, order + start, scanner->spare.data, end - start);
        }
    }
    /* Within a tie the rank column is free; `highest` is of the scores before this one. */
    bool down = false, ranked = true;
    int64_t highest = NO_RANK, of_this_score = NO_RANK;
    for (size_t i = 0; i < n; i++) {
        int64_t rank = rows[order[i]].rank;
        if (i && keys[i] != keys[i - 1]) highest = of_this_score;
        ranked &= rank != NO_RANK;
        down |= rank < highest;
        if (rank > of_this_score) of_this_score = rank;
    }
    *misranked = ranked && down;
    return true;
}

static bool same_id(const Scanner *scanner, const Row *a, const uint8_t *id, size_t length) {
    return a->length == length && (!length || !memcmp(ELEMENTS(scanner->ids, uint8_t) + a->id, id, length));
}

/* The slot of an id in the table, empty where the id is absent. */
static inline Slot *slot_of(const Scanner *scanner, const Row *rows, size_t mask, const uint8_t *id, size_t length,
                            uint32_t hash) {
    Slot *slots = scanner->slots.data;
    const uint32_t *order = scanner->order.data;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
        if (!slots[at].place) return slots + at;
        if (slots[at].hash == hash && same_id(scanner, rows + order[slots[at].place - 1], id, length))
            return slots + at;
    }
}

/* Put the ids in a hash table, by rank, and remove repeated ones from the order; `n` becomes the number left. */
static bool drop_duplicates(Scanner *scanner, size_t query, const Row *rows, size_t *n, size_t *mask) {
    size_t size = 16, n_rows = *n, kept = 0;
    while (size / 2 < n_rows) size *= 2;
    scanner->slots.used = 0;
    if (!array_reserve(&scanner->slots, size, sizeof(Slot))) return fail(scanner), false;
    memset(scanner->slots.data, 0, size * sizeof(Slot));
    *mask = size - 1;
    uint32_t *order = scanner->order.data;
    uint64_t *keys = scanner->keys.data;
    const uint8_t *ids = scanner->ids.data;
    for (size_t i = 0; i < n_rows; i++) {
        const Row *row = rows + order[i];
        Slot *slot = slot_of(scanner, rows, *mask, ids + row->id, row->length, row->hash);
        if (LIKELY(!slot->place)) {
            order[kept] = order[i], keys[kept] = keys[i];
            *slot = (Slot){row->hash, (uint32_t)++kept};
            continue;
        }
        if (scanner->options.keep_first) continue;
        uint64_t other = rows[order[slot->place - 1]].line;
        ScanProblem problem = {
            .code = PROBLEM_DUPLICATE,
            .line = row->line > other ? row->line : other,
            .other_line = row->line > other ? other : row->line,
            .got = {ids + row->id, row->length},
            .query = scanner->index->query_ids[query],
        };
        if (!note_problem(scanner, &problem)) return false;
    }
    *n = kept;
    return true;
}

static int compare_found(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The judged documents among the first `n_kept` results, as rank << 32 | item, by rank. */
static bool find_judged(Scanner *scanner, size_t query, const Row *rows, size_t n_kept, size_t mask) {
    const Index *index = scanner->index;
    size_t first = index->doc_start[query], n_docs = index->doc_start[query + 1] - first;
    scanner->found.used = 0;
    for (size_t item = 0; item < n_docs; item++) {
        Slice id = index->doc_ids[first + item];
        uint32_t hash = (uint32_t)hash_id(id.bytes, id.length, index->seed);
        size_t rank = slot_of(scanner, rows, mask, id.bytes, id.length, hash)->place;
        if (!rank || rank > n_kept) continue;
        if (!array_reserve(&scanner->found, 1, sizeof(uint64_t))) return fail(scanner), false;
        ELEMENTS(scanner->found, uint64_t)[scanner->found.used++] = (uint64_t)rank << 32 | (uint32_t)item;
    }
    if (scanner->found.used > 1) qsort(scanner->found.data, scanner->found.used, sizeof(uint64_t), compare_found);
    return true;
}

/* Append the judged rows, with the bounds of the equal keys around each. */
static bool keep_judged(Scanner *scanner, size_t query, size_t n, bool ties) {
    const uint64_t *keys = scanner->keys.data, *found = scanner->found.data;
    size_t n_found = scanner->found.used, low = 0, high = 0;
    if (!n_found) return true;
    if (!array_reserve(&scanner->judged, n_found, sizeof(JudgedRow))) return fail(scanner), false;
    JudgedRow *rows = ELEMENTS(scanner->judged, JudgedRow) + scanner->judged.used;
    for (size_t i = 0; i < n_found; i++) {
        size_t rank = (size_t)(found[i] >> 32), place = rank - 1;
        if (!ties) {
            low = place, high = rank;
        } else if (place >= high) {
            size_t bound = high;
            for (low = place; low > bound && keys[low - 1] == keys[place];) low--;
            for (high = rank; high < n && keys[high] == keys[place];) high++;
        }
        rows[i] = (JudgedRow){(int32_t)query, (int32_t)rank, (int32_t)(uint32_t)found[i], (int32_t)(low + 1),
                              (int32_t)high};
    }
    scanner->judged.used += n_found;
    return true;
}

static bool keep_hits(Scanner *scanner, const Row *rows, size_t n_hits) {
    const uint32_t *order = scanner->order.data;
    size_t n_bytes = 0, before = scanner->hit_item.used;
    for (size_t i = 0; i < n_hits; i++) n_bytes += rows[order[i]].length;
    if (!array_reserve(&scanner->hit_score, n_hits, sizeof(double)) ||
        !array_reserve(&scanner->hit_length, n_hits, sizeof(int64_t)) ||
        !array_reserve(&scanner->hit_item, n_hits, sizeof(int32_t)) || !array_reserve(&scanner->hit_ids, n_bytes, 1))
        return fail(scanner), false;
    for (size_t i = 0; i < n_hits; i++) {
        const Row *row = rows + order[i];
        ELEMENTS(scanner->hit_score, double)[before + i] = row->score;
        ELEMENTS(scanner->hit_length, int64_t)[before + i] = row->length;
        ELEMENTS(scanner->hit_item, int32_t)[before + i] = -1;
        append_bytes(&scanner->hit_ids, ELEMENTS(scanner->ids, uint8_t) + row->id, row->length, 0);
    }
    const uint64_t *found = scanner->found.data;
    for (size_t i = 0; i < scanner->found.used && (found[i] >> 32) <= n_hits; i++)
        ELEMENTS(scanner->hit_item, int32_t)[before + (found[i] >> 32) - 1] = (int32_t)(uint32_t)found[i];
    scanner->hit_score.used = scanner->hit_length.used = scanner->hit_item.used = before + n_hits;
    return true;
}

bool finish_query(Scanner *scanner, size_t query, const Row *rows, size_t n_rows) {
    const ScanOptions *options = &scanner->options;
    size_t n = n_rows, mask, n_tied;
    bool misranked;
    scanner->order.used = scanner->keys.used = 0;
    if (n > INT32_MAX || !array_reserve(&scanner->order, n, sizeof(uint32_t)) ||
        !array_reserve(&scanner->keys, n, sizeof(uint64_t)) ||
        !array_reserve(&scanner->answered, 1, sizeof(AnsweredRow)))
        return fail(scanner), false;
    if (!put_in_order(scanner, rows, n, &n_tied, &misranked)) return false;
    if (!drop_duplicates(scanner, query, rows, &n, &mask)) return false;
    size_t n_kept = options->depth < 0 || (uint64_t)options->depth > n ? n : (size_t)options->depth;
    size_t n_hits = options->keep < 0 ? 0 : (uint64_t)options->keep > n_kept ? n_kept : (size_t)options->keep;
    if (scanner->index->whole && scanner->index->whole[query]) n_hits = n_kept;
    if (!find_judged(scanner, query, rows, n_kept, mask)) return false;
    if (!keep_judged(scanner, query, n, n_tied > 0) || !keep_hits(scanner, rows, n_hits)) return false;
    ELEMENTS(scanner->answered, AnsweredRow)[scanner->answered.used++] = (AnsweredRow){
        (int32_t)query,  (int32_t)n_kept,    (int32_t)(n_rows - n),
        (int32_t)n_tied, (int32_t)misranked, (int32_t)n_hits,
    };
    return true;
}
