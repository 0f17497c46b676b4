"""Collected runs: the lists that a system returned, put in their declared order and ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from cranfield.errors import Problem, RunFormatError
from cranfield.formats.io.delimited import id_bytes
from cranfield.matching.expectation import by_place
from cranfield.model import Answer, Convention, Hit, Outcome, Run, TestSet
from cranfield.ranking.all_hits import scan_hits, table_run
from cranfield.ranking.join import NO_TIES, RankedRun, RankingBuilder, no_common_query
from cranfield.ranking.prepared import PreparedJudgments
from cranfield.ranking.query_ranker import RankedQuery, rank_query
from cranfield.ranking.scan import REPORTED_HITS, Missing, ScanOptions
from cranfield.ranking.value import Ranking, cut_at


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
        is_place = by_place(testset, query_id) if convention.repeats == "dropped" else None
        ranked = _rank_hits(query_id, hits, run, convention, by_place=is_place)
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


def order_hits(query_id: str, answer: Answer, run: Run, convention: Convention) -> list[Hit]:
    """The hits of an answer in the order the run declares, duplicates included."""
    ranked = _rank_hits(query_id, answer.hits, run, convention, by_place=None)
    return [answer.hits[position] for position in ranked.order]


def _rank_hits(
    query_id: str, hits: Sequence[Hit], run: Run, convention: Convention, *, by_place: bool | None
) -> RankedQuery:
    """Rank hits; duplicates are those of one id, or of one id and place, or none where `by_place` is None."""
    options = ScanOptions("given" if run.order == "given" else "score", convention.tie_order, convention.score_width)
    scores = [0.0] * len(hits) if run.order == "given" else _scores(query_id, hits, run)
    ids = [(hit.id, hit.span if by_place else None, None if by_place is not None else n) for n, hit in enumerate(hits)]
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
