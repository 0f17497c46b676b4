"""Means and differences within strata, and their sums over strata by shares of the population."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from cranfield.measures import CATALOGUE, Measure
from cranfield.scale.means import summary_of
from cranfield.scale.moments import Moments
from cranfield.scale.paired import stratum_comparison
from cranfield.scale.tally import Layout, Stratum, Tally
from cranfield.scale.values import StratifiedMean, StratumMeans
from cranfield.stats.bootstrap import influences
from cranfield.stats.describe import t_quantile
from cranfield.stats.stratified import error_within


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
