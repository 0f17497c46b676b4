"""Every result of a TREC run file, by the readers that score it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cranfield.formats.io.delimited import id_bytes, id_text
from cranfield.formats.io.files import stem
from cranfield.model import Answer, Convention, Hit, Outcome, Run
from cranfield.ranking import python_reader
from cranfield.ranking.engine import requested_jobs, scan_file
from cranfield.ranking.scan import JudgedIndex, Scan, ScanOptions


def scan_hits(
    path: Path, query_ids: Sequence[str] | None, rules: Convention, depth: int | None = None
) -> tuple[Scan, Mapping[str, Sequence[Hit]]]:
    """The scan of a TREC file, and every result of the queries it answers, rank 1 first.

    Args:
        path: the file.
        query_ids: the queries; None: all of the file, which is read once more for their names.
        rules: order, ties and duplicates: a repeated result is an error, or kept.
        depth: ranks kept per query; None keeps all.
    """
    options = ScanOptions(order=rules.file_order, ties=rules.tie_order, width=rules.score_width, depth=depth)
    if query_ids is None:
        query_ids = scan_file(path, JudgedIndex((), ()), options, requested_jobs()).extra_queries
    n = len(query_ids)
    index = JudgedIndex(tuple(map(id_bytes, query_ids)), ((),) * n, (True,) * n)
    if rules.repeats == "kept":
        scan = python_reader.scan_file(path, index, replace(options, duplicates="kept"))
    else:
        scan = scan_file(path, index, options, requested_jobs())
    hits = {
        query_id: [Hit(id_text(doc_id), score) for doc_id, score, _ in scan.top.of(query)]
        for query, query_id in enumerate(query_ids)
        if scan.answered[query]
    }
    return scan, hits


def table_run(path: Path, hits: Mapping[str, Sequence[Hit]], rules: Convention) -> Run:
    """The results of a table as a run: it has no row for an answer without a result."""
    answers = {query_id: Answer(Outcome.ANSWERED, tuple(of_query)) for query_id, of_query in hits.items()}
    return Run(stem(path), answers, order="descending" if rules.file_order == "score" else "given", says_empty=False)
