/* From bytes to the rows of a query: lines, columns, and the query of each line. */
#include "scan.h"

#include "finish.h"
#include "number.h"

enum { RUN_COLUMNS = 6, GOT_BYTES = 4096, SPARE = 16, MAX_SHORT_DIGITS = 8, MAX_LINE_BYTES = 1 << 20 };

/* A line in its columns. */
typedef struct {
    Slice query, document, rank, score;
    bool readable; /* READABLE bytes from the line's start on, and every column begins in its window */
} Line;

/* Record the problem of a line, with as much of it as a message quotes. */
static void bad_line(Scanner *scanner, ProblemCode code, size_t n_columns, Slice got) {
    while (got.length && is_space(*got.bytes)) got.bytes++, got.length--;
    if (got.length > GOT_BYTES) got.length = GOT_BYTES;
    ScanProblem problem = {.code = code, .line = scanner->line, .n_columns = n_columns, .got = got};
    note_problem(scanner, &problem);
}

/* A line that is no result: reading ends, so that a file without line feeds takes no memory. */
static ScanStatus refuse_long_line(Scanner *scanner) {
    bad_line(scanner, PROBLEM_LONG_LINE, 0, (Slice){NULL, 0});
    if (scanner->status == SCAN_FINE) scanner->status = SCAN_STOPPED;
    return scanner->status;
}

/* ---- queries ---- */

/* Double the hash table of unjudged queries. */
static bool grow_extra(Scanner *scanner) {
    Array grown = {0};
    size_t size = scanner->extra_slots.used ? scanner->extra_slots.used * 2 : 64;
    if (!array_reserve(&grown, size, sizeof(Slot))) return false;
    memset(grown.data, 0, size * sizeof(Slot));
    grown.used = size;
    Slot *slots = grown.data;
    for (size_t i = 0; i < scanner->extra.used; i++) {
        uint32_t hash = ELEMENTS(scanner->extra, ExtraQuery)[i].hash;
        size_t at = hash & (size - 1);
        while (slots[at].place) at = (at + 1) & (size - 1);
        slots[at] = (Slot){hash, (uint32_t)(i + 1)};
    }
    SCAN_FREE(scanner->extra_slots.data);
    scanner->extra_slots = grown;
    return true;
}

/* Record a query that is not judged; *known: it was recorded before. */
static bool note_extra(Scanner *scanner, Slice query, uint32_t hash, bool *known) {
    *known = false;
    if (scanner->extra.used >= scanner->extra_slots.used / 2 && !grow_extra(scanner)) return false;
    if (scanner->extra.used >= UINT32_MAX - 1) return false;
    Slot *slots = scanner->extra_slots.data;
    size_t mask = scanner->extra_slots.used - 1, at = hash & mask;
    for (; slots[at].place; at = (at + 1) & mask) {
        const ExtraQuery *name = ELEMENTS(scanner->extra, ExtraQuery) + slots[at].place - 1;
        const uint8_t *bytes = ELEMENTS(scanner->extra_bytes, uint8_t) + name->place;
        *known = slots[at].hash == hash && same_bytes(query, bytes, name->length);
        if (*known) return true;
    }
    ExtraQuery name = {scanner->extra_bytes.used, query.length, hash};
    if (!array_reserve(&scanner->extra, 1, sizeof name) ||
        !append_bytes(&scanner->extra_bytes, query.bytes, query.length, 0))
        return false;
    ELEMENTS(scanner->extra, ExtraQuery)[scanner->extra.used++] = name;
    slots[at] = (Slot){hash, (uint32_t)scanner->extra.used};
    return true;
}

/* Store the query of the last valid line. */
static bool remember_query(Scanner *scanner, Slice query) {
    scanner->query.used = 0;
    if (!append_bytes(&scanner->query, query.bytes, query.length, SPARE)) return false;
    scanner->query_word = load_some(query.bytes, query.length);
    scanner->query_mask = query.length >= 8 ? ~0ULL : (1ULL << (8 * query.length)) - 1;
    scanner->query_length = query.length;
    scanner->begun = true;
    return true;
}

/* A line whose query differs from the line before: finish the previous query, unless gathering, and begin this one. */
static bool begin_query(Scanner *scanner, Slice query) {
    bool gather = scanner->options.gather, known;
    if (!gather && scanner->rows.used) {
        if (!finish_query(scanner, (size_t)scanner->current, scanner->rows.data, scanner->rows.used)) return false;
        scanner->rows.used = scanner->ids.used = 0;
    }
    uint32_t hash = (uint32_t)hash_id(query.bytes, query.length, scanner->index->seed);
    scanner->current = index_find(scanner->index, query, hash);
    if (scanner->current < 0) {
        if (!note_extra(scanner, query, hash, &known)) return fail(scanner), false;
    } else {
        uint8_t *seen = scanner->seen + scanner->current / 8, bit = (uint8_t)(1 << scanner->current % 8);
        known = *seen & bit;
        *seen |= bit;
        if (!known && gather) {
            if (!array_reserve(&scanner->met, 1, sizeof(size_t))) return fail(scanner), false;
            ELEMENTS(scanner->met, size_t)[scanner->met.used++] = (size_t)scanner->current;
        }
    }
    if (known && !gather) return scanner->status = SCAN_INTERLEAVED, false;
    if (!remember_query(scanner, query)) return fail(scanner), false;
    return true;
}

/* When gathering: put the row at the end of its query's chain. */
static bool link_row(Scanner *scanner, size_t row) {
    if (!array_reserve(&scanner->links, 1, sizeof(size_t))) return false;
    scanner->links.used++;
    Chain *chain = ELEMENTS(scanner->chains, Chain) + scanner->current;
    if (chain->count++) {
        ELEMENTS(scanner->links, size_t)[chain->last] = row;
    } else {
        chain->first = row;
    }
    chain->last = row;
    return true;
}

/* ---- lines ---- */

static inline bool is_current_query(const Scanner *scanner, const Line *line) {
    const uint8_t *query = line->query.bytes;
    size_t length = line->query.length;
    if (!line->readable) return scanner->begun && same_bytes(line->query, scanner->query.data, scanner->query_length);
    if (((load8(query) ^ scanner->query_word) & scanner->query_mask) | (length ^ scanner->query_length)) return false;
    return length <= 8 || !memcmp(query + 8, ELEMENTS(scanner->query, uint8_t) + 8, length - 8);
}

static inline int64_t rank_of(const Line *line) {
    uint64_t rank;
    if (LIKELY(line->readable && line->rank.length <= MAX_SHORT_DIGITS) &&
        LIKELY(parse_digits(line->rank.bytes, line->rank.length, &rank)))
        return (int64_t)rank;
    return parse_rank(line->rank.bytes, line->rank.length);
}

static inline bool score_of(Scanner *scanner, const Line *line, double *score) {
    if (LIKELY(line->readable) && LIKELY(parse_plain_score(line->score.bytes, line->score.length, score))) return true;
    NumberStatus status = parse_score(line->score.bytes, line->score.length, scanner->locale, score);
    if (LIKELY(status == NUMBER_FINE)) return true;
    if (status == NUMBER_NO_MEMORY) {
        fail(scanner);
    } else {
        bad_line(scanner, PROBLEM_SCORE, RUN_COLUMNS, line->score);
    }
    return false;
}

/* Append a line of six columns to the rows of its query, if its numbers are valid. */
static inline void take_line(Scanner *scanner, const Line *line) {
    double score;
    if (!score_of(scanner, line, &score)) return;
    int64_t rank = rank_of(line);
    if (UNLIKELY(rank == NO_RANK && scanner->options.order == ORDER_RANK)) {
        bad_line(scanner, PROBLEM_RANK, RUN_COLUMNS, line->rank);
        return;
    }
    if (UNLIKELY(!is_current_query(scanner, line)) && !begin_query(scanner, line->query)) return;
    scanner->n_lines++;
    if (scanner->current < 0) return;
    Slice id = line->document;
    if (UNLIKELY(!array_reserve(&scanner->rows, 1, sizeof(Row))) ||
        UNLIKELY(!array_reserve(&scanner->ids, id.length + SPARE, 1)) || UNLIKELY(id.length > UINT32_MAX)) {
        fail(scanner);
        return;
    }
    uint8_t *copy = ELEMENTS(scanner->ids, uint8_t) + scanner->ids.used;
    uint64_t hash;
    if (LIKELY(line->readable && id.length <= SPARE)) {
        memcpy(copy, id.bytes, SPARE); /* more than the id, into room that is there: one instruction */
        hash = hash_readable(id.bytes, id.length, scanner->index->seed);
    } else {
        memcpy(copy, id.bytes, id.length);
        hash = hash_id(id.bytes, id.length, scanner->index->seed);
    }
    Row row = {scanner->ids.used, (uint32_t)id.length, (uint32_t)hash, score, rank, scanner->line};
    scanner->ids.used += id.length;
    ELEMENTS(scanner->rows, Row)[scanner->rows.used++] = row;
    if (scanner->options.gather && !link_row(scanner, scanner->rows.used - 1)) fail(scanner);
}

/* The end of a tag without trailing white space. */
static const uint8_t *tag_end(const uint8_t *tag, const uint8_t *end) {
    while (end > tag && is_space(end[-1])) end--;
    return end;
}

/* Check the tag of a line: white space inside is allowed, a carriage return is not. */
static bool take_tag(Scanner *scanner, const uint8_t *start, const uint8_t *tag, const uint8_t *end) {
    const uint8_t *last = tag_end(tag, end);
    if (memchr(tag, '\r', (size_t)(last - tag))) {
        bad_line(scanner, PROBLEM_CARRIAGE_RETURN, RUN_COLUMNS, (Slice){start, (size_t)(end - start)});
        return false;
    }
    return true;
}

static bool keep_tag(Scanner *scanner, const uint8_t *tag, const uint8_t *end) {
    const uint8_t *last = tag_end(tag, end);
    scanner->has_tag = true;
    return append_bytes(&scanner->tag, tag, (size_t)(last - tag), 0) || (fail(scanner), false);
}

/* A line of any shape, without its line feed. */
static void read_line(Scanner *scanner, const uint8_t *start, const uint8_t *end) {
    static const uint8_t BYTE_ORDER_MARK[] = {0xef, 0xbb, 0xbf};
    if (scanner->line == 1 && !scanner->options.inner && end - start >= 3 && !memcmp(start, BYTE_ORDER_MARK, 3))
        start += 3;
    if (start == end || *start == '#') return;
    Slice columns[RUN_COLUMNS];
    size_t n_columns = 0;
    for (const uint8_t *p = start; n_columns < RUN_COLUMNS;) {
        while (p < end && is_space(*p)) p++;
        if (p == end) break;
        const uint8_t *column = p;
        while (p < end && !is_space(*p)) p++;
        columns[n_columns++] = (Slice){column, (size_t)(p - column)};
    }
    if (!n_columns) return;
    if (n_columns < RUN_COLUMNS) {
        bad_line(scanner, PROBLEM_COLUMNS, n_columns, (Slice){start, (size_t)(end - start)});
        return;
    }
    const uint8_t *tag = columns[5].bytes;
    if (!take_tag(scanner, start, tag, end)) return;
    uint64_t before = scanner->n_lines;
    take_line(scanner, &(Line){columns[0], columns[2], columns[3], columns[4], false});
    if (!scanner->has_tag && scanner->n_lines > before) keep_tag(scanner, tag, end);
}

static inline Slice column(const uint8_t *line, uint64_t start, uint64_t end) {
    return (Slice){line + lowest(start), (size_t)(lowest(end) - lowest(start))};
}

#define WITHOUT_LOWEST(bits) ((bits) & ((bits)-1))

/* Read the complete lines among some bytes; returns where the rest begins.
 *
 * No byte from `readable` on is read: a line nearer to it than READABLE bytes belongs to the rest. The columns of a
 * line are found by the bits of its window that mark where a column starts and where it ends. */
static const uint8_t *read_lines(Scanner *scanner, const uint8_t *p, const uint8_t *end, const uint8_t *readable) {
    while (p < end && readable - p >= READABLE) {
        Marks marks = mark(p);
        const uint8_t *line_end;
        uint64_t inside = ~0ULL;
        if (LIKELY(marks.newline)) {
            line_end = p + lowest(marks.newline);
            if (line_end >= end) break;
            inside = (marks.newline & (0 - marks.newline)) - 1;
        } else {
            line_end = end - p > WINDOW ? memchr(p + WINDOW, '\n', (size_t)(end - p - WINDOW)) : NULL;
            if (!line_end) break;
        }
        const uint8_t *start = p;
        p = line_end + 1;
        scanner->line++;
        if (UNLIKELY(line_end - start > MAX_LINE_BYTES)) {
            refuse_long_line(scanner);
            break;
        }
        uint64_t starts = ~marks.space & (marks.space << 1 | 1) & inside, ends = marks.space & ~marks.space << 1;
        uint64_t starts_1 = WITHOUT_LOWEST(starts), starts_2 = WITHOUT_LOWEST(starts_1);
        uint64_t starts_3 = WITHOUT_LOWEST(starts_2), starts_4 = WITHOUT_LOWEST(starts_3);
        uint64_t starts_5 = WITHOUT_LOWEST(starts_4);
        if (UNLIKELY(!starts_5 || *start == '#' || !scanner->has_tag)) {
            read_line(scanner, start, line_end);
        } else {
            uint64_t ends_2 = WITHOUT_LOWEST(WITHOUT_LOWEST(ends)), ends_3 = WITHOUT_LOWEST(ends_2);
            uint64_t ends_4 = WITHOUT_LOWEST(ends_3);
            bool plain_tag = marks.newline && !WITHOUT_LOWEST(starts_5);
            if (LIKELY(plain_tag) || take_tag(scanner, start, start + lowest(starts_5), line_end))
                take_line(scanner, &(Line){column(start, starts, ends), column(start, starts_2, ends_2),
                                           column(start, starts_3, ends_3), column(start, starts_4, ends_4), true});
        }
        if (UNLIKELY(scanner->status != SCAN_FINE)) break;
    }
    return p;
}

/* Read the complete lines of `carry`; the rest moves to the front. */
static void read_carry(Scanner *scanner) {
    uint8_t *carry = scanner->carry.data, *end = carry + scanner->carry.used;
    memset(end, 0, READABLE);
    const uint8_t *rest = read_lines(scanner, carry, end, end + READABLE);
    size_t left = (size_t)(end - rest);
    if (left && rest != carry) memmove(carry, rest, left);
    scanner->carry.used = left;
}

ScanStatus scanner_feed(Scanner *scanner, const void *bytes, size_t n_bytes) {
    if (scanner->status != SCAN_FINE || !n_bytes) return scanner->status;
    const uint8_t *p = bytes, *end = p + n_bytes;
    if (scanner->carry.used) {
        const uint8_t *newline = memchr(p, '\n', n_bytes);
        size_t taken = newline ? (size_t)(newline + 1 - p) : n_bytes;
        if (!append_bytes(&scanner->carry, p, taken, READABLE)) return fail(scanner);
        if (!newline && scanner->carry.used > MAX_LINE_BYTES) {
            scanner->line++;
            return refuse_long_line(scanner);
        }
        if (!newline) return SCAN_FINE;
        read_carry(scanner);
        p += taken;
    }
    if (scanner->status == SCAN_FINE) p = read_lines(scanner, p, end, end);
    if (scanner->status == SCAN_FINE && p < end) {
        if (!append_bytes(&scanner->carry, p, (size_t)(end - p), READABLE)) return fail(scanner);
        read_carry(scanner);
    }
    return scanner->status;
}

/* Copy the rows of each gathered query out of their chain, and finish it. */
static bool finish_gathered(Scanner *scanner) {
    const size_t *links = scanner->links.data;
    for (size_t i = 0; i < scanner->met.used; i++) {
        size_t query = ELEMENTS(scanner->met, size_t)[i];
        Chain chain = ELEMENTS(scanner->chains, Chain)[query];
        scanner->block.used = 0;
        if (!array_reserve(&scanner->block, chain.count, sizeof(Row))) return fail(scanner), false;
        Row *block = scanner->block.data;
        for (size_t n = 0, row = chain.first; n < chain.count; n++) {
            block[n] = ELEMENTS(scanner->rows, Row)[row];
            if (n + 1 < chain.count) row = links[row];
        }
        if (!finish_query(scanner, query, block, chain.count)) return false;
    }
    return true;
}

ScanStatus scanner_finish(Scanner *scanner) {
    if (scanner->status == SCAN_FINE && scanner->carry.used) scanner_feed(scanner, "\n", 1);
    if (scanner->status != SCAN_FINE) return scanner->status;
    if (scanner->options.gather) {
        finish_gathered(scanner);
    } else if (scanner->rows.used) {
        finish_query(scanner, (size_t)scanner->current, scanner->rows.data, scanner->rows.used);
    }
    scanner->rows.used = scanner->links.used = scanner->met.used = scanner->ids.used = 0;
    return scanner->status;
}

/* ---- where a file may be cut ---- */

size_t query_change(const void *bytes, size_t n_bytes) {
    const uint8_t *begin = bytes, *end = begin + n_bytes, *p = n_bytes ? memchr(bytes, '\n', n_bytes) : NULL;
    Slice query = {NULL, 0};
    if (!p) return n_bytes;
    for (p++; p < end;) {
        const uint8_t *line = p, *line_end = memchr(p, '\n', (size_t)(end - p));
        if (!line_end) break;
        p = line_end + 1;
        const uint8_t *first = line;
        while (first < line_end && is_space(*first)) first++;
        if (first == line_end || *line == '#') continue;
        const uint8_t *last = first;
        while (last < line_end && !is_space(*last)) last++;
        if (query.bytes && !same_bytes(query, first, (size_t)(last - first))) return (size_t)(line - begin);
        query = (Slice){first, (size_t)(last - first)};
    }
    return n_bytes;
}
