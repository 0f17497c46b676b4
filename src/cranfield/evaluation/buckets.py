"""Two partitions of the paired queries: what happened to the value, and what happened to the first relevant rank."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cranfield.evaluation.values import BUCKETS, MOVES, NOTHING_TO_FIND, Evaluation
from cranfield.evaluation.verdict import sign_of
from cranfield.measures import Measure
from cranfield.measures.kernels import first_relevant_rank
from cranfield.ranking.value import FloatQ, Silence


def bucket_queries(
    baseline: Evaluation, candidate: Evaluation, primary: Measure, differences: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """Put every paired query in exactly one of `BUCKETS`; empty buckets are kept."""
    rel = primary.whole("rel", 1)
    ranks = [
        first_relevant_rank(evaluation.ranking, rel=rel, cutoff=primary.depth) for evaluation in (baseline, candidate)
    ]
    sign = sign_of(primary)
    buckets: dict[str, list[str]] = {name: [] for name in BUCKETS}
    for query_id, difference in differences.items():
        failed = (_failed(baseline, query_id), _failed(candidate, query_id))
        before, after = _ranks(baseline, candidate, ranks, query_id)
        found = (math.isfinite(before), math.isfinite(after))
        if _is_negative(baseline, query_id):
            found = (True, True)  # nothing should be: only the value moves
        buckets[_bucket(failed, found, sign * difference)].append(query_id)
    return {name: tuple(query_ids) for name, query_ids in buckets.items()}


def move_queries(baseline: Evaluation, candidate: Evaluation, query_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Put every paired query in exactly one of `MOVES`, or in `NOTHING_TO_FIND`; empty ones of `MOVES` are kept."""
    ranks = [first_relevant_rank(evaluation.ranking) for evaluation in (baseline, candidate)]
    moves: dict[str, list[str]] = {name: [] for name in MOVES}
    for query_id in query_ids:
        if _failed(baseline, query_id) or _failed(candidate, query_id):
            moves["failed"].append(query_id)
        elif _is_negative(baseline, query_id):
            moves.setdefault(NOTHING_TO_FIND, []).append(query_id)
        else:
            moves[_move(*_ranks(baseline, candidate, ranks, query_id))].append(query_id)
    return {name: tuple(ids) for name, ids in moves.items()}


def _bucket(failed: tuple[bool, bool], found: tuple[bool, bool], gain: float) -> str:
    if any(failed):
        return {(True, True): "failed in both", (True, False): "failed in baseline"}.get(failed, "failed in candidate")
    # nDCG also pays grades between 0 and 1, which no rank of a relevant result shows.
    if found != (True, True) and (any(found) or gain == 0):
        return {(False, False): "never found", (False, True): "newly found"}.get(found, "lost")
    if gain == 0:
        return "unchanged"
    return "improved" if gain > 0 else "worsened"


def _move(before: float, after: float) -> str:
    if before == 1 or after == 1:
        return "stayed at rank 1" if before == after else "moved to rank 1" if after == 1 else "moved from rank 1"
    if math.isinf(before) or math.isinf(after):
        if before == after:
            return "never found"
        return "newly found below rank 1" if math.isinf(before) else "lost from below rank 1"
    if before == after:
        return "same rank below 1"
    return "rose below rank 1" if after < before else "fell below rank 1"


def _failed(evaluation: Evaluation, query_id: str) -> bool:
    return evaluation.ranking.outcomes[evaluation.index[query_id]].is_failure


def _is_negative(evaluation: Evaluation, query_id: str) -> bool:
    """Whether nothing should be found."""
    silence = evaluation.ranking.silence
    return silence is not None and bool(silence[evaluation.index[query_id]] != Silence.NOT_NEGATIVE)


def _ranks(baseline: Evaluation, candidate: Evaluation, ranks: Sequence[FloatQ], query_id: str) -> tuple[float, float]:
    return float(ranks[0][baseline.index[query_id]]), float(ranks[1][candidate.index[query_id]])
