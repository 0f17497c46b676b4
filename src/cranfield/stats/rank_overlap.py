"""How alike two lists of results are, without judgments: overlap, Jaccard, and rank-biased overlap."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError

P = 0.9
"""Persistence of rank-biased overlap: the first 10 ranks have 86 % of the weight (Webber, Moffat and Zobel 2010, eq. 21)."""


def overlap(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Results that two lists share, relative to the longer list.

    Returns:
        0 to 1; 1 where both are empty.

    Example:
        >>> overlap(["a", "b", "c"], ["b", "x"])  # b is in both; the longer list has 3
        0.3333333333333333
    """
    longer = max(len(first), len(second))
    return len(set(first) & set(second)) / longer if longer else 1.0


def jaccard(first: Sequence[Hashable], second: Sequence[Hashable]) -> float:
    """Results that two lists share, relative to all results in either.

    Returns:
        0 to 1; 1 where both are empty.

    Example:
        >>> jaccard(["a", "b", "c"], ["b", "x"])  # 1 of a, b, c, x
        0.25
    """
    either = set(first) | set(second)
    return len(set(first) & set(second)) / len(either) if either else 1.0


def rank_biased_overlap(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    p: float = P,
    *,
    first_ranks: Sequence[int] | None = None,
    second_ranks: Sequence[int] | None = None,
) -> float:
    """Rank-biased overlap, extrapolated: the expected agreement at the depth where a reader with persistence p stops.

        RBO_ext = (1 - p) / p * sum over d = 1..l of A_d p^d  +  A_l p^l

    A_d is the agreement of the first d results of both: those they share, relative to their number. l is the length of the
    longer list, s that of the shorter one. Beyond s the shorter list is taken to go on with the agreement that it had at
    s: it has d results there, of which X_s (d - s) / s more are shared.

    Args:
        first: results of a system, best first, each once.
        second: those of another.
        p: persistence, between 0 and 1: the larger, the more the lower ranks count.
        first_ranks: the rank of each result of the first list where some are tied: 1, 1, 3. Tied results have the rank of
            the first of them, and A_d is 2 X_d / (n_d + m_d) with n_d, m_d results of rank d or less.
        second_ranks: those of the second list.

    Returns:
        0 to 1; 1 where both are empty, 0 where one is.

    Source:
        Webber, Moffat and Zobel (2010), "A similarity measure for indefinite rankings", ACM TOIS 28(4), eq. 32 and section
        4.5 (ties). Without ties equal to `rbo_ext` of the package rbo.

    Raises:
        UsageError: p is not between 0 and 1, a result stands twice in a list, or ranks do not pair with results.

    Example:
        >>> round(rank_biased_overlap(["a", "b"], ["b", "a"], 0.5), 4)  # A_1 = 0, A_2 = 1: .5/.5 * 1 * .25 + 1 * .25
        0.5
    """
    if not 0 < p < 1:
        raise UsageError(f"p of rank-biased overlap is {p:g}", expected="a number between 0 and 1, such as 0.9")
    places = _ranks(first, first_ranks), _ranks(second, second_ranks)
    longest, shortest = max(len(first), len(second)), min(len(first), len(second))
    if not shortest:
        return 1.0 if not longest else 0.0
    depths = np.arange(1, longest + 1)
    sizes = [np.cumsum(np.bincount(ranks, minlength=longest + 1)[1:]) for ranks in places]
    of_second = dict(zip(second, places[1].tolist(), strict=True))
    met = [
        max(rank, of_second[each]) for each, rank in zip(first, places[0].tolist(), strict=True) if each in of_second
    ]
    shared = np.cumsum(np.bincount(np.array(met, dtype=np.int64), minlength=longest + 1)[1:]).astype(np.float64)
    shared += shared[shortest - 1] * np.maximum(depths - shortest, 0) / shortest
    for size, results in zip(sizes, (first, second), strict=True):
        if len(results) < longest:
            np.maximum(size, depths, out=size, where=depths > len(results))
    agreement = 2 * shared / (sizes[0] + sizes[1])
    weights = np.power(p, depths)
    return float(min((1 - p) / p * (agreement @ weights) + agreement[-1] * weights[-1], 1.0))


def tied_ranks(scores: Sequence[float]) -> list[int]:
    """The rank of each score in a list that is sorted by them: equal scores have the rank of the first of them.

    Example:
        >>> tied_ranks([3.0, 2.0, 2.0, 1.0])
        [1, 2, 2, 4]
    """
    ranks: list[int] = []
    for rank, score in enumerate(scores, start=1):
        ranks.append(ranks[-1] if ranks and score == scores[rank - 2] else rank)
    return ranks


def _ranks(results: Sequence[Hashable], ranks: Sequence[int] | None) -> NDArray[np.int64]:
    if len(set(results)) < len(results):
        raise UsageError("a result stands twice in a list", expected="each result once")
    if ranks is None:
        return np.arange(1, len(results) + 1)
    found = np.asarray(ranks, dtype=np.int64)
    if found.shape != (len(results),) or (
        found.size and (found[0] != 1 or (np.diff(found) < 0).any() or found[-1] > found.size)
    ):
        raise UsageError("the ranks do not pair with the results", expected="one rank a result, from 1, ascending")
    return found
