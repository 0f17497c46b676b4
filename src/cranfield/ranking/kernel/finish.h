/* From the rows of one query to the ranks of its judged documents. */
#ifndef CRANFIELD_FINISH_H
#define CRANFIELD_FINISH_H

#include "scanner.h"

/* Sort the rows of one judged query, drop its duplicates, and append its results; false: see the scanner's status. */
bool finish_query(Scanner *scanner, size_t query, const Row *rows, size_t n_rows);

#endif
