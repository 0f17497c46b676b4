"""A run file as answers in memory, read by the readers that score it: one order, one rule of duplicates, the same errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cranfield.formats.runs.files import read_whole
from cranfield.formats.sniff import sniff_run
from cranfield.model import Convention, Hit, Run, TestSet, convention_named
from cranfield.ranking.all_hits import scan_hits, table_run
from cranfield.ranking.collected import order_hits
from cranfield.ranking.join import no_common_query


def read_run_file(path: Path | str, testset: TestSet | None = None, convention: str | Convention = "trec") -> Run:
    """Read a run of any format, the results of each query best first, as the run and the convention say.

    Args:
        path: the file.
        testset: whose queries are read; None reads every query of the file.
        convention: the order of the file, ties and duplicates.

    Raises:
        RunFormatError: as in scoring the file: it cannot be read, is no run, or has malformed lines or duplicates.
        NoCommonQueryError: it is a table that answers no query of the test set.
    """
    return read_first_results(path, testset, convention)[0]


def read_first_results(
    path: Path | str, testset: TestSet | None, convention: str | Convention, depth: int | None = None
) -> tuple[Run, str]:
    """As `read_run_file`, of a TREC file the first `depth` results of each query; and the digest that scoring reports."""
    path, rules = Path(path), convention_named(convention)
    found = sniff_run(path)
    if found.read is not None:
        whole = read_whole(found, path)
        return _best_first(whole, rules), whole.digest
    query_ids = None if testset is None else testset.query_ids
    digest = ""
    if found.name == "parquet":
        from cranfield.ranking.memory import run_of_ranks, table_answers

        if (by_rank := run_of_ranks(path)) is not None:
            return by_rank, by_rank.digest
        answers, extra = table_answers(path, query_ids, rules)
        hits: Mapping[str, Sequence[Hit]] = {
            query_id: [Hit(doc_id, score) for doc_id, score in scores.items()] for query_id, scores in answers.items()
        }
    else:
        scan, hits = scan_hits(path, query_ids, rules, depth)
        extra, digest = scan.extra_queries, scan.digest
    if testset is not None and not hits:
        raise no_common_query(testset.name, testset.query_ids, extra)
    run = replace(table_run(path, hits, rules), extra_queries=() if testset is None else extra)
    return (_best_first(run, rules) if found.name == "parquet" else run), digest or run.digest


def without_identical_ids(run: Run) -> Run:
    """A run without the results whose id is that of their query."""
    answers = {
        query_id: replace(answer, hits=tuple(hit for hit in answer.hits if hit.id != query_id))
        for query_id, answer in run.answers.items()
    }
    return replace(run, answers=answers)


def _best_first(run: Run, rules: Convention) -> Run:
    """A run with the results of each query sorted as it declares."""
    if run.order == "given":
        return run
    answers = {
        query_id: replace(answer, hits=tuple(order_hits(query_id, answer, run, rules)))
        for query_id, answer in run.answers.items()
    }
    return replace(run, answers=answers)
