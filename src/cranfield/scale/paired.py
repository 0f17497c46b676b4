"""Every system against the first, from a tally: the tests of `stats` on units, and the verdict of `evaluation`.

Where each query is its own unit the results are those of the same tests on all differences. Where queries are summed in
random groups, flipping the signs of whole groups is one of the ways of flipping those of queries, so the test is as exact;
and resampling groups is a cluster bootstrap. The t test of queries without clusters needs no groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cranfield.base.numbers import format_p
from cranfield.evaluation.compare import adjust
from cranfield.evaluation.evaluate import clipped, difference_range
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.values import ByMeasure, MeasureComparison, StratumComparison, Summary, Verdict
from cranfield.evaluation.verdict import decide, disagreements, numbers_of, too_few_draws
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.scale.moments import Moments, UnitSums
from cranfield.scale.results import ResultsInfo
from cranfield.scale.tally import Layout, Stratum, Tally
from cranfield.scale.values import PairSummary, StratifiedMean, StratumMeans, SystemSummary
from cranfield.stats.bootstrap import DEFAULT_RESAMPLES, bootstrap, influences
from cranfield.stats.describe import FloatN, t_interval, t_quantile
from cranfield.stats.paired import t_test
from cranfield.stats.permutation import permutations
from cranfield.stats.power import USUAL_POWER, minimal_detectable_effect
from cranfield.stats.result import TestResult
from cranfield.stats.stratified import error_within
from cranfield.stats.table import TESTS


def summary_of(moments: Moments, units: UnitSums | None, column: int, measure: Measure, level: float) -> Summary:
    """The mean of a column, with the interval of its clusters where there are any."""
    about = moments.describe(column)
    spread = about if units is None else units.describe(column)
    interval = clipped(
        t_interval((), level, replace(spread, mean=about.mean)), moments.ends(column), CATALOGUE[measure.name].range
    )
    low, high = interval if interval is not None else (None, None)
    total = None if about.mean is None else about.mean * about.n
    return Summary(about.mean, None, about.std, low, high, about.n, level, total=total)


def system_summaries(tally: Tally, about: ResultsInfo, level: float) -> tuple[SystemSummary, ...]:
    """Every system."""
    names = about.scoring.systems
    digests = about.runs if set(about.runs) == set(names) else {}  # else a column names the systems
    return tuple(_system(tally, name, place, level, digests.get(name, "")) for place, name in enumerate(names))


def _system(tally: Tally, name: str, place: int, level: float, digest: str) -> SystemSummary:
    with_share = int(tally.n_with_share[place])
    means = ByMeasure({measure: _mean(tally, measure, place, level) for measure in tally.layout.measures})
    return SystemSummary(
        name=name,
        n_queries=tally.n,
        n_missing=int(tally.n_missing[place]),
        **{count: int(total[place]) for count, total in tally.counts.items()},
        judged_share=float(tally.judged_shares[place]) / with_share if with_share else None,
        measures=means,
        n_without_value=ByMeasure({measure: tally.n - summary.n for measure, summary in means.items()}),
        digest=digest,
    )


def _mean(tally: Tally, measure: Measure, place: int, level: float) -> Summary:
    """By the aggregate of the measure."""
    column = tally.layout.value(measure, place)
    summary = summary_of(tally.moments, tally.units if tally.is_clustered else None, column, measure, level)
    logs = tally.logs.describe(column)
    positive = logs.mean is not None and tally.moments.low[column] >= 0
    geometric = math.exp(logs.mean) if positive and logs.mean is not None else None
    summary = replace(summary, geometric_mean=geometric, weighted_mean=tally.weights.mean(column))
    aggregate = CATALOGUE[measure.name].aggregate
    if aggregate == "sum":
        return replace(summary, aggregate=aggregate, mean=summary.total, ci_low=None, ci_high=None)
    if aggregate == "geometric mean":
        interval = None if tally.is_clustered else t_interval((), level, logs)
        low, high = (math.exp(end) for end in interval) if interval is not None else (None, None)
        return replace(summary, aggregate=aggregate, mean=geometric, ci_low=low, ci_high=high)
    return summary


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


def stratum_means(tally: Tally, level: float) -> Iterator[StratumMeans]:
    """Every measure within every stratum that has queries."""
    attributes, layout = tally.attributes, tally.layout
    if attributes is None:
        return
    for name, values, strata in zip(attributes.columns.strata, attributes.strata, tally.strata, strict=True):
        for value, stratum in sorted(zip(values, strata, strict=True), key=lambda pair: pair[0]):
            for measure in _averaged(layout) if stratum.n else ():
                means = tuple(
                    summary_of(stratum.moments, stratum.units, layout.value(measure, system), measure, level)
                    for system in range(layout.n_systems)
                )
                others = range(1, layout.n_systems) if measure in layout.compared else ()
                differences = tuple(
                    stratum_comparison(layout, stratum.moments, stratum.units, (name, value), measure, system, level)
                    for system in others
                )
                yield StratumMeans(name, value, measure, stratum.n, means, differences)


def _averaged(layout: Layout) -> tuple[Measure, ...]:
    """Measures that are a mean over queries."""
    return tuple(measure for measure in layout.measures if CATALOGUE[measure.name].aggregate == "mean")


def stratified_means(tally: Tally, names: Sequence[str], level: float) -> Iterator[StratifiedMean]:
    """Every mean and difference as a sum over strata, with the error taken within them."""
    attributes, layout = tally.attributes, tally.layout
    if attributes is None:
        return
    is_weighted = attributes.weight is not None
    for name, every in zip(attributes.columns.strata, tally.strata, strict=True):
        strata = [stratum for stratum in every if stratum.n]
        for measure in _averaged(layout) if len(strata) > 1 else ():
            columns = [(layout.value(measure, place), system, "mean") for place, system in enumerate(names)]
            if measure in layout.compared:
                columns += [(layout.pair(measure, i)[2], names[i], "difference") for i in range(1, len(names))]
            for column, system, of in columns:
                found = _stratified(strata, column, level)
                if found is not None:
                    yield StratifiedMean(name, measure, system, of, *found, is_weighted)


def _stratified(
    strata: Sequence[Stratum], column: int, level: float
) -> tuple[float, float | None, float | None, int] | None:
    """The mean, its interval and the number of strata that have a value; None without any."""
    kept = [stratum for stratum in strata if stratum.moments.n[column] and stratum.weight]
    total = math.fsum(stratum.weight for stratum in kept)
    if not kept:
        return None
    shares = [stratum.weight / total for stratum in kept]
    mean = math.fsum(share * float(each.moments.mean[column]) for share, each in zip(shares, kept, strict=True))
    error, df = _clustered_error(kept, shares, column) or _error(kept, shares, column)
    if df < 1:
        return mean, None, None, len(kept)
    half = t_quantile((1 + level) / 2, df) * error
    return mean, mean - half, mean + half, len(kept)


def _error(strata: Sequence[Stratum], shares: Sequence[float], column: int) -> tuple[float, float]:
    """From the spread of queries; strata of one query are one together, or join the smallest other."""
    parts = [(stratum.moments, share) for stratum, share in zip(strata, shares, strict=True)]
    single = [part for part in parts if part[0].n[column] < 2]
    others = sorted((part for part in parts if part[0].n[column] > 1), key=lambda part: int(part[0].n[column]))
    if len(single) == 1 and others:
        single.append(others.pop(0))
    if single:
        joined = Moments(single[0][0].n_columns)
        for moments, _ in single:
            joined.merge(moments)
        others.append((joined, math.fsum(share for _, share in single)))
    if any(moments.n[column] < 2 for moments, _ in others):
        return 0.0, 0.0
    return error_within([moments.describe(column) for moments, _ in others], [share for _, share in others])


def _clustered_error(strata: Sequence[Stratum], shares: Sequence[float], column: int) -> tuple[float, float] | None:
    """From the spread of clusters, which may be in several strata; None without clusters.

    z_g = sum over strata of share / n * (D_g - mean n_g);  SE^2 = G / (G - 1) * sum(z_g^2)
    """
    if strata[0].units is None:
        return None
    errors, seen = np.zeros(strata[0].units.n_units), np.zeros(strata[0].units.n_units, dtype=np.bool_)
    for stratum, share in zip(strata, shares, strict=True):
        if stratum.units is None:
            continue
        place = stratum.units.place[column]
        sums, sizes = stratum.units.sums[place], stratum.units.counts[place]
        errors += share / sizes.sum() * influences(sums, sizes)
        seen |= sizes > 0
    n_clusters = int(seen.sum())
    if n_clusters < 2:
        return 0.0, 0.0
    return math.sqrt(n_clusters / (n_clusters - 1) * float((errors[seen] ** 2).sum())), n_clusters - 1.0
