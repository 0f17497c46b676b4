/* A push parser of TREC run files: bytes go in, in pieces of any size, and per query the ranks of its judged documents
 * come out.
 *
 * Only the rows of the current query are in memory, so the rows of a query have to be contiguous. Where they are not,
 * the status is SCAN_INTERLEAVED, and the file is read again by a scanner with `gather`, which keeps the rows of all
 * judged queries. The scanner is independent of Python, uses no globals and prints nothing. One scanner serves one
 * thread; an index may be shared by any number of them.
 */
#ifndef CRANFIELD_SCAN_H
#define CRANFIELD_SCAN_H

#include "scanner.h"

ScanStatus scanner_feed(Scanner *scanner, const void *bytes, size_t n_bytes);
/* The end of the file: rank the last query, or all of them when gathering. */
ScanStatus scanner_finish(Scanner *scanner);

/* Offset of the first line whose query differs from that of the line before it, or n_bytes when there is none. The
 * bytes may begin inside a line, so everything before the first line feed is skipped. */
size_t query_change(const void *bytes, size_t n_bytes);

#endif
