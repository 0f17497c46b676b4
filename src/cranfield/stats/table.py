"""The table of paired tests: choices, help, docs and `run_tests` read it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cranfield.stats.result import DEFAULT_DRAWS, TestResult

if TYPE_CHECKING:
    from cranfield.stats.describe import FloatN, Values

__all__ = [
    "ADJUSTMENTS",
    "DEFAULT_DRAWS",
    "MEAN_DIFFERENCE",
    "TESTS",
    "Adjustment",
    "Paired",
    "TestSpec",
    "adjustment_for",
    "run_tests",
]

MEAN_DIFFERENCE = "mean difference"
"""What the interval of most tests estimates."""


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """Input of a test: values of both sides, their difference, and the declared options."""

    baseline: FloatN
    candidate: FloatN
    difference: FloatN
    alpha: float
    seed: int
    n_draws: int
    margin: float | None = None


@dataclass(frozen=True, slots=True)
class TestSpec:
    """One row of the table."""

    __test__ = False

    name: str
    title: str
    sentence: str
    """What it tests, for readers of a report."""
    estimates: str
    """What its interval estimates: `mean difference`; empty where it has none."""
    estimate: str
    """Name of its point estimate, which lies in the interval: `mean difference`, `Hodges-Lehmann estimate`."""
    interval: str
    """How its interval is computed: `inverted permutation test`; empty where it has none."""
    source: str
    run: Callable[[Paired], TestResult]
    can_declare: bool = True
    """False where its interval cannot decide a verdict."""
    needs_binary: bool = False
    """Runs only where all values are 0 or 1."""
    needs_margin: bool = False
    """Runs only where a margin is declared."""
    smallest_p: Callable[[int, int], float] = lambda n, _: 0.0 if n > 1 else 1.0
    """The smallest two-sided p-value that so many queries and so many random draws can give."""

    @property
    def is_of_mean(self) -> bool:
        """True where interval and estimate are of the mean difference."""
        return self.estimates == MEAN_DIFFERENCE

    @property
    def interval_method(self) -> str:
        """`mean difference: inverted permutation test`; empty where it has no interval."""
        return f"{self.estimates}: {self.interval}" if self.interval else ""


# The table is read for help, where numpy is not imported.


def _smallest_of_signs(n: int, _: int) -> float:
    """Smallest p-value over signs: that of the most extreme of all 2^n sign patterns, and its mirror image."""
    return min(1.0, math.ldexp(2.0, -n))


def _smallest_of_ranks(n: int, _: int) -> float:
    from cranfield.stats.wilcoxon import MIN_PAIRS

    return _smallest_of_signs(n, 0) if n >= MIN_PAIRS else 1.0


def _smallest_of_draws(n: int, n_draws: int) -> float:
    from cranfield.stats.permutation import is_enumerated

    return _smallest_of_signs(n, 0) if is_enumerated(n, n) else 2 / (n_draws + n_draws % 2)


def _smallest_of_resamples(n: int, n_draws: int) -> float:
    from cranfield.stats.bootstrap import DEFAULT_RESAMPLES, MIN_QUERIES

    return 2 / min(n_draws, DEFAULT_RESAMPLES) if n >= MIN_QUERIES else 1.0


def _permutation(given: Paired) -> TestResult:
    from cranfield.stats.permutation import permutation

    return permutation(given.difference, alpha=given.alpha, seed=given.seed, n_draws=given.n_draws)


def _wilcoxon(given: Paired) -> TestResult:
    from cranfield.stats.wilcoxon import wilcoxon

    return wilcoxon(given.difference, alpha=given.alpha)


def _paired_t(given: Paired) -> TestResult:
    from cranfield.stats.paired import paired_t

    return paired_t(given.difference, alpha=given.alpha)


def _sign_test(given: Paired) -> TestResult:
    from cranfield.stats.paired import sign_test

    return sign_test(given.difference, alpha=given.alpha)


def _mcnemar(given: Paired) -> TestResult:
    from cranfield.stats.paired import mcnemar

    return mcnemar(given.baseline, given.candidate)


def _bootstrap(given: Paired) -> TestResult:
    from cranfield.stats.bootstrap import DEFAULT_RESAMPLES, bootstrap

    n_draws = min(given.n_draws, DEFAULT_RESAMPLES)
    return bootstrap(given.difference, alpha=given.alpha, seed=given.seed, n_draws=n_draws)


def _tost(given: Paired) -> TestResult:
    from cranfield.stats.paired import tost

    return tost(given.difference, given.margin or 0.0, alpha=given.alpha)


TESTS: Mapping[str, TestSpec] = {
    spec.name: spec
    for spec in (
        TestSpec(
            name="permutation",
            title="paired permutation test",
            sentence="Flips the sign of each query's difference at random; p is the share of sign patterns whose mean "
            "difference is at least as far from zero.",
            estimates=MEAN_DIFFERENCE,
            estimate=MEAN_DIFFERENCE,
            interval="inverted permutation test",
            source="Fisher 1935, The Design of Experiments; Hartigan 1969, JASA 64(328); "
            "Smucker, Allan & Carterette 2007, CIKM",
            run=_permutation,
            smallest_p=_smallest_of_draws,
        ),
        TestSpec(
            name="wilcoxon",
            title="Wilcoxon signed-rank test",
            sentence="Compares the rank sums of gains and losses, ranked by size, among the queries that differ. Needs 6 that differ.",
            estimates="pseudo-median of the non-zero differences (Hodges-Lehmann)",
            estimate="Hodges-Lehmann estimate",
            interval="inverted Wilcoxon test",
            source="Wilcoxon 1945, Biometrics Bulletin 1(6); Hodges & Lehmann 1963, Ann. Math. Stat. 34(2)",
            run=_wilcoxon,
            smallest_p=_smallest_of_ranks,
        ),
        TestSpec(
            name="t",
            title="paired t test",
            sentence="Compares the mean difference with its standard error; assumes normally distributed differences.",
            estimates=MEAN_DIFFERENCE,
            estimate=MEAN_DIFFERENCE,
            interval="Student's t",
            source="Student 1908, Biometrika 6(1)",
            run=_paired_t,
        ),
        TestSpec(
            name="sign",
            title="sign test",
            sentence="Compares the numbers of gains and losses among the queries that differ, whatever their size.",
            estimates="median of the non-zero differences",
            estimate="median difference",
            interval="order statistics",
            source="Arbuthnot 1710, Phil. Trans. 27; Conover 1999, Practical Nonparametric Statistics",
            run=_sign_test,
            smallest_p=_smallest_of_signs,
        ),
        TestSpec(
            name="mcnemar",
            title="exact McNemar test",
            sentence="Compares the numbers of queries that only one side gets right. For measures of 0 and 1.",
            estimates="",
            estimate="",
            interval="",
            source="McNemar 1947, Psychometrika 12(2)",
            run=_mcnemar,
            can_declare=False,
            needs_binary=True,
        ),
        TestSpec(
            name="bootstrap",
            title="bootstrap",
            sentence="Resamples the queries with replacement and takes percentiles of the mean difference.",
            estimates=MEAN_DIFFERENCE,
            estimate=MEAN_DIFFERENCE,
            interval="BCa percentiles of resampled means",
            source="Efron 1987, JASA 82(397)",
            run=_bootstrap,
            smallest_p=_smallest_of_resamples,
        ),
        TestSpec(
            name="tost",
            title="two one-sided t tests",
            sentence="Tests whether the mean difference lies within the margin; its p-value is of equivalence, not of a "
            "difference.",
            estimates=MEAN_DIFFERENCE,
            estimate=MEAN_DIFFERENCE,
            interval="Student's t at 1 - 2 alpha",
            source="Schuirmann 1987, J. Pharmacokinet. Biopharm. 15(6)",
            run=_tost,
            can_declare=False,
            needs_margin=True,
        ),
    )
}
"""Name to spec, in the order help, docs and reports list them."""


@dataclass(frozen=True, slots=True)
class Adjustment:
    """How the p-values of all pairs of many systems are adjusted together."""

    name: str
    short: str
    """How a sentence or a heading names it."""
    title: str
    sentence: str
    source: str
    tests: tuple[str, ...] = ()
    """Tests that it goes with; empty is all."""
    counts_pairs: bool = True
    """Whether the smallest p-value that it can give grows with the number of pairs."""


ADJUSTMENTS: Mapping[str, Adjustment] = {
    adjustment.name: adjustment
    for adjustment in (
        Adjustment(
            name="max-t",
            short="max-T",
            title="single-step max-T",
            sentence="One set of sign patterns for all pairs; the adjusted p of a pair is the share of patterns whose largest "
            "t of all pairs is at least its own. The p-value does not grow with the number of pairs.",
            source="Westfall & Young 1993, Resampling-Based Multiple Testing",
            tests=("permutation",),
            counts_pairs=False,
        ),
        Adjustment(
            name="holm",
            short="Holm",
            title="Holm's adjustment",
            sentence="The i-th smallest of m p-values is multiplied by m - i + 1. Needs p-values under alpha / m.",
            source="Holm 1979, Scand. J. Stat. 6(2)",
        ),
    )
}
"""Name to adjustment, in the order help, docs and reports list them."""


def adjustment_for(test: str) -> str:
    """The adjustment of a test where none is declared: the first that goes with it."""
    return next(name for name, spec in ADJUSTMENTS.items() if not spec.tests or test in spec.tests)


def run_tests(
    baseline: Values,
    candidate: Values,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    n_draws: int = DEFAULT_DRAWS,
    margin: float | None = None,
    permuted: TestResult | None = None,
) -> dict[str, TestResult]:
    """Run every test of the table that applies to these two vectors.

    Args:
        baseline: one value per query.
        candidate: one value per query, in the same order.
        alpha: intervals cover 1 - alpha.
        seed: of everything random.
        n_draws: sign patterns of the permutation test; the bootstrap draws as many samples, and 20,000 at most.
        margin: largest difference that does not matter, for `tost`; None leaves it out.
        permuted: result of the permutation test, if `permutations` has computed it already.

    Returns:
        Name to result, in the order of the table. A test with too few queries has a note and no p-value.

    Raises:
        UsageError: sides that do not pair, values that are not finite, or an alpha, seed or margin that cannot be.
    """
    from cranfield.stats.describe import as_vector, differences
    from cranfield.stats.paired import is_binary

    difference = differences(baseline, candidate)
    given = Paired(as_vector(baseline), as_vector(candidate), difference, alpha, seed, n_draws, margin)
    binary = is_binary(given.baseline) and is_binary(given.candidate)
    ready = {} if permuted is None else {"permutation": permuted}
    return {
        name: ready[name] if name in ready else spec.run(given)
        for name, spec in TESTS.items()
        if (binary or not spec.needs_binary) and (margin is not None or not spec.needs_margin)
    }
