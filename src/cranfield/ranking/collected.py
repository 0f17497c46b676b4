"""Runs in memory: the lists that a system returned, or that a run file holds, put in their declared order and ranked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cranfield.base.errors import Problem, RunFormatError
from cranfield.formats.io.delimited import id_bytes, id_text
from cranfield.formats.io.files import stem
from cranfield.formats.runs.files import read_whole
from cranfield.formats.sniff import sniff_run
from cranfield.model import Answer, Convention, Hit, Outcome, Passage, Run, TestSet, convention_named
from cranfield.ranking import python_reader
from cranfield.ranking.engine import requested_jobs, scan_file
from cranfield.ranking.join import NO_TIES, RankedRun, RankingBuilder, no_common_query
from cranfield.ranking.matching.expectation import by_place
from cranfield.ranking.matching.passages import place_key
from cranfield.ranking.prepared import PreparedJudgments
from cranfield.ranking.query_ranker import RankedQuery, rank_query
from cranfield.ranking.scan import REPORTED_HITS, JudgedIndex, Missing, Scan, ScanOptions
from cranfield.ranking.value import Ranking, cut_at


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


def rank_run(
    testset: TestSet,
    run: Run,
    convention: Convention,
    *,
    missing: Missing = "zero",
    depth: int | None = None,
    keep: int = REPORTED_HITS,
) -> Ranking:
    """Rank a collected run: in its declared order, duplicates dropped or kept, cut to its depth or to a smaller one."""
    judgments = PreparedJudgments(testset, convention)
    builder = RankingBuilder(judgments, keep=keep, order=run.order, states_empty=run.says_empty)
    deepest = min((limit for limit in (run.depth, depth) if limit is not None), default=None)
    for query, query_id in enumerate(judgments.query_ids):
        answer = run.answers.get(query_id)
        if answer is None or answer.outcome is Outcome.MISSING:
            continue
        # A failure is worth nothing, whatever the system had returned by then.
        hits = () if answer.outcome.is_failure else answer.hits
        n_identical = 0
        if judgments.ignores_identical_ids:
            others = tuple(hit for hit in hits if hit.id != query_id)
            hits, n_identical = others, len(hits) - len(others)
        key = _place_key_of(testset, query_id) if convention.repeats == "dropped" else None
        ranked = _rank_hits(query_id, hits, run, convention, key)
        builder.add_list(
            query,
            [hits[position] for position in ranked.order[:deepest]],
            answer.outcome,
            n_duplicates=len(ranked.repeated),
            n_identical=n_identical,
            reason=answer.reason,
            ties=NO_TIES if run.order == "given" else ranked.ties,
            fields=answer.fields,
        )
    return cut_at(builder.build(missing), deepest)


def rank_as_shown(
    testset: TestSet, path: Path, convention: Convention, *, missing: Missing, depth: int | None, keep: int
) -> RankedRun:
    """Rank a TREC run file under a convention that keeps repeated results; the arguments are those of `rank_file`.

    Raises:
        RunFormatError: with every bad line found.
        NoCommonQueryError: the file answers no judged query.
    """
    scan, hits = scan_hits(path, testset.query_ids, convention)
    if not hits:
        raise no_common_query(testset.name, testset.query_ids, scan.extra_queries)
    run = table_run(path, hits, convention)
    return RankedRun(
        rank_run(testset, run, convention, missing=missing, depth=depth, keep=keep),
        run.name,
        n_lines=scan.n_lines,
        extra_queries=scan.extra_queries,
        misranked=(),
        n_tied=0,
        engine="python",
        make_digest=lambda: run.digest,
    )


def _place_key_of(testset: TestSet, query_id: str) -> Callable[[Hit], object]:
    """What tells two results of one id apart, in what a query expects."""
    if any(isinstance(target, Passage) for target in testset.targets.get(query_id, ())):
        return place_key
    return (lambda hit: hit.span) if by_place(testset, query_id) else (lambda _: None)


def order_hits(query_id: str, answer: Answer, run: Run, convention: Convention) -> list[Hit]:
    """The hits of an answer in the order the run declares, duplicates included."""
    ranked = _rank_hits(query_id, answer.hits, run, convention, None)
    return [answer.hits[position] for position in ranked.order]


def _rank_hits(
    query_id: str, hits: Sequence[Hit], run: Run, convention: Convention, key: Callable[[Hit], object] | None
) -> RankedQuery:
    """Rank hits; duplicates are those of one id and one key, or none where there is no key."""
    options = ScanOptions("given" if run.order == "given" else "score", convention.tie_order, convention.score_width)
    scores = [0.0] * len(hits) if run.order == "given" else _scores(query_id, hits, run)
    ids = [(hit.id, n if key is None else key(hit)) for n, hit in enumerate(hits)]
    return rank_query(ids, scores, options, tie_key=lambda key: id_bytes(key[0]))


def _scores(query_id: str, hits: Sequence[Hit], run: Run) -> list[float]:
    """The scores, larger is better."""
    way = 1 if run.order == "descending" else -1
    scores = [way * hit.score for hit in hits if hit.score is not None and math.isfinite(hit.score)]
    if len(scores) == len(hits):
        return scores
    unscored = next(n for n, hit in enumerate(hits, start=1) if hit.score is None or not math.isfinite(hit.score))
    raise RunFormatError(
        Problem(
            f"run {run.name!r}, query {query_id!r}: hit {unscored} has no score",
            expected=f"a finite score on every hit, because the system declares order: {run.order}",
            hint="extract the score too, or declare order: given",
        )
    )


def read_run_file(
    path: Path | str,
    testset: TestSet | None = None,
    convention: str | Convention = "trec",
    *,
    run_format: str | None = None,
) -> Run:
    """Read a run of any format, the results of each query best first, as the run and the convention say.

    Args:
        path: the file.
        testset: whose queries are read; None reads every query of the file.
        convention: the order of the file, ties and duplicates.
        run_format: name of its format, where the content does not tell.

    Raises:
        RunFormatError: as in scoring the file: it cannot be read, is no run, or has malformed lines or duplicates.
        NoCommonQueryError: it is a table that answers no query of the test set.
    """
    return read_first_results(path, testset, convention, run_format=run_format)[0]


def read_first_results(
    path: Path | str,
    testset: TestSet | None,
    convention: str | Convention,
    depth: int | None = None,
    *,
    run_format: str | None = None,
) -> tuple[Run, str]:
    """As `read_run_file`, of a TREC file the first `depth` results of each query; and the digest that scoring reports."""
    path, rules = Path(path), convention_named(convention)
    found = sniff_run(path, run_format)
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
