"""Two samples that share nothing: whether one has another distribution, within strata."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cranfield.stats.bootstrap import key_blocks
from cranfield.stats.describe import FloatN, Values, as_vector, check_draws
from cranfield.stats.result import TestResult, untested

Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

DRAWS = 10_000
"""Permutations, the observed one included."""


def stratified_ks(
    first: Values,
    second: Values,
    first_strata: Sequence[str] = (),
    second_strata: Sequence[str] = (),
    *,
    seed: int = 0,
    n_draws: int = DRAWS,
) -> TestResult:
    """Permutation test of the largest distance between two distribution functions, within strata.

        D = max_t | sum_s w_s (F_1s(t) - F_2s(t)) |,  w_s proportional to n_1s n_2s / (n_1s + n_2s)

    Values change their sample within their stratum only, so that samples of another composition are no difference. With
    ties it is exact too, up to the number of draws.

    Args:
        first: float64[n_1].
        second: float64[n_2].
        first_strata: stratum of each value of `first`; empty: there is one stratum.
        second_strata: likewise.
        seed: of the permutations.
        n_draws: how many, the observed one included.

    Returns:
        D as `statistic`, in [0, 1], and its p-value (1 + extreme draws) / n_draws as `p_two_sided`; `n_1`, `n_2`: the
        values that were compared.

    Conventions:
        a stratum that only one sample has is not compared · nothing to compare: no p-value, and a note.

    Source: Good 2005, "Permutation, Parametric and Bootstrap Tests of Hypotheses"; statistic: `scipy.stats.ks_2samp`.

    Example:
        >>> result = stratified_ks([1, 2, 3, 4, 5], [11, 12, 13, 14, 15])
        >>> result.statistic, result.p_two_sided < 0.05
        (1.0, True)
    """
    check_draws(seed, n_draws)
    values = np.concatenate([as_vector(first), as_vector(second)])
    names = [*(first_strata or [""] * len(first)), *(second_strata or [""] * len(second))]
    strata = np.unique(names, return_inverse=True)[1] if names else np.zeros(0, dtype=np.int64)
    is_first = np.arange(len(values)) < len(first)
    n_strata = strata.max(initial=0) + 1
    n_first, n_second = (np.bincount(strata[side], minlength=n_strata) for side in (is_first, ~is_first))
    kept = (n_first * n_second > 0)[strata]
    if not kept.any():
        return untested("no stratum has values of both samples")
    return _tested(values[kept], strata[kept], is_first[kept], (n_first, n_second), seed, n_draws)


def _tested(
    values: FloatN, strata: Integers, is_first: Booleans, counts: tuple[Integers, Integers], seed: int, n_draws: int
) -> TestResult:
    """Test values whose strata have both samples."""
    n_first, n_second = counts
    weights = n_first * n_second / np.maximum(n_first + n_second, 1)
    weights /= weights.sum()
    # What a value adds to the difference of the distribution functions, as a member of the first sample or of the second.
    as_first = (weights / np.maximum(n_first, 1))[strata]
    as_second = -(weights / np.maximum(n_second, 1))[strata]
    order = np.argsort(values, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(values[order]) > 0), len(values) - 1)

    def distances(members: Booleans) -> FloatN:
        steps = np.where(members, as_first, as_second)[:, order]
        return np.asarray(np.abs(np.cumsum(steps, axis=1)[:, ends]).max(axis=1).round(12))

    observed = float(distances(is_first[None, :])[0])
    draws = (distances(_permuted(keys, strata, is_first)) for _, keys in key_blocks(seed, n_draws - 1, len(values)))
    n_extreme = sum(int((each >= observed).sum()) for each in draws)
    sizes = {"n_1": int(is_first.sum()), "n_2": int((~is_first).sum()), "n_draws": n_draws}
    return TestResult(observed, (1 + n_extreme) / n_draws, None, extra=sizes)


def _permuted(keys: NDArray[np.uint64], strata: Integers, is_first: Booleans) -> Booleans:
    """Membership with the values of each stratum in the order of their keys, for each row of keys."""
    members = np.empty(keys.shape, dtype=bool)
    for stratum in np.unique(strata):
        columns = np.flatnonzero(strata == stratum)
        members[:, columns] = is_first[columns][np.argsort(keys[:, columns], axis=1)]
    return members
