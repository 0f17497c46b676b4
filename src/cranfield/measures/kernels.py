"""What each measure computes: pure functions of a Ranking, one value per query.

No kernel orders, joins or looks at an id. What a measure divides by, and how deep it looks, is the convention's choice
where tools disagree. Axes: Q queries, J judged results, E expected entries.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from cranfield.ranking.value import UNKNOWN_COUNT, FloatQ, Ranking, ResultState

BoolJ = NDArray[np.bool_]


def relevant_rows(ranking: Ranking, rel: int, cutoff: int | None) -> BoolJ:
    """bool[J]: results of level `rel` or more within the cutoff."""
    rows: BoolJ = ranking.level >= rel
    return rows if cutoff is None else rows & (ranking.rank <= cutoff)


def per_query(ranking: Ranking, rows: BoolJ, weights: NDArray[np.float64] | None = None) -> FloatQ:
    """float64[Q]: how many of `rows` each query has, or the sum of their weights."""
    return _sum_by(
        ranking.query[rows], np.ones(int(rows.sum())) if weights is None else weights[rows], ranking.n_queries
    )


def expected_relevant(ranking: Ranking, rel: int) -> FloatQ:
    """float64[Q]: expected items of level `rel` or more; NaN where they are not counted."""
    rows = ranking.expected_level >= rel
    counts = np.where(ranking.expected_count == UNKNOWN_COUNT, np.nan, ranking.expected_count)
    return _sum_by(ranking.expected_query[rows], counts[rows], ranking.n_queries)


def never_judged(ranking: Ranking) -> NDArray[np.bool_]:
    """bool[Q]: queries without a judgment. A rule that matches no document, or a negative query, is a judgment."""
    judged = np.zeros(ranking.n_queries, dtype=np.bool_)
    judged[ranking.expected_query] = True
    return ~judged & ~ranking.closed_world


def first_relevant_rank(ranking: Ranking, *, rel: int = 1, cutoff: int | None = None) -> FloatQ:
    """float64[Q]: rank of the first relevant result; infinity where there is none."""
    rows = relevant_rows(ranking, rel, cutoff)
    first = np.full(ranking.n_queries, np.inf)
    np.minimum.at(first, ranking.query[rows], ranking.rank[rows])
    return first


def reciprocal_rank(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """One over the rank of the first relevant result; 0 where there is none, or none as deep as the convention looks."""
    depths = [depth for depth in (cutoff, ranking.convention.rr_depth) if depth is not None]
    return 1.0 / first_relevant_rank(ranking, rel=rel, cutoff=min(depths, default=None))


def precision(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Relevant results in the first k, over k, however short the list; or over what the convention counts."""
    return over(per_query(ranking, relevant_rows(ranking, rel, cutoff)), precision_base(ranking, cutoff))


def precision_base(ranking: Ranking, cutoff: int) -> FloatQ:
    """float64[Q]: what P@k divides by: k, the judged results within k, or the results within k."""
    if ranking.convention.precision_over == "judged":
        return judged_within(ranking, cutoff)
    if ranking.convention.precision_over == "returned":
        return np.minimum(ranking.n_returned, cutoff).astype(np.float64)
    return np.full(ranking.n_queries, float(cutoff))


def judged_within(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """float64[Q]: judged results within the cutoff; all of them where nothing can be unjudged."""
    rows = ranking.state == ResultState.JUDGED
    shown = ranking.n_returned if cutoff is None else np.minimum(ranking.n_returned, cutoff)
    judged = per_query(ranking, rows if cutoff is None else rows & (ranking.rank <= cutoff))
    return np.where(ranking.closed_world, shown, judged)


def recall(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Relevant results in the first k, over all that were expected; 0 where nothing was."""
    rows = relevant_rows(ranking, rel, cutoff)
    if ranking.convention.credit == "every":
        found = _sum_by(ranking.expected_query, items_found(ranking, rows, rel, cutoff), ranking.n_queries)
        return over(found, expected_relevant(ranking, rel))
    return over(per_query(ranking, rows), expected_relevant(ranking, rel))


def success(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """1 where a relevant result is in the first k, else 0."""
    return (per_query(ranking, relevant_rows(ranking, rel, cutoff)) > 0).astype(np.float64)


def average_precision(ranking: Ranking, cutoff: int | None, *, rel: int = 1, divisor: str = "relevant") -> FloatQ:
    """Sum of the precision at each relevant rank, over all that were expected; 0 where nothing was."""
    rows = relevant_rows(ranking, rel, cutoff)
    query = ranking.query[rows]
    position = np.arange(len(query))
    starts = np.searchsorted(query, np.arange(ranking.n_queries))
    nth_relevant = position - starts[query] + 1
    weights = np.zeros(len(ranking.rank))
    weights[rows] = nth_relevant / ranking.rank[rows]
    if divisor == "retrieved" or ranking.convention.average_precision_over == "found":
        return over(per_query(ranking, rows, weights), per_query(ranking, rows))
    return over(per_query(ranking, rows, weights), most_relevant(ranking, cutoff, rel=rel, divisor=divisor))


def most_relevant(ranking: Ranking, cutoff: int | None, *, rel: int, divisor: str) -> FloatQ:
    """float64[Q]: relevant results that a list could have: all that were expected, or as many as stand within the cutoff."""
    most = np.inf if cutoff is None or divisor == "relevant" else cutoff
    return np.minimum(expected_relevant(ranking, rel), most)


def ndcg(ranking: Ranking, cutoff: int | None, *, dcg: str = "log2") -> FloatQ:
    """Discounted gain over the ideal's; 0 where nothing with gain was expected."""
    rows = np.ones(len(ranking.rank), dtype=np.bool_) if cutoff is None else ranking.rank <= cutoff
    gained = per_query(ranking, rows, worth(ranking, ranking.gain, dcg) / np.log2(ranking.rank + 1.0))
    return over(gained, ideal_dcg(ranking, cutoff, dcg=dcg))


def ideal_dcg(ranking: Ranking, cutoff: int | None, *, dcg: str = "log2") -> FloatQ:
    """float64[Q]: the DCG that nDCG divides by: the most that k results could gain, or what the convention takes for it.

    NaN where a count with gain is unknown and the convention needs it.
    """
    ideal = ranking.convention.ideal
    if ideal == "one":
        return np.ones(ranking.n_queries)
    if ideal == "retrieved":
        return _retrieved_ideal(ranking, cutoff, dcg)
    depth = None if ideal == "judged uncut" else cutoff
    # The same for every run on these judgments, so it is kept as long as they are.
    gain, count = ranking.expected_gain, ranking.expected_count
    key = (id(gain), id(count), depth, dcg, ranking.convention.gain)
    known = _IDEALS.get(key)
    if known is not None and known[0]() is gain and known[1]() is count:
        return known[2].copy()
    if len(_IDEALS) >= MAX_IDEALS:
        _IDEALS.clear()
    found = _judged_ideal(ranking, depth, dcg)
    _IDEALS[key] = (ref(gain), ref(count), found)
    return found.copy()


MAX_IDEALS = 64
_IDEALS: dict[tuple[object, ...], tuple[ref[NDArray[Any]], ref[NDArray[Any]], FloatQ]] = {}


def _judged_ideal(ranking: Ranking, cutoff: int | None, dcg: str) -> FloatQ:
    """DCG of the expected items in their best order."""
    gains, query = worth(ranking, ranking.expected_gain, dcg), ranking.expected_query
    order = np.lexsort((-gains, query))  # gains need not fall with the grade
    gains, counted = gains[order], ranking.expected_count[order]
    unknown = (counted == UNKNOWN_COUNT) & (gains > 0)
    counts = np.where(gains > 0, np.maximum(counted, 0), 0)
    # Each entry fills the ranks after those before it.
    ends = np.cumsum(counts)
    before_query = np.concatenate(([0], ends))[ranking.expected_start[:-1]]
    last = ends - before_query[query]
    first = last - counts
    if cutoff is not None:
        first, last = np.minimum(first, cutoff), np.minimum(last, cutoff)
    depth = int(last.max(initial=0))
    discount_sum = np.concatenate(([0.0], np.cumsum(1.0 / np.log2(np.arange(2, depth + 2)))))
    entries = gains * (discount_sum[last] - discount_sum[first])
    entries[unknown] = np.nan
    return _sum_by(ranking.expected_query, entries, ranking.n_queries)


def _retrieved_ideal(ranking: Ranking, cutoff: int | None, dcg: str) -> FloatQ:
    """DCG of the results within the cutoff in their best order."""
    rows = ranking.gain > 0 if cutoff is None else (ranking.gain > 0) & (ranking.rank <= cutoff)
    query, gains = ranking.query[rows], worth(ranking, ranking.gain[rows], dcg)
    gains = gains[np.lexsort((-gains, query))]
    rank = np.arange(len(query)) - np.searchsorted(query, np.arange(ranking.n_queries))[query] + 1
    return _sum_by(query, gains / np.log2(rank + 1.0), ranking.n_queries)


def judged_share(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Judged results in the first k, or of all, over the results there; NaN where nothing was returned."""
    shown = np.minimum(ranking.n_returned, np.inf if cutoff is None else cutoff).astype(np.float64)
    shown[shown == 0] = np.nan
    return judged_within(ranking, cutoff) / shown


def worth(ranking: Ranking, gain: NDArray[np.float64], dcg: str) -> NDArray[np.float64]:
    """Gains as DCG adds them up; under a convention of exponential gain they are that already."""
    return gain if dcg == "log2" or ranking.convention.gain == "exponential" else np.exp2(gain) - 1.0


def items_found(ranking: Ranking, rows: BoolJ, rel: int, cutoff: int | None) -> NDArray[np.float64]:
    """float64[E]: how often each expected item is among some rows, at most as often as expected; one row may be several."""
    entries = (ranking.expected_start[ranking.query] + ranking.item)[rows]
    hits = np.bincount(entries, minlength=len(ranking.expected_query))
    known = ranking.expected_count != UNKNOWN_COUNT
    found = np.where(known, np.minimum(hits, ranking.expected_count), hits)
    if ranking.covered is not None:
        covered = (ranking.covered > 0) & (ranking.expected_level >= rel)
        if cutoff is not None:
            covered &= ranking.covered <= cutoff
        found = np.maximum(found, covered)
    return found.astype(np.float64)


def over(numerator: FloatQ, denominator: FloatQ) -> FloatQ:
    """Divide, with 0 where the denominator is 0 and NaN where it is no finite number."""
    result = np.zeros_like(numerator)
    np.divide(numerator, np.where(np.isinf(denominator), np.nan, denominator), out=result, where=denominator != 0)
    return result


def _sum_by(query: NDArray[np.int32], weights: NDArray[np.float64], n_queries: int) -> FloatQ:
    return np.bincount(query, weights=weights, minlength=n_queries).astype(np.float64)
