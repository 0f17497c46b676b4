"""Means of the systems from a tally: the summaries that `evaluation.evaluate` gives of values in memory, without a median."""

from __future__ import annotations

import math
from dataclasses import replace

from cranfield.evaluation.evaluate import clipped
from cranfield.evaluation.values import ByMeasure, Summary
from cranfield.measures import CATALOGUE, Measure
from cranfield.scale.moments import Moments, UnitSums
from cranfield.scale.results import ResultsInfo
from cranfield.scale.tally import Tally
from cranfield.scale.values import SystemSummary
from cranfield.stats.describe import t_interval


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
