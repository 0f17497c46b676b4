"""How long the systems took, and what a candidate does to that."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.latency import (
    LatencyDifference,
    LatencyImpact,
    LatencySummary,
    cautions,
    latency_impact,
    latency_summary,
    signed_ms,
)
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.numbers import format_level
from cranfield.reporting.document import Block, Bullets, Cell, Column, Paragraph, Section, Table
from cranfield.reporting.sections.collection import Systems

RESAMPLED = "Intervals are percentiles of resampled queries, of those that both sides answered, and approximate; of p95 there is none under 50 queries"


def latencies(systems: Systems, comparison: Comparison | None = None) -> Section | None:
    """Percentiles of the time a call took, and of the difference between two sides; None where no run has its times."""
    about = [(label, latency_summary(evaluation)) for label, evaluation in systems]
    timed = [(label, summary) for label, summary in about if summary is not None]
    if not timed:
        return None
    blocks: list[Block] = []
    impact = None
    if comparison is not None:
        impact = latency_impact(comparison.baseline, comparison.candidate, alpha=comparison.alpha, seed=comparison.seed)
    if impact is not None:
        blocks += [Paragraph(impact.sentence), _differences(impact)]
    blocks.append(_percentiles(timed))
    untimed = [label for label, summary in about if summary is None]
    said = _told(timed)
    said += [f"{label}: nobody timed its calls" for label in untimed]
    if said:
        blocks.append(Bullets(tuple(said), "warning"))
    return Section("latency", "Latency", tuple(blocks))


def latencies_against(systems: Sequence[Evaluation], baseline: str, alpha: float, seed: int) -> Table | None:
    """Of every other system the median difference to the baseline, a row each; None where nothing was timed."""
    named = {evaluation.name: evaluation for evaluation in systems}
    rows: list[tuple[Cell, ...]] = []
    for name, evaluation in named.items():
        impact = None if name == baseline else latency_impact(named[baseline], evaluation, alpha=alpha, seed=seed)
        if impact is not None and impact.median is not None:
            rows.append((name, *_with_ends(impact.median), impact.median.verdict.text, impact.n))
    columns = (
        Column("system"),
        Column("median difference", "ms"),
        Column(f"{format_level(alpha)} CI", "ms"),
        Column("it is"),
        Column("queries", "count"),
    )
    return Table(columns, rows, f"Latency minus that of {baseline}, query by query", shown=None) if rows else None


def _told(timed: Sequence[tuple[str, LatencySummary]]) -> list[str]:
    """What to know of the times; what holds for every system is said once."""
    of_each = [(label, cautions(summary)) for label, summary in timed]
    shared = [said for said in of_each[0][1] if len(timed) > 1 and all(said in told for _, told in of_each)]
    return [f"every system: {said}" for said in shared] + [
        f"{label}: {said}" for label, told in of_each for said in told if said not in shared
    ]


def _percentiles(timed: Sequence[tuple[str, LatencySummary]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            *(one.n, one.mean_ms, one.p50_ms, one.p95_ms, one.p99_ms, one.max_ms),
            *(one.n_timeouts + one.n_errors, one.n_retried, one.cached_share),
        )
        for label, one in timed
    ]
    columns = (
        Column("system"),
        Column("calls", "count"),
        Column("mean", "ms"),
        Column("p50", "ms"),
        Column("p95", "ms"),
        Column("p99", "ms"),
        Column("max", "ms"),
        Column("failed", "count"),
        Column("retried", "count"),
        Column("kept", "percent"),
    )
    said = "Time per call, a program's start included. Kept: answers of an earlier collection, with their times of then"
    return Table(columns, rows, said, shown=None)


def _differences(impact: LatencyImpact) -> Table:
    found = [one for one in (impact.median, impact.p50, impact.p95) if one is not None]
    rows: list[tuple[Cell, ...]] = [(one.what, *_with_ends(one), one.verdict.text, impact.n) for one in found]
    columns = (
        Column("B minus A"),
        Column("difference", "ms"),
        Column(f"{format_level(impact.alpha)} CI", "ms"),
        Column("B is"),
        Column("queries", "count"),
    )
    return Table(columns, rows, f"What the candidate does to the time of a call. {RESAMPLED}", shown=None)


def _with_ends(found: LatencyDifference) -> tuple[Cell, Cell]:
    """A difference and its interval, all to the same decimals."""
    low, high = found.ci_ms
    if low is None or high is None:
        return f"{signed_ms(found.delta_ms)[0]} ms", None
    delta, *ends = signed_ms(found.delta_ms, low, high)
    return f"{delta} ms", f"{ends[0]} to {ends[1]} ms"
