/* What a fuzzer calls: any bytes as options and as a run file, in the pieces they say, with memory that runs out.
 *
 * Beside what the sanitizers see, it holds the scanner to itself: pieces and their sizes change nothing, gathering
 * changes nothing where queries stand together, ranks lie within their bounds, and a number is what the library says.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include "array.c"
#include "index.c"
#include "order.c"
#include "scanner.c"
#include "finish.c"
#include "scan.c"

#define ID(text) {(const uint8_t *)(text), sizeof(text) - 1}
static const Slice QUERIES[] = {ID("q1"), ID("q2"), ID("a-query-with-a-long-name"), ID("\0"), ID("7")};
static const Slice DOCUMENTS[] = {ID("d1"), ID("d2"),  ID("d3"), ID("a"),
                                  ID("é"),  ID("d\0"), ID("d4"), ID("a-document-of-more-than-sixteen-bytes"),
                                  ID(""),   ID("x")};
static const size_t STARTS[] = {0, 4, 8, 9, 9, 10};
static const bool WHOLE[] = {false, true, false, false, true};
enum { N_QUERIES = 5, HEAD = 8, NUMBER_BYTES = 64 };

typedef struct {
    uint8_t order, depth, keep, way, pieces, memory, limit, seed;
} Head;

static ScanOptions options_of(const Head *head) {
    static const int64_t DEPTHS[] = {-1, -1, 0, 1, 2, 5, 1000, INT64_MAX, INT64_MIN};
    static const int64_t KEEPS[] = {10, 0, 1, 3, INT64_MAX, -1};
    return (ScanOptions){
        .order = (Order)(head->order % 3),
        .ties = (Ties)(head->order / 3 % 3),
        .single = head->order / 9 % 2,
        .keep_first = head->order / 18 % 2,
        .depth = DEPTHS[head->depth % (sizeof DEPTHS / sizeof *DEPTHS)],
        .keep = KEEPS[head->keep % (sizeof KEEPS / sizeof *KEEPS)],
        .gather = head->way & 1,
        .inner = head->way & 2,
        .problem_limit = head->limit % 4 ? 1000000 : head->limit / 4,
    };
}

/* Scan in pieces whose sizes follow from `pieces`; 0 is one piece. Each is a copy, so that nothing beyond it is there. */
static Scanner *scan(const Index *index, const ScanOptions *options, const uint8_t *bytes, size_t n, unsigned pieces) {
    Scanner *scanner = scanner_new(index, options);
    if (!scanner) return NULL;
    uint32_t state = pieces * 2654435761u + 1;
    while (n) {
        state = state * 1664525u + 1013904223u;
        size_t size = pieces ? 1 + (state >> 16) % (pieces < 16 ? pieces : 3 * pieces) : n;
        if (size > n) size = n;
        uint8_t *copy = malloc(size);
        REQUIRE(copy);
        memcpy(copy, bytes, size);
        scanner_feed(scanner, copy, size);
        free(copy);
        bytes += size, n -= size;
    }
    scanner_finish(scanner);
    return scanner;
}

static bool same(const void *a, const void *b, size_t n, size_t element) { return !n || !memcmp(a, b, n * element); }

static void require_same(const Scanner *one, const Scanner *other) {
    ScanResult a, b;
    scanner_result(one, &a), scanner_result(other, &b);
    REQUIRE(one->status == other->status);
    REQUIRE(a.n_judged == b.n_judged && same(a.judged, b.judged, a.n_judged, sizeof(JudgedRow)));
    REQUIRE(a.n_answered == b.n_answered && same(a.answered, b.answered, a.n_answered, sizeof(AnsweredRow)));
    REQUIRE(a.n_hits == b.n_hits && same(a.hit_score, b.hit_score, a.n_hits, sizeof(double)));
    REQUIRE(same(a.hit_item, b.hit_item, a.n_hits, 4) && same(a.hit_length, b.hit_length, a.n_hits, 8));
    REQUIRE(a.hit_ids.length == b.hit_ids.length && same(a.hit_ids.bytes, b.hit_ids.bytes, a.hit_ids.length, 1));
    REQUIRE(a.n_lines == b.n_lines && a.n_extra == b.n_extra && a.n_problems == b.n_problems);
    REQUIRE(a.has_tag == b.has_tag && a.tag.length == b.tag.length && same(a.tag.bytes, b.tag.bytes, a.tag.length, 1));
    for (size_t i = 0; i < a.n_problems; i++) {
        REQUIRE(a.problems[i].code == b.problems[i].code && a.problems[i].line == b.problems[i].line);
        REQUIRE(a.problems[i].got.length == b.problems[i].got.length);
    }
}

static void require_bounds(const Scanner *scanner) {
    ScanResult found;
    scanner_result(scanner, &found);
    int32_t returned[N_QUERIES] = {0}, longest[N_QUERIES] = {0};
    size_t n_hits = 0, n_bytes = 0;
    for (size_t i = 0; i < found.n_answered; i++) {
        const AnsweredRow *row = found.answered + i;
        REQUIRE(row->query >= 0 && row->query < N_QUERIES && row->n_returned >= 0 && row->n_hits <= row->n_returned);
        REQUIRE(row->n_duplicates >= 0 && row->n_tied >= 0 && !returned[row->query]);
        returned[row->query] = row->n_returned;
        longest[row->query] = row->n_tied + row->n_returned + row->n_duplicates + 1;
        n_hits += (size_t)row->n_hits;
    }
    for (size_t i = 0; i < found.n_judged; i++) {
        const JudgedRow *row = found.judged + i;
        REQUIRE(row->rank >= 1 && row->rank <= returned[row->query]);
        REQUIRE(row->tie_first >= 1 && row->tie_first <= row->rank && row->rank <= row->tie_last);
        REQUIRE(row->tie_last - row->tie_first < longest[row->query]);
        REQUIRE(row->item >= 0 && (size_t)row->item < STARTS[row->query + 1] - STARTS[row->query]);
        REQUIRE(!i || row[-1].query != row->query || row[-1].rank < row->rank);
    }
    for (size_t i = 0; i < found.n_hits; i++) n_bytes += (size_t)found.hit_length[i];
    REQUIRE(n_hits == found.n_hits && n_bytes == found.hit_ids.length);
}

/* Both ways of reading a number, and the bits and hashes that stand for its bytes, against the plainest of ways. */
static void require_numbers(const uint8_t *bytes, size_t n, locale_t locale) {
    uint8_t text[NUMBER_BYTES + READABLE];
    memset(text, '7', sizeof text);
    if (n > 40) n = 40;
    memcpy(text, bytes, n);
    double quick, careful, library;
    if (parse_score(text, n, locale, &careful) == NUMBER_FINE) {
        REQUIRE(parse_by_library(text, n, locale, &library) == NUMBER_FINE);
        REQUIRE(!memcmp(&careful, &library, sizeof careful));
    }
    if (n && parse_plain_score(text, n, &quick)) {
        REQUIRE(parse_score(text, n, locale, &careful) == NUMBER_FINE);
        REQUIRE(!memcmp(&careful, &quick, sizeof careful));
    }
    uint64_t digits, seed[2] = {n, 12345};
    if (n >= 1 && n <= 8 && parse_digits(text, n, &digits)) REQUIRE((int64_t)digits == parse_rank(text, n));
    if (n <= 16) REQUIRE(hash_id(text, n, seed) == hash_readable(text, n, seed));
    Marks marks = mark(text);
    for (int i = 0; i < WINDOW; i++) {
        REQUIRE((marks.space >> i & 1) == is_space(text[i]));
        REQUIRE((marks.newline >> i & 1) == (text[i] == '\n'));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    if (n < HEAD) return 0;
    Head head;
    memcpy(&head, bytes, HEAD);
    bytes += HEAD, n -= HEAD;
    ScanOptions options = options_of(&head);
    uint64_t seed[2] = {head.seed, head.seed * 0x9e3779b97f4a7c15ULL};
    size_t twice;
    allocations_left = -1;
    Index *index = index_new(QUERIES, N_QUERIES, DOCUMENTS, STARTS, WHOLE, seed, &twice);
    REQUIRE(index);
    if (head.memory) {
        allocations_left = head.memory;
        scanner_free(scan(index, &options, bytes, n, head.pieces));
        allocations_left = head.memory % 3;
        index_free(index_new(QUERIES, N_QUERIES, DOCUMENTS, STARTS, WHOLE, seed, &twice));
        allocations_left = -1;
    }
    Scanner *scanner = scan(index, &options, bytes, n, head.pieces), *other = scan(index, &options, bytes, n, 0);
    REQUIRE(scanner && other);
    require_same(scanner, other);
    require_bounds(scanner);
    require_numbers(bytes, n, scanner->locale);
    scanner_free(other);
    if (scanner->status == SCAN_FINE && !scanner->problems.used && !options.gather) {
        options.gather = true;
        other = scan(index, &options, bytes, n, head.pieces / 2);
        REQUIRE(other);
        require_same(scanner, other);
        scanner_free(other);
    }
    scanner_free(scanner);
    index_free(index);
    size_t cut = query_change(bytes, n);
    REQUIRE(cut <= n && (cut == n || (cut && bytes[cut - 1] == '\n')));
    return 0;
}
