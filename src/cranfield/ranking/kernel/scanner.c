/* Construction, results and destruction of a scanner. */
#include "scanner.h"

bool note_problem(Scanner *scanner, const ScanProblem *problem) {
    ScanProblem noted = *problem;
    size_t n = noted.got.length;
    uint8_t *copy = SCAN_REALLOC(NULL, n + 1);
    if (!copy) return fail(scanner), false;
    if (!array_reserve(&scanner->problems, 1, sizeof noted)) {
        SCAN_FREE(copy);
        return fail(scanner), false;
    }
    if (n) memcpy(copy, noted.got.bytes, n);
    noted.got.bytes = copy;
    ELEMENTS(scanner->problems, ScanProblem)[scanner->problems.used++] = noted;
    if (scanner->problems.used >= scanner->options.problem_limit) scanner->status = SCAN_STOPPED;
    return scanner->status == SCAN_FINE;
}

Scanner *scanner_new(const Index *index, const ScanOptions *options) {
    Scanner *scanner = SCAN_REALLOC(NULL, sizeof *scanner);
    if (!scanner) return NULL;
    memset(scanner, 0, sizeof *scanner);
    scanner->index = index;
    scanner->options = *options;
    if (!scanner->options.problem_limit) scanner->options.problem_limit = 1;
    scanner->current = -1;
    scanner->query_length = SIZE_MAX; /* differs from any column's */
    scanner->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    scanner->seen = SCAN_REALLOC(NULL, index->n_queries / 8 + 1);
    bool made = scanner->seen && scanner->locale;
    if (made) memset(scanner->seen, 0, index->n_queries / 8 + 1);
    if (made && options->gather) {
        made = array_reserve(&scanner->chains, index->n_queries + 1, sizeof(Chain));
        if (made) memset(scanner->chains.data, 0, (index->n_queries + 1) * sizeof(Chain));
    }
    if (!made) return scanner_free(scanner), NULL;
    return scanner;
}

void scanner_result(const Scanner *scanner, ScanResult *result) {
    *result = (ScanResult){
        .judged = scanner->judged.data,
        .n_judged = scanner->judged.used,
        .answered = scanner->answered.data,
        .n_answered = scanner->answered.used,
        .hit_score = scanner->hit_score.data,
        .hit_length = scanner->hit_length.data,
        .hit_item = scanner->hit_item.data,
        .n_hits = scanner->hit_item.used,
        .hit_ids = {scanner->hit_ids.data, scanner->hit_ids.used},
        .problems = scanner->problems.data,
        .n_problems = scanner->problems.used,
        .extra = scanner->extra.data,
        .n_extra = scanner->extra.used,
        .extra_bytes = scanner->extra_bytes.data,
        .n_lines = scanner->n_lines,
        .tag = {scanner->tag.data, scanner->tag.used},
        .has_tag = scanner->has_tag,
    };
}

void scanner_free(Scanner *scanner) {
    if (!scanner) return;
    for (size_t i = 0; i < scanner->problems.used; i++)
        SCAN_FREE((void *)(uintptr_t)ELEMENTS(scanner->problems, ScanProblem)[i].got.bytes);
    Array *arrays[] = {
        &scanner->carry,   &scanner->query,       &scanner->rows,        &scanner->ids,        &scanner->links,
        &scanner->chains,  &scanner->met,         &scanner->extra,       &scanner->extra_bytes, &scanner->extra_slots,
        &scanner->block,   &scanner->order,       &scanner->keys,        &scanner->sorted,     &scanner->spare,
        &scanner->slots,   &scanner->found,       &scanner->judged,      &scanner->answered,   &scanner->hit_score,
        &scanner->hit_ids, &scanner->hit_length,  &scanner->hit_item,    &scanner->problems,   &scanner->tag,
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) SCAN_FREE(arrays[i]->data);
    SCAN_FREE(scanner->seen);
    if (scanner->locale) freelocale(scanner->locale);
    SCAN_FREE(scanner);
}
