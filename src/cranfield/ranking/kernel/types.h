/* The options of a scanner and its results: plain values, also used for runs in memory. */
#ifndef CRANFIELD_TYPES_H
#define CRANFIELD_TYPES_H

#include "text.h"

/* A rank column that is not a whole number. */
#define NO_RANK INT64_MIN

typedef enum { ORDER_SCORE, ORDER_GIVEN, ORDER_RANK } Order;
typedef enum { TIES_DESCENDING, TIES_ASCENDING, TIES_GIVEN } Ties;

typedef struct {
    Order order;
    Ties ties;
    bool single;           /* scores are compared as 32-bit floats */
    bool keep_first;       /* a document twice in a query: the best ranked one counts; otherwise it is a problem */
    bool gather;           /* hold the rows of all judged queries, which may be interleaved */
    bool inner;            /* the bytes do not begin at the first line of the file: no byte order mark is looked for */
    int64_t depth;         /* ranks kept a query; negative: all */
    int64_t keep;          /* hits kept a query */
    size_t problem_limit;  /* reading stops at this many problems; 0 is taken as 1 */
} ScanOptions;

typedef enum {
    SCAN_FINE,
    SCAN_INTERLEAVED, /* a query came back after another: read the file again with `gather` */
    SCAN_STOPPED,     /* `problem_limit` was reached */
    SCAN_NO_MEMORY,
} ScanStatus;

typedef enum {
    PROBLEM_COLUMNS,         /* fewer than six; got: the line */
    PROBLEM_CARRIAGE_RETURN, /* inside the tag; got: the line */
    PROBLEM_SCORE,           /* got: the column */
    PROBLEM_RANK,            /* got: the column */
    PROBLEM_DUPLICATE,       /* got: the document */
    PROBLEM_LONG_LINE,       /* the last problem: nothing behind it is read */
} ProblemCode;

typedef struct {
    ProblemCode code;
    uint64_t line;       /* 1-based */
    uint64_t other_line; /* of a duplicate: the line it is named on, too */
    size_t n_columns;
    Slice got;
    Slice query; /* of a duplicate */
} ScanProblem;

/* One judged document that the run returned. */
typedef struct {
    int32_t query, rank, item, tie_first, tie_last;
} JudgedRow;

/* One judged query that the run answered. */
typedef struct {
    int32_t query, n_returned, n_duplicates, n_tied, misranked, n_hits;
} AnsweredRow;

/* A query of the file that is not in the index. */
typedef struct {
    size_t place, length; /* of its name, in `extra_bytes` */
    uint32_t hash;
} ExtraQuery;

/* All that was found; the memory is the scanner's. Queries stand as they were met, their rows and hits by rank. */
typedef struct {
    const JudgedRow *judged;
    size_t n_judged;
    const AnsweredRow *answered;
    size_t n_answered;
    const double *hit_score;
    const int64_t *hit_length; /* of its id, in `hit_ids` */
    const int32_t *hit_item;   /* -1: not judged */
    size_t n_hits;
    Slice hit_ids;
    const ScanProblem *problems;
    size_t n_problems;
    const ExtraQuery *extra;
    size_t n_extra;
    const uint8_t *extra_bytes;
    uint64_t n_lines;
    Slice tag; /* of the first result line */
    bool has_tag;
} ScanResult;

#endif
