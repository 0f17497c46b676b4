/* What a fuzzer calls: any bytes as judgments and rows that are ranked by counting, with memory that runs out.
 *
 * Beside what the sanitizers see, every judged row must have the rank that sorting gives it, and every row that repeats
 * another must be reported.
 */
#include "fuzz.h"

#include "array.c"
#include "count.c"

enum { HEAD = 8, ROW = 4, MAX_ROWS = 128, N_QUERIES = 3, N_SYSTEMS = 2, N_GROUPS = N_QUERIES * N_SYSTEMS, N_NAMES = 12 };
static const char *const NAMES[N_NAMES] = {"",  "a",  "b",  "bb", "doc-1", "doc-2", "doc-10", "0123456789abcdef",
                                           "é", "a-document-of-more-than-sixteen-bytes", "zz", "0123456789abcdefg"};

typedef struct {
    uint8_t bytes[MAX_ROWS * 40];
    int64_t offset[MAX_ROWS + 1];
    size_t n;
} Column;

static void add_text(Column *column, const char *text) {
    size_t length = strlen(text), at = (size_t)column->offset[column->n];
    memcpy(column->bytes + at, text, length);
    column->offset[++column->n] = (int64_t)(at + length);
}

static Texts texts_of(const Column *column) {
    return (Texts){column->offset, column->bytes, column->n, (size_t)column->offset[column->n]};
}

typedef struct {
    Column documents;
    int32_t group[MAX_ROWS], name[MAX_ROWS];
    double key[MAX_ROWS];
    size_t n;
} Input;

static void read_rows(const uint8_t *bytes, size_t n, Input *input) {
    for (; n >= ROW && input->n < MAX_ROWS; bytes += ROW, n -= ROW) {
        input->group[input->n] = bytes[0] % (N_GROUPS + 1) - 1;
        input->name[input->n] = bytes[1] % N_NAMES;
        input->key[input->n++] = bytes[2] % 5 - 2.0;
        add_text(&input->documents, NAMES[bytes[1] % N_NAMES]);
    }
}

/* Whether row a stands before row b of the same group. */
static bool before(const Input *input, Ties ties, size_t a, size_t b) {
    if (input->key[a] != input->key[b]) return input->key[a] > input->key[b];
    int order = ties == TIES_GIVEN ? 0 : strcmp(NAMES[input->name[a]], NAMES[input->name[b]]);
    if (ties == TIES_GIVEN) return a < b;
    return ties == TIES_DESCENDING ? order > 0 : order < 0;
}

static const Input *sorted_input;
static Ties sorted_ties;
static int by_place(const void *a, const void *b) {
    const FoundRow *x = a, *y = b;
    if (x->group != y->group) return x->group < y->group ? -1 : 1;
    if (before(sorted_input, sorted_ties, x->ordinal, y->ordinal)) return -1;
    return before(sorted_input, sorted_ties, y->ordinal, x->ordinal) ? 1 : 0;
}

/* Count the rows at the judged ones, and compare with what sorting says. */
static void check(Counter *counter, const Input *input, const Rows *rows, Array *found, const Array *repeated) {
    FoundRow *judged = ELEMENTS(*found, FoundRow);
    sorted_input = input, sorted_ties = counter->ties;
    if (found->used) qsort(judged, found->used, sizeof *judged, by_place);
    static double key[MAX_ROWS];
    static int32_t judgment[MAX_ROWS], counts[3 * (MAX_ROWS + N_GROUPS)];
    static uint64_t ordinal[MAX_ROWS];
    int64_t start[N_GROUPS + 1] = {0};
    memset(counts, 0, sizeof counts);
    for (size_t i = 0; i < found->used; i++) {
        key[i] = judged[i].key, judgment[i] = judged[i].judgment, ordinal[i] = judged[i].ordinal;
        for (int group = judged[i].group + 1; group <= N_GROUPS; group++) start[group]++;
    }
    JudgedRows places = {start, key, judgment, ordinal, counts, N_GROUPS};
    if (!counter_suspect(counter, ELEMENTS(*repeated, uint64_t), repeated->used)) return;
    Array suspects = {0};
    bool good = counter_count(counter, rows, &places, 1, &suspects);
    for (size_t i = 0; good && i < found->used; i++) {
        size_t group = (size_t)judged[i].group, rank = 0, expected = 0;
        for (size_t at = (size_t)start[group]; at < i && judged[at].key > judged[i].key; at++)
            rank += (size_t)(counts[3 * (at + group) + 1] + counts[3 * (at + group) + 2]);
        for (size_t at = (size_t)start[group]; at <= i; at++) {
            rank += (size_t)counts[3 * (at + group)];
            if (judged[at].key == judged[i].key) rank += (size_t)counts[3 * (at + group) + 1];
        }
        for (size_t row = 0; row < rows->n; row++)
            expected += rows->group[row] == judged[i].group && !before(input, counter->ties, judged[i].ordinal, row);
        /* Copies of a judged row tie with it; each is counted where the first of them stands. */
        size_t copies = 0;
        for (size_t row = 0; row < rows->n; row++)
            copies += rows->group[row] == judged[i].group && input->name[row] == input->name[judged[i].ordinal];
        if (copies == 1) REQUIRE(rank == expected);
    }
    for (size_t row = 0; good && counter->filter_words && row < rows->n; row++)
        for (size_t other = 0; other < row; other++)
            if (rows->group[row] >= 0 && rows->group[row] == rows->group[other] && input->name[row] == input->name[other]) {
                bool told = false;
                for (size_t i = 0; i < suspects.used; i++) told |= ELEMENTS(suspects, SuspectRow)[i].row == (int32_t)row;
                REQUIRE(told);
            }
    if (good) {
        Array again = {0};
        if (counter_count(counter, rows, &places, -1, &again))
            for (size_t i = 0; i < 3 * (found->used + N_GROUPS); i++) REQUIRE(counts[i] == 0);
        free(again.data);
    }
    free(suspects.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n) {
    if (n < HEAD) return 0;
    static Input input;
    static Column queries, documents;
    memset(&input, 0, sizeof input), memset(&queries, 0, sizeof queries), memset(&documents, 0, sizeof documents);
    int64_t start[N_QUERIES + 1] = {0};
    static const char *const QUERIES[N_QUERIES] = {"q", "a-query-with-a-long-name", ""};
    for (int query = 0; query < N_QUERIES; query++) {
        add_text(&queries, QUERIES[query]);
        for (int name = 0; name < N_NAMES; name++)
            if (bytes[1 + query] >> (name % 8) & 1) add_text(&documents, NAMES[name]);
        start[query + 1] = (int64_t)documents.n;
    }
    read_rows(bytes + HEAD, n - HEAD, &input);
    uint64_t filter[64] = {0};
    Counter counter = {.queries = texts_of(&queries), .documents = texts_of(&documents), .doc_start = start};
    counter.ties = (Ties)(bytes[0] % 3);
    counter.seed[0] = bytes[4], counter.seed[1] = bytes[5];
    counter.filter = filter, counter.filter_words = bytes[6] % 65;
    allocations_left = bytes[7] % 4 ? -1 : bytes[7] / 4;
    size_t twice;
    Array found = {0}, repeated = {0};
    if (counter_init(&counter, &twice)) {
        int32_t places[N_QUERIES], order[N_QUERIES * N_NAMES];
        counter_queries(&counter, counter.queries, places);
        for (int query = 0; query < N_QUERIES; query++) REQUIRE(places[query] == query);
        if (counter_document_order(&counter, order))
            for (int query = 0; query < N_QUERIES; query++)
                for (int64_t i = start[query]; i < start[query + 1]; i++)
                    REQUIRE(order[i] >= 0 && order[i] < start[query + 1] - start[query]);
        Rows rows = {input.group, texts_of(&input.documents), input.key, 0, input.n};
        if (counter_find(&counter, &rows, &found, &repeated)) check(&counter, &input, &rows, &found, &repeated);
    } else {
        REQUIRE(twice == SIZE_MAX);
    }
    free(found.data), free(repeated.data);
    counter_free(&counter);
    allocations_left = -1;
    return 0;
}
