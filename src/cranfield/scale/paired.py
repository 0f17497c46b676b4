"""Every system against the first, from a tally: the tests of `stats` on units, and the verdict of `evaluation`.

Where each query is its own unit the results are those of the same tests on all differences. Where queries are summed in
random groups, flipping the signs of whole groups is one of the ways of flipping those of queries, so the test is as exact;
and resampling groups is a cluster bootstrap. The t test of queries without clusters needs no groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cranfield.base.numbers import format_p
from cranfield.evaluation.compare import adjust
from cranfield.evaluation.evaluate import clipped, difference_range
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.values import MeasureComparison, StratumComparison, Verdict
from cranfield.evaluation.verdict import decide, disagreements, numbers_of, too_few_draws
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure
from cranfield.measures.catalogue import sign_of
from cranfield.scale.means import summary_of
from cranfield.scale.moments import Moments, UnitSums
from cranfield.scale.tally import Layout, Tally
from cranfield.scale.values import PairSummary
from cranfield.stats.bootstrap import DEFAULT_RESAMPLES, bootstrap
from cranfield.stats.describe import FloatN, t_interval
from cranfield.stats.paired import t_test
from cranfield.stats.permutation import permutations
from cranfield.stats.power import USUAL_POWER, minimal_detectable_effect
from cranfield.stats.result import TestResult
from cranfield.stats.table import TESTS

KNOWN_TESTS = ("permutation", "t", "bootstrap")
"""Tests of the mean difference, which sums of queries are enough for."""


@dataclass(frozen=True, eq=False)
class _Difference:
    """The differences of one measure of one system with the first."""

    system: int
    measure: Measure
    column: int
    sums: FloatN
    sizes: FloatN | None
    """Queries of each sum; None where each is one query."""


def compare_systems(
    tally: Tally, names: Sequence[str], primary: Measure, options: CompareOptions, void: Sequence[Sequence[str]]
) -> tuple[PairSummary, ...]:
    """Every system but the first against the first.

    Args:
        tally: of all queries.
        names: of the systems.
        primary: the measure of the verdict.
        options: what was declared.
        void: of each system but the first, why its verdict does not count, if it does not.
    """
    found = [
        _difference(tally, measure, system) for system in range(1, len(names)) for measure in tally.layout.compared
    ]
    permuted = _permuted(found, options)
    systems: list[dict[Measure, MeasureComparison]] = [{} for _ in names[1:]]
    for difference, result in zip(found, permuted, strict=True):
        compared = _comparison(tally, difference, result, options)
        systems[difference.system - 1][difference.measure] = compared
    adjusted = adjust(systems, primary, options.test)
    return tuple(
        PairSummary(
            name,
            compared,
            _counts(tally, place),
            _verdict(compared[primary], compared, options, names, place, void[place - 1]),
        )
        for place, (name, compared) in enumerate(zip(names[1:], adjusted, strict=True), start=1)
    )


def _difference(tally: Tally, measure: Measure, system: int) -> _Difference:
    column = tally.layout.pair(measure, system)[2]
    sums, sizes = tally.units.of(column)
    is_of_queries = not tally.is_clustered and not tally.is_grouped
    return _Difference(system, measure, column, sums, None if is_of_queries else sizes)


def _permuted(found: Sequence[_Difference], options: CompareOptions) -> list[TestResult]:
    """The permutation test of each; those on the same units share the sign patterns."""
    results: dict[int, TestResult] = {}
    alike: dict[bytes, list[int]] = {}
    for place, each in enumerate(found):
        key = b"" if each.sizes is None else each.sizes.tobytes()
        alike.setdefault(len(each.sums).to_bytes(8) + key, []).append(place)
    for places in alike.values():
        matrix, sizes = np.column_stack([found[place].sums for place in places]), found[places[0]].sizes
        drawn = permutations(matrix, alpha=options.alpha, seed=options.seed, n_draws=options.draws, sizes=sizes)
        results |= zip(places, drawn, strict=True)
    return [results[place] for place in range(len(found))]


def _comparison(
    tally: Tally, difference: _Difference, permuted: TestResult, options: CompareOptions
) -> MeasureComparison:
    measure, column = difference.measure, difference.column
    units = tally.units if tally.is_clustered else None
    about = tally.moments.describe(column)
    spread = about if units is None else replace(units.describe(column), mean=about.mean)
    tests = {
        "permutation": permuted,
        "t": t_test(spread, alpha=options.alpha, scale=tally.moments.largest(column)),
        "bootstrap": bootstrap(
            difference.sums,
            alpha=options.alpha,
            seed=options.seed,
            n_draws=min(options.draws, DEFAULT_RESAMPLES),
            sizes=difference.sizes,
        ),
    }
    declared = tests[options.test]
    sides = tally.layout.pair(measure, difference.system)[:2]
    level = 1 - options.alpha
    is_powered = bool(spread.std) and options.alpha < USUAL_POWER
    return MeasureComparison(
        measure=measure,
        baseline=summary_of(tally.moments, units, sides[0], measure, level),
        candidate=summary_of(tally.moments, units, sides[1], measure, level),
        delta=about.mean,
        ci_low=declared.ci_low,
        ci_high=declared.ci_high,
        interval_method=TESTS[options.test].interval_method,
        effect_size=about.mean / about.std if about.std and about.mean is not None else None,
        n=about.n,
        n_nonzero=int(tally.moments.n_above[column] + tally.moments.n_below[column]),
        mde=minimal_detectable_effect(spread.std or 0.0, spread.n, options.alpha) if is_powered else None,
        tests=tests,
        delta_std=about.std,
        estimate=about.mean,
        estimates=TESTS[options.test].estimate,
    )


def _counts(tally: Tally, system: int) -> dict[Measure, tuple[int, int, int]]:
    """Queries on which a system is better, the same and worse."""
    counts = {}
    for measure in tally.layout.compared:
        column = tally.layout.pair(measure, system)[2]
        above, below = int(tally.moments.n_above[column]), int(tally.moments.n_below[column])
        better, worse = (above, below) if sign_of(measure) > 0 else (below, above)
        counts[measure] = (better, int(tally.moments.n[column]) - above - below, worse)
    return counts


def _verdict(
    declared: MeasureComparison,
    compared: Mapping[Measure, MeasureComparison],
    options: CompareOptions,
    names: Sequence[str],
    place: int,
    void: Sequence[str],
) -> Verdict:
    """The verdict of the declared interval; of several systems the adjusted p has to agree."""
    pair = (names[0], names[place])
    void = (*void, *too_few_draws(declared, options))
    code, sentence, reasons = decide(declared, options, names=pair, void=void)
    p = declared.tests[options.test].p_adjusted
    if code in {VerdictCode.BETTER, VerdictCode.WORSE} and (p is None or p > options.alpha):
        code = VerdictCode.NOT_SIGNIFICANT
        sentence = f"No significant difference between {pair[0]} and {pair[1]}: {numbers_of(declared, options)}."
        reasons = (
            f"p is {format_p(p)} after Holm's adjustment over {len(names) - 1} systems; the interval is of this pair alone",
            *reasons,
        )
    return Verdict(code, sentence, reasons, disagreements([code], compared, declared.measure, options))


def stratum_comparison(
    layout: Layout,
    moments: Moments,
    units: UnitSums | None,
    stratum: tuple[str, str],
    measure: Measure,
    system: int,
    level: float,
) -> StratumComparison:
    """A difference within a stratum, with its t interval."""
    a, b, column = layout.pair(measure, system)
    about = moments.describe(column)
    spread = about if units is None else replace(units.describe(column), mean=about.mean)
    interval = clipped(t_interval((), level, spread), moments.ends(column), difference_range(measure))
    means = moments.describe(a).mean, moments.describe(b).mean, about.mean
    return StratumComparison(*stratum, about.n, *means, *(interval or (None, None)))
