"""Coefficients of agreement as one table, each a function of how often each pattern of ratings occurs.

All are 1 at perfect agreement, and all but raw agreement are about 0 at chance agreement. They differ in the model of
chance, in the number of raters, and in how they weight the size of a disagreement.

Items with the same ratings form one *pattern* with a weight, and every coefficient is a function of the weights alone, so
resampling 100,000 items costs no more than counting them. Axes: U patterns, K grades, R raters, B samples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cranfield.base.errors import UsageError
from cranfield.stats.consensus import SlotTable
from cranfield.stats.describe import FloatN

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Statistic = Callable[[Floats], FloatN]
"""Weights float64[B, U] to float64[B], NaN where it is not defined."""

MAX_RATERS = 20
"""Pairs of raters are compared up to this many raters."""
MAX_GRADES = 200
"""Largest number of different grades."""

NOT_TWICE = "no item was rated twice"
ONE_GRADE = "all ratings are the same grade: expected disagreement is 0"


@dataclass(frozen=True, eq=False)
class Patterns:
    """The items with two or more ratings, those with the same ratings together."""

    grades: FloatN  # [K] ascending
    counts: Floats  # [U, K] ratings of each grade
    codes: Integers | None
    """int64[U, R], position in `grades` of each rater's grade, -1 for none; None beyond `MAX_RATERS`."""
    of_item: Integers  # [n] pattern of each item
    raters: tuple[str, ...]

    @property
    def ratings(self) -> FloatN:
        """float64[U]: ratings of an item."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def weights(self) -> Floats:
        """float64[1, U]: items of each pattern."""
        return np.bincount(self.of_item, minlength=len(self.counts))[np.newaxis].astype(np.float64)


class Estimator(NamedTuple):
    """How a coefficient is computed from these patterns, or why it is undefined."""

    statistic: Statistic | None
    n: int
    why: str


@dataclass(frozen=True, slots=True)
class CoefficientSpec:
    """One row of the table of coefficients."""

    name: str
    title: str
    sentence: str
    source: str
    estimator: Callable[[Patterns], Estimator]


def patterns_of(table: SlotTable) -> Patterns:
    """Group items by their ratings; items with fewer than two ratings are left out.

    Raises:
        UsageError: more than `MAX_GRADES` different grades.
    """
    twice = table.filled >= 2
    rows = twice[table.item]
    place = (np.cumsum(twice) - 1)[table.item[rows]]
    grades, code = np.unique(table.grade[rows], return_inverse=True)
    if len(grades) > MAX_GRADES:
        raise UsageError(
            f"{len(grades)} different grades", expected=f"{MAX_GRADES} at most", hint="map them to a scale"
        )
    n, n_raters = int(np.count_nonzero(twice)), len(table.raters)
    by_rater = n_raters <= MAX_RATERS
    if by_rater:
        ratings = np.full((n, n_raters), -1, dtype=np.int64)
        ratings[place, table.rater[rows]] = code
    else:
        ratings = np.zeros((n, len(grades)), dtype=np.int64)
        np.add.at(ratings, (place, code), 1)
    of_item = np.zeros(n, dtype=np.int64)
    for column in ratings.T:
        _, of_item = np.unique(of_item * (int(column.max(initial=0)) + 2) + column + 1, return_inverse=True)
    _, example = np.unique(of_item, return_index=True)
    kinds = ratings[example]
    counts = np.zeros((len(kinds), len(grades)))
    if by_rater:
        pattern, rater = np.nonzero(kinds >= 0)
        np.add.at(counts, (pattern, kinds[pattern, rater]), 1)
    else:
        counts += kinds
    return Patterns(grades, counts, kinds if by_rater else None, of_item, table.raters)


def _raw(patterns: Patterns) -> Estimator:
    share = _agreeing(patterns)
    return _of_all(patterns, lambda weights: _over(weights @ share, weights.sum(axis=1)))


def _agreeing(patterns: Patterns) -> FloatN:
    """float64[U]: of the pairs of ratings of an item, the share that is the same."""
    m = patterns.ratings
    return np.asarray(((patterns.counts**2).sum(axis=1) - m) / (m * (m - 1)))


def _fleiss(patterns: Patterns) -> Estimator:
    m = np.unique(patterns.ratings)
    if len(m) > 1:
        return Estimator(None, 0, f"defined for equal numbers of ratings; items have {m[0]:g} to {m[-1]:g}")
    share = _agreeing(patterns)

    def statistic(weights: Floats) -> FloatN:
        n = weights.sum(axis=1)
        marginal = weights @ patterns.counts
        chance = _over((marginal**2).sum(axis=1), marginal.sum(axis=1) ** 2)
        return _over(_over(weights @ share, n) - chance, 1 - chance)

    return _of_all(patterns, statistic)


def _alpha_nominal(patterns: Patterns) -> Estimator:
    m = patterns.ratings
    differing = (m**2 - (patterns.counts**2).sum(axis=1)) / (m - 1)

    def statistic(weights: Floats) -> FloatN:
        marginal = weights @ patterns.counts
        n = marginal.sum(axis=1)
        return 1 - _over((n - 1) * (weights @ differing), n**2 - (marginal**2).sum(axis=1))

    return _of_all(patterns, statistic)


def _alpha_scaled(patterns: Patterns, *, by_rank: bool) -> Estimator:
    """Krippendorff's alpha with squared distances, of the grades or of their middle ranks among all ratings.

    The ordinal distance of two grades, all ratings between them and half of those on them, is that of their middle ranks.
    """
    counts, m = patterns.counts, patterns.ratings

    def statistic(weights: Floats) -> FloatN:
        marginal = weights @ counts
        n = marginal.sum(axis=1)
        place = (
            np.cumsum(marginal, axis=1) - marginal / 2 if by_rank else np.broadcast_to(patterns.grades, marginal.shape)
        )
        place = place - place[:, :1]
        expected = n * (marginal * place**2).sum(axis=1) - (marginal * place).sum(axis=1) ** 2
        # [U, B]: twice the sum of squared distances within an item, each pair once
        within = m[:, np.newaxis] * (counts @ (place**2).T) - (counts @ place.T) ** 2
        observed = np.einsum("bu,ub->b", weights, within / (m - 1)[:, np.newaxis])
        several = np.count_nonzero(marginal, axis=1) > 1
        return 1 - _over((n - 1) * observed, np.where(several, expected, 0.0))

    return _of_all(patterns, statistic)


def alpha_ordinal(patterns: Patterns) -> Estimator:
    """Krippendorff's alpha for grades in an order."""
    return _alpha_scaled(patterns, by_rank=True)


DISTANCES: Mapping[str, Callable[[Floats], Floats]] = {
    "cohen": lambda difference: (difference != 0).astype(np.float64),
    "cohen-linear": np.abs,
    "cohen-quadratic": np.square,
}
"""Kind of Cohen's kappa to the weight of a disagreement, by the difference of the grades."""


def _two_raters(patterns: Patterns, kind: str) -> Estimator:
    n = len(patterns.raters)
    if n != 2:
        hint = ": see the table of pairs" if 2 < n <= MAX_RATERS else ""
        return Estimator(None, 0, f"defined for two raters; there {'is' if n == 1 else 'are'} {n}{hint}")
    return kappa(patterns, 0, 1, kind)


def kappa(patterns: Patterns, first: int, second: int, kind: str) -> Estimator:
    """Cohen's kappa of two raters: 1 - observed over expected disagreement."""
    distance, a, b, both = _common(patterns, first, second, DISTANCES[kind])
    by_a, by_b = _by_code(a, both), _by_code(b, both)
    apart = DISTANCES[kind](patterns.grades[by_a.codes][:, np.newaxis] - patterns.grades[by_b.codes])

    def statistic(weights: Floats) -> FloatN:
        expected = ((by_a.sums(weights) @ apart) * by_b.sums(weights)).sum(axis=1)
        return 1 - _over((weights @ both.astype(np.float64)) * (weights @ distance), expected)

    return _of_common(patterns, both, statistic)


class _ByCode(NamedTuple):
    """The patterns ordered by one rater's grade."""

    codes: Integers  # those that occur, ascending
    order: Integers
    starts: Integers

    def sums(self, weights: Floats) -> Floats:
        """float64[B, codes]: weight of the patterns of each code."""
        return np.asarray(np.add.reduceat(weights[:, self.order], self.starts, axis=1))


def _by_code(code: Integers, rows: NDArray[np.bool_]) -> _ByCode:
    order = np.flatnonzero(rows)
    order = order[np.argsort(code[order], kind="stable")]
    codes, starts = np.unique(code[order], return_index=True)
    return _ByCode(codes, order, starts)


def raw_agreement(patterns: Patterns, first: int, second: int) -> Estimator:
    """Share of the common items to which two raters give the same grade."""
    differs, _, _, both = _common(patterns, first, second, DISTANCES["cohen"])
    return _of_common(patterns, both, lambda weights: 1 - _over(weights @ differs, weights @ both.astype(np.float64)))


def _common(
    patterns: Patterns, first: int, second: int, distance: Callable[[Floats], Floats]
) -> tuple[FloatN, Integers, Integers, NDArray[np.bool_]]:
    """Per pattern: the distance of two raters' grades (0 where one is missing), both grades, and whether both exist."""
    if patterns.codes is None:
        a = b = np.full(len(patterns.counts), -1)
    else:
        a, b = patterns.codes[:, first], patterns.codes[:, second]
    both = (a >= 0) & (b >= 0)
    apart = np.zeros(len(a))
    apart[both] = distance(patterns.grades[a[both]] - patterns.grades[b[both]])
    return apart, a, b, both


def _of_all(patterns: Patterns, statistic: Statistic) -> Estimator:
    n = len(patterns.of_item)
    return Estimator(statistic, n, ONE_GRADE) if n else Estimator(None, 0, NOT_TWICE)


def _of_common(patterns: Patterns, both: NDArray[np.bool_], statistic: Statistic) -> Estimator:
    n = int(np.count_nonzero(both[patterns.of_item]))
    return Estimator(statistic, n, ONE_GRADE) if n else Estimator(None, 0, "the two have no item in common")


def _over(numerator: FloatN, denominator: FloatN) -> FloatN:
    """Divide; NaN where the denominator is 0."""
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator != 0)
    return result


TWO_RATERS = ("agreement", *DISTANCES)
"""What is computed of two raters among more."""

_COHEN = "Cohen 1960, Educ. Psychol. Meas. 20(1); Cohen 1968, Psychol. Bull. 70(4)"
_KRIPPENDORFF = "Krippendorff 2011, Computing Krippendorff's Alpha-Reliability; Hayes & Krippendorff 2007"

COEFFICIENTS: Mapping[str, CoefficientSpec] = {
    spec.name: spec
    for spec in (
        CoefficientSpec(
            "agreement",
            "raw agreement",
            "Share of pairs of ratings of one item that agree; not corrected for chance.",
            "Share of agreeing pairs of ratings, averaged over items",
            _raw,
        ),
        *(
            CoefficientSpec(kind, title, sentence, _COHEN, partial(_two_raters, kind=kind))
            for kind, title, sentence in (
                (
                    "cohen",
                    "Cohen's kappa",
                    "Two raters, each with a marginal distribution of its own; every disagreement counts 1.",
                ),
                ("cohen-linear", "Cohen's kappa, linear weights", "The same; a disagreement counts by its size."),
                (
                    "cohen-quadratic",
                    "Cohen's kappa, quadratic weights",
                    "The same; a disagreement counts by its squared size.",
                ),
            )
        ),
        CoefficientSpec(
            "fleiss",
            "Fleiss' kappa",
            "Any number of raters, the same for each item, with one common marginal distribution; every disagreement counts 1.",
            "Fleiss 1971, Psychol. Bull. 76(5)",
            _fleiss,
        ),
        CoefficientSpec(
            "alpha-nominal",
            "Krippendorff's alpha, nominal",
            "Any number of raters, any number of ratings per item; every disagreement counts 1.",
            _KRIPPENDORFF,
            _alpha_nominal,
        ),
        CoefficientSpec(
            "alpha-ordinal",
            "Krippendorff's alpha, ordinal",
            "The same; a disagreement counts by the squared number of ratings between the two grades.",
            _KRIPPENDORFF,
            alpha_ordinal,
        ),
        CoefficientSpec(
            "alpha-interval",
            "Krippendorff's alpha, interval",
            "The same; a disagreement counts by its squared size.",
            _KRIPPENDORFF,
            partial(_alpha_scaled, by_rank=False),
        ),
    )
}
"""Name to coefficient, in the order reports list them."""
