"""Slices of queries, each against the rest: the permutation of the whole search, and effects shrunk towards the mean of all.

Every permutation deals the differences anew to the queries, and all slices are computed on it, so that what slices have in common is
kept. A permutation is two products of the matrix of slices by queries: with the differences, and with their squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.bootstrap import fixed_point, key_blocks
from cranfield.stats.describe import TOLERANCE, FloatN, Values, as_vector, check_draws

Members = NDArray[np.bool_]
"""Slices by queries."""
PRIOR = 2.0
"""Queries that the variance of all differences counts as in the variance of a slice and of its rest. Without them a slice of ten equal
differences has a variance of none; with 10 of them a slice that spreads wider than the rest is found too often (simulated: an
error of .10 at .05, and of .06 with 2; 300 queries, of which those of one slice, a sixth, spread three times as far)."""
TIE = 1e-9
"""Squares of t that differ by this share are equal."""
ROWS, COLUMNS = 64, 1 << 14
"""Fewest permutations in one matrix product, and most queries; they do not change the result."""
WORK = 2_000_000_000
"""Multiplications from which fewer permutations are used."""
STEPS, SPARSE = 100, 0.05
"""Steps of the estimation in `shrunken_effects`, and the share of effects that it starts with."""
MIN_DRAWS, MAX_DRAWS = 1_000, 5_000


@dataclass(frozen=True, slots=True, eq=False)
class SliceTests:
    """Each slice against the rest; arrays of one value a slice."""

    n: NDArray[np.int64]
    """Queries of the slice."""
    inside: FloatN
    """Mean difference of its queries."""
    outside: FloatN
    """Mean difference of all others."""
    t: FloatN
    p: FloatN
    """The p-value of this slice alone."""
    p_adjusted: FloatN
    """The p-value adjusted for all slices."""
    shrunken: FloatN
    """The mean difference of its queries, shrunk towards the mean of all: its difference from the rest by `shrunken_effects`, fitted
    on the first family."""
    n_draws: int
    """Permutations, the observed order included."""


def draws_for(n_queries: int, n_slices: int) -> int:
    """Permutations of a search, the observed order included: fewer where it is large."""
    return int(np.clip(WORK // max(1, n_queries * n_slices), MIN_DRAWS, MAX_DRAWS))


def slice_tests(
    differences: Values,
    members: Members,
    *,
    families: Sequence[int] | None = None,
    shares: Sequence[float] = (1.0,),
    seed: int = 0,
    n_draws: int | None = None,
) -> SliceTests:
    """Test of each slice whether its mean difference is that of the rest, adjusted for all of them.

        t = (mean_in - mean_out) / sqrt(v_in / n_in + v_out / n_out),
        v = (sum of squares about the own mean + PRIOR * variance of all) / (n - 1 + PRIOR)
        p = share of the permutations whose |t| is at least that of the slice
        p_adjusted, of the slices of a family by |t| from the largest down: share of the permutations whose largest |t| of this and
            all slices below it is at least that, never less than that of the slice above; divided by the share of the family

    Args:
        differences: float64[n], candidate minus baseline.
        members: bool[G, n], each slice with one query or more in it and out of it.
        families: the family of each slice, an index of `shares`; None: all are one.
        shares: of the significance level that each family has; they add up to at most 1. A family without a slice leaves its
            share to the others.
        seed: of the permutations.
        n_draws: permutations, the observed order included; None: `draws_for`.

    Conventions:
        all differences equal within 1e-12: t 0, p 1 · squares of t within 1e-9 of each other are equal · the order of the queries enters the random numbers: sort
        them · the observed order counts: no p is under 1 / n_draws.

    Source:
        Westfall & Young 1993, Resampling-Based Multiple Testing, algorithm 2.8 (step-down max-T); Chung & Romano 2013, Ann.
        Stat. 41(2): of a studentized mean the permutation test is exact where slices do not matter at all, and right in large slices
        where only the spread differs; Roeder & Wasserman 2009, Stat. Sci. 24(4) (families of unequal weight).
        p is that of `scipy.stats.permutation_test` with permutation_type='independent' on this statistic.

    Raises:
        UsageError: a slice without a query in it or out of it.
    """
    vector = as_vector(differences, "differences")
    n_draws = draws_for(len(vector), len(members)) if n_draws is None else n_draws
    check_draws(seed, n_draws)
    sizes = members.sum(axis=1).astype(np.int64)
    if not len(vector) or (len(sizes) and not (sizes.min() > 0 and sizes.max() < len(vector))):
        raise UsageError("a slice has no query, or all of them", expected="slices of some of the queries")
    mean = float(vector.mean())
    centred = vector - mean
    centred[np.abs(centred) <= TOLERANCE * np.abs(vector).max()] = 0.0
    search = _Search(centred, members, sizes)
    inside, outside, variance = search.means_and_variance()
    observed = search.t_squared(np.arange(len(vector))[np.newaxis])[:, 0]
    reached = (observed * (1 - TIE))[:, np.newaxis]
    family = np.zeros(len(sizes), dtype=np.int64) if families is None else np.asarray(families, dtype=np.int64)
    present = sorted(set(family.tolist())) or [0]
    given = sum(shares[each] for each in present)
    # By |t| from below within a family: the running maximum is over a slice and all that come after it in the step-down.
    orders = {
        each: (rows := np.flatnonzero(family == each))[np.argsort(observed[rows], kind="stable")] for each in present
    }
    alone, stepped = np.ones(len(sizes)), np.ones(len(sizes))
    for permuted in _permutations(seed, n_draws - 1, len(vector)):
        t_squared = search.t_squared(permuted)
        alone += np.count_nonzero(t_squared >= reached, axis=1)
        for order in orders.values():
            largest = np.maximum.accumulate(t_squared[order], axis=0)
            stepped[order] += np.count_nonzero(largest >= reached[order], axis=1)
    adjusted = np.ones(len(sizes))
    for each, order in orders.items():
        down = order[::-1]
        adjusted[down] = np.minimum(1.0, np.maximum.accumulate(stepped[down] / n_draws) * (given / shares[each]))
    shrunken_gaps = shrunken_effects(inside - outside, variance, family == present[0])
    return SliceTests(
        n=sizes,
        inside=mean + inside,
        outside=mean + outside,
        t=np.copysign(np.sqrt(observed), inside - outside),
        p=alone / n_draws,
        p_adjusted=adjusted,
        shrunken=mean + shrunken_gaps * (1 - sizes / len(vector)),
        n_draws=n_draws,
    )


def shrunken_effects(effects: FloatN, variances: FloatN, fitted: NDArray[np.bool_] | None = None) -> FloatN:
    """Effects shrunk towards zero by how many of all are likely to be none, and by how far apart the others lie.

        a share 1 - s of the effects are none, the others are N(0, tau^2); each is seen with its variance
        shrunken = w e tau^2 / (tau^2 + variance),  w the chance that the effect is one of the others

    Args:
        effects: float64[G], differences from a common centre.
        variances: of each effect; 0 leaves an effect as it is.
        fitted: bool[G], the effects that s and tau^2 are estimated on (maximum likelihood by `STEPS` of EM); None: all.

    Conventions:
        s is 1 / G or more, of the effects that it is estimated on: the rarest that can be seen.

    Source:
        Johnstone & Silverman 2004, Ann. Stat. 32(4) (empirical Bayes of sparse effects; here the slab is normal); Efron 2010,
        Large-Scale Inference, 2. With one group (s = 1) it is the James-Stein estimator of Efron & Morris 1975, JASA 70, which
        shrinks the one effect among many that are none to almost nothing.

    Example:
        >>> shrunken_effects(np.array([6.0, 0.5, -1.0, 0.8, -0.3, 0.1]), np.ones(6)).round(2).tolist()
        [5.78, 0.03, -0.08, 0.05, -0.02, 0.0]
    """
    use = variances > 0 if fitted is None else fitted & (variances > 0)
    if not use.any():
        return effects.copy()
    squares, seen = effects[use] ** 2, variances[use]
    share, between = SPARSE, max(float((squares - seen).max()), float(seen.mean()))
    for _ in range(STEPS):
        chance = _chance(squares, seen, share, between)
        share = float(np.clip(chance.mean(), 1 / len(seen), 1 - 1e-6))
        between = max(float(chance @ (squares - seen) / max(chance.sum(), 1e-12)), float(seen.mean()) * 1e-6)
    known = np.where(variances > 0, variances, 1.0)
    shrunken = effects * _chance(effects**2, known, share, between) * between / (between + known)
    return np.where(variances > 0, shrunken, effects)


def _chance(squares: FloatN, variances: FloatN, share: float, between: float) -> FloatN:
    """The chance that each effect is not none: by Bayes' rule from the logarithms of both densities."""
    wide = variances + between
    log_odds = (squares / variances - squares / wide + np.log(variances / wide)) / 2 + math.log(share / (1 - share))
    return 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))


class _Search:
    """The slices, and what does not change from one permutation to the next.

    With S the sum of a slice about the mean of all, and W the sum of its squares, the sum of the rest is -S and its squares are
    those of all less W, so t^2 = gap S^2 / (const + slope W - bend S^2).
    """

    def __init__(self, centred: FloatN, members: Members, sizes: NDArray[np.int64]) -> None:
        self.first, self.second = fixed_point(centred), fixed_point(centred**2)
        self.members: NDArray[np.bool_] | FloatN = members if len(centred) > COLUMNS else members.astype(np.float64)
        n_in = sizes[:, np.newaxis].astype(np.float64)
        n_out = len(centred) - n_in
        all_squares = math.ldexp(self.second.total, self.second.exponent)
        self.prior = PRIOR * all_squares / max(1, len(centred) - 1)
        per_in, per_out = 1 / (n_in * (n_in - 1 + PRIOR)), 1 / (n_out * (n_out - 1 + PRIOR))
        self.n_in, self.n_out, self.per_in, self.per_out = n_in, n_out, per_in, per_out
        self.gap = (1 / n_in + 1 / n_out) ** 2 * 4.0**self.first.exponent
        self.slope = (per_in - per_out) * 2.0**self.second.exponent
        self.bend = (per_in / n_in + per_out / n_out) * 4.0**self.first.exponent
        self.const = self.prior * per_in + (all_squares + self.prior) * per_out

    def t_squared(self, permuted: NDArray[np.int64]) -> NDArray[np.float64]:
        """float64[G, rows]: t^2 of each slice with the differences in each of some orders, int64[rows, n]."""
        sums = self._sums(self.first.units[permuted])
        sums *= sums
        error = self._sums(self.second.units[permuted])
        error *= self.slope
        error += self.const
        error -= self.bend * sums
        sums *= self.gap
        return np.divide(sums, error, out=np.zeros_like(sums), where=error > 0)

    def _sums(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64[G, rows]: sums of each slice, exact because all are whole numbers."""
        parts = (slice(at, at + COLUMNS) for at in range(0, rows.shape[1], COLUMNS))
        first, *others = (self.members[:, part].astype(np.float64, copy=False) @ rows[:, part].T for part in parts)
        return sum(others, first)

    def means_and_variance(self) -> tuple[FloatN, FloatN, FloatN]:
        """Means of each slice and of its rest about the mean of all, and the squared standard error of their difference."""
        sums = np.ldexp(self._sums(self.first.units[np.newaxis]), self.first.exponent)
        squares = np.ldexp(self._sums(self.second.units[np.newaxis]), self.second.exponent)
        variance = self.const + (self.per_in - self.per_out) * squares
        variance -= (self.per_in / self.n_in + self.per_out / self.n_out) * sums**2
        return (sums / self.n_in)[:, 0], (-sums / self.n_out)[:, 0], np.maximum(variance, 0.0)[:, 0]


def _permutations(seed: int, n_rows: int, n: int) -> Iterator[NDArray[np.int64]]:
    """Random orders of n things, int64[rows, n]."""
    mask = np.uint64((1 << n.bit_length()) - 1)
    places = np.arange(n, dtype=np.uint64)
    waiting: list[NDArray[np.int64]] = []
    for _, keys in key_blocks(seed, n_rows, n):
        mixed = keys & ~mask | places
        mixed.sort(axis=1)
        waiting.append((mixed & mask).view(np.int64))
        if sum(map(len, waiting)) >= ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
