"""Latency of the systems, and differences to the baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cranfield.evaluation.latency import (
    LatencyDifference,
    LatencyImpact,
    LatencySummary,
    NoVerdict,
    cautions,
    signed_ms,
)
from cranfield.numbers import format_level, format_ms
from cranfield.reporting.document import Block, Bullets, Cell, Column, Paragraph, Section, Table
from cranfield.reporting.sections.subject import Subject
from cranfield.words import n_of

FEW = 4
"""Systems whose times are in the line of the section while it is closed."""
RESAMPLED = (
    "Approximate bootstrap percentile CIs over the queries that both sides answered; none of p95 under 50 queries"
)


def latencies(subject: Subject) -> Section | None:
    """Percentiles of the time per call, and differences to the baseline; None where no run has its times."""
    about = [(label, subject.calls.systems[system.name].latency) for label, system in subject.systems]
    timed = [(label, summary) for label, summary in about if summary is not None]
    if not timed:
        return None
    blocks: list[Block] = [*_against_baseline(subject), _percentiles(timed), *_rule(subject)]
    notes = _cautions(timed)
    notes += [f"{label}: no call times recorded" for label, summary in about if summary is None]
    if notes:
        blocks.append(Bullets(tuple(notes), "warning"))
    return Section("latency", "Latency", tuple(blocks), _key_figure(timed))


def _key_figure(timed: Sequence[tuple[str, LatencySummary]]) -> str:
    """The p50 of few systems, the fastest and the slowest of many."""
    found = sorted((summary.p50_ms, label) for label, summary in timed)
    if len(found) > FEW:
        return f"p50 from {format_ms(found[0][0])} to {format_ms(found[-1][0])}"
    return "p50 " + ", ".join(f"{label} {format_ms(summary.p50_ms)}" for label, summary in timed)


def _against_baseline(subject: Subject) -> list[Block]:
    """The differences of a pair; of many systems the median difference to the baseline, a row each."""
    if subject.pair is not None:
        return [
            block for each in subject.calls.impacts.values() for block in (Paragraph(each.sentence), _differences(each))
        ]
    if (many := subject.many) is None or many.baseline is None:
        return []
    baseline = many.baseline
    rows: list[tuple[Cell, ...]] = []
    why: list[NoVerdict] = []
    for name, impact in subject.calls.impacts.items():
        if impact.median is not None:
            rows.append((name, *_with_ends(impact.median), impact.median.verdict.text, impact.n))
            why += (replace(reason, system=reason.system or name) for reason in impact.incomparable)
    columns = (
        Column("system"),
        Column("median difference", "ms"),
        Column(f"{format_level(many.alpha)} CI", "ms"),
        Column("verdict"),
        Column("queries", "count"),
    )
    caption = f"Latency minus that of {baseline}, per query"
    return [Table(columns, rows, caption, shown=None), *_no_verdict(why)] if rows else []


def moved_latencies(subject: Subject) -> tuple[str, ...]:
    """One line on the median latency of each system, where it moved against that of the baseline.

    That is where the interval of the difference excludes zero, and the difference is at least the smallest effect.
    """
    moved = [
        f"{name} {signed_ms(by.delta_ms)[0]} ms ({by.verdict.text})"
        for name, impact in subject.calls.impacts.items()
        if (by := impact.median) is not None and by.is_large and by.excludes_zero
    ]
    return (f"Latency at the median: {', '.join(moved)}",) if moved else ()


def _no_verdict(reasons: Sequence[NoVerdict]) -> list[Block]:
    """Why rows have no verdict."""
    return [Bullets(tuple(f"no verdict: {why}" for why in dict.fromkeys(reasons)), "warning")] if reasons else []


def _rule(subject: Subject) -> list[Block]:
    """What is left out, and of two systems or more the smallest effect."""
    n_left_out = {system.n_left_out for system in subject.calls.systems.values()}
    sentences = []
    if n_left_out - {0}:
        fewest, most = min(n_left_out), max(n_left_out)
        calls = n_of(most, "calls") if fewest == most else f"{fewest} to {most} calls"
        sentences.append(f"The first {calls} of each system are a warm-up, without a timing.")
    if subject.compared is not None:
        smallest = subject.calls.rule.smallest
        sentences.append(f"A system is called faster or slower from a difference of {smallest} on.")
    return [Paragraph(" ".join(sentences))] if sentences else []


def _cautions(timed: Sequence[tuple[str, LatencySummary]]) -> list[str]:
    """Cautions on the times; those that hold for every system are listed once."""
    of_each = [(label, cautions(summary)) for label, summary in timed]
    first = of_each[0][1]
    shared = [caution for caution in first if len(timed) > 1 and all(caution in own for _, own in of_each)]
    return [f"every system: {caution}" for caution in shared] + [
        f"{label}: {caution}" for label, own in of_each for caution in own if caution not in shared
    ]


def _percentiles(timed: Sequence[tuple[str, LatencySummary]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            label,
            *(summary.n, summary.mean_ms, summary.p50_ms, summary.p95_ms, summary.p99_ms, summary.max_ms),
            *(summary.n_timeouts + summary.n_errors, summary.n_retried, summary.cached_share),
        )
        for label, summary in timed
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
    caption = (
        "Time per call, including process start. Kept: answers of an earlier collection, with their original times"
    )
    return Table(columns, rows, caption, shown=None)


def _differences(impact: LatencyImpact) -> Table:
    found = [difference for difference in (impact.median, impact.p50, impact.p95) if difference is not None]
    rows: list[tuple[Cell, ...]] = [
        (difference.what, *_with_ends(difference), difference.verdict.text, impact.n) for difference in found
    ]
    columns = (
        Column("B minus A"),
        Column("difference", "ms"),
        Column(f"{format_level(impact.alpha)} CI", "ms"),
        Column("verdict"),
        Column("queries", "count"),
    )
    return Table(columns, rows, f"Latency differences. {RESAMPLED}", shown=None)


def _with_ends(found: LatencyDifference) -> tuple[Cell, Cell]:
    """A difference and its interval, all to the same decimals."""
    low, high = found.ci_ms
    if low is None or high is None:
        return f"{signed_ms(found.delta_ms)[0]} ms", None
    delta, *ends = signed_ms(found.delta_ms, low, high)
    return f"{delta} ms", f"{ends[0]} to {ends[1]} ms"
