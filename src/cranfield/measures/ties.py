"""Exact expected values over random orders of equal scores: every order of each tie is as likely as any other.

A tie fills the ranks `tie_first` to `tie_last`; of a list that was cut, those within it. What a measure adds up rank by rank
has the mean over the ranks of the tie; the others are counted. Axes: Q queries, J judged results.

Source: McSherry & Najork 2008, ECIR (Computing Information Retrieval Performance Measures Efficiently in the Presence of
Tied Scores).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from cranfield.measures import kernels
from cranfield.ranking.value import FloatQ, Ranking, ResultState


def mean_over_ties(ranking: Ranking, weight: Callable[[NDArray[np.int64]], NDArray[np.float64]]) -> NDArray[np.float64]:
    """float64[J]: the mean of a weight of ranks over the ranks that each judged result may have."""
    first, last = ranking.tie_first.astype(np.int64), _tie_last(ranking)
    depth = int(last.max(initial=0))
    sums = np.concatenate(([0.0], np.cumsum(weight(np.arange(1, depth + 1)))))
    alone = weight(ranking.rank.astype(np.int64))
    return np.where(first == last, alone, (sums[last] - sums[first - 1]) / (last - first + 1))


def chance_within(ranking: Ranking, cutoff: int | None) -> NDArray[np.float64]:
    """float64[J]: the probability that each judged result is within the cutoff."""
    return mean_over_ties(ranking, lambda rank: (rank <= (np.inf if cutoff is None else cutoff)).astype(np.float64))


def relevant_within(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Expected number of relevant results among the first k."""
    return kernels.per_query(ranking, ranking.level >= rel, chance_within(ranking, cutoff))


def precision(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Expected relevant results in the first k, over k or over min(k, results returned)."""
    return kernels.over(relevant_within(ranking, cutoff, rel=rel), kernels.precision_base(ranking, cutoff))


def recall(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Expected relevant results in the first k, over all that were expected."""
    return kernels.over(relevant_within(ranking, cutoff, rel=rel), kernels.expected_relevant(ranking, rel))


def judged_share(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Expected judged results in the first k, over the results there; NaN where nothing was returned."""
    shown = np.minimum(ranking.n_returned, np.inf if cutoff is None else cutoff).astype(np.float64)
    shown[shown == 0] = np.nan
    judged = kernels.per_query(ranking, ranking.state == ResultState.JUDGED, chance_within(ranking, cutoff))
    return np.where(ranking.closed_world, shown, judged) / shown


def cumulative_gain(ranking: Ranking, cutoff: int | None) -> FloatQ:
    """Expected sum of the gains of the first k results."""
    return kernels.per_query(ranking, _all(ranking), ranking.gain * chance_within(ranking, cutoff))


def discounted_gain(ranking: Ranking, cutoff: int | None, *, dcg: str = "log2") -> FloatQ:
    """Expected DCG: each gain times the mean discount of the ranks of its tie."""
    depth = np.inf if cutoff is None else cutoff
    discount = mean_over_ties(ranking, lambda rank: np.where(rank <= depth, 1.0 / np.log2(rank + 1.0), 0.0))
    return kernels.per_query(ranking, _all(ranking), kernels.worth(ranking, ranking.gain, dcg) * discount)


def ndcg(ranking: Ranking, cutoff: int | None, *, dcg: str = "log2") -> FloatQ:
    """Expected DCG over the ideal's, which no order changes."""
    return kernels.over(discounted_gain(ranking, cutoff, dcg=dcg), kernels.ideal_dcg(ranking, cutoff, dcg=dcg))


def average_precision(ranking: Ranking, cutoff: int | None, *, rel: int = 1, divisor: str = "relevant") -> FloatQ:
    """Expected sum of the precision at each relevant rank, over all that were expected.

    In a tie of m results of which r are relevant, n relevant ones above it, the result after t others of the tie is relevant
    with the probability r / m, and has then n + t (r - 1) / (m - 1) relevant ones above it.
    """
    total = np.zeros(ranking.n_queries)
    above = np.zeros(ranking.n_queries)
    for query, first, m, r in _ties_with_relevant(ranking, rel):
        t = np.arange(m if cutoff is None else max(min(m, cutoff - first + 1), 0))
        before = above[query] + t * ((r - 1) / (m - 1) if m > 1 else 0.0)
        total[query] += float((r / m * (1.0 + before) / (first + t)).sum())
        above[query] += r
    return kernels.over(total, kernels.most_relevant(ranking, cutoff, rel=rel, divisor=divisor))


def reciprocal_rank(ranking: Ranking, cutoff: int | None, *, rel: int = 1) -> FloatQ:
    """Expected reciprocal rank of the first relevant result: it is in the first tie that has one."""
    depths = [depth for depth in (cutoff, ranking.convention.rr_depth) if depth is not None]
    values = np.zeros(ranking.n_queries)
    for query, first, chance in _first_relevant(ranking, rel, min(depths, default=None)):
        values[query] = float((chance / (first + np.arange(len(chance)))).sum())
    return values


def success(ranking: Ranking, cutoff: int, *, rel: int = 1) -> FloatQ:
    """Probability that a relevant result is in the first k."""
    values = np.zeros(ranking.n_queries)
    for query, _, chance in _first_relevant(ranking, rel, cutoff):
        values[query] = min(float(chance.sum()), 1.0)
    return values


def _first_relevant(ranking: Ranking, rel: int, cutoff: int | None) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Query, first rank of its first tie with a relevant result, and the probability of each rank to be the first relevant one."""
    done = -1
    for query, first, m, r in _ties_with_relevant(ranking, rel):
        if query == done:
            continue
        done = query
        # None of the t before it is relevant, and it is: C(m - t - 1, r - 1) / C(m, r), one factor after another.
        t = np.arange(m - r + 1)
        none_before = np.concatenate(([1.0], np.cumprod((m - r - t[:-1]) / (m - t[:-1]))))
        chance = none_before * r / (m - t)
        yield query, first, chance if cutoff is None else chance[: max(cutoff - first + 1, 0)]


def _ties_with_relevant(ranking: Ranking, rel: int) -> Iterator[tuple[int, int, int, int]]:
    """Query, first rank, size and number of relevant results of each tie that has one, by query and rank."""
    rows = ranking.level >= rel
    query, first, last = ranking.query[rows], ranking.tie_first[rows], _tie_last(ranking)[rows]
    opens = np.flatnonzero(np.concatenate(([True], (np.diff(query) != 0) | (np.diff(first) != 0)))[: len(query)])
    counts = np.diff(np.append(opens, len(query)))
    for place, r in zip(opens.tolist(), counts.tolist(), strict=True):
        yield int(query[place]), int(first[place]), int(last[place] - first[place] + 1), r


def _tie_last(ranking: Ranking) -> NDArray[np.int64]:
    """int64[J]: the last rank of the tie of each judged result, within its list."""
    return np.minimum(ranking.tie_last, ranking.n_returned[ranking.query]).astype(np.int64)


def _all(ranking: Ranking) -> NDArray[np.bool_]:
    return np.ones(len(ranking.rank), dtype=np.bool_)
