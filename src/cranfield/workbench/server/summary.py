"""The figures of an evaluation as sections of a report, from what lists hold: nothing is scored for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from cranfield.base.words import count_noun
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, parse
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.charts.systems import HeatRow, heat_map
from cranfield.reporting.document import (
    Block,
    Bullets,
    Cell,
    Chart,
    Column,
    Details,
    KeyValues,
    Link,
    Paragraph,
    Section,
    Swatch,
    Table,
    Tone,
    TonedCell,
    VerdictBlock,
    VerdictFact,
)
from cranfield.workbench.server.pages import when
from cranfield.workbench.server.tables import CI, STATES, code_of
from cranfield.workbench.service.responses import EvaluationState

if TYPE_CHECKING:
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo

MAX_DRAWN = 24
"""Rows of a heat map; more are a table alone."""
DIGEST_SHOWN = 19
PARTLY = "One side is a pilot or uses other components, so the result does not apply to the whole system."
VALUE, PERCENT, MS = Column("", "value"), Column("", "percent"), Column("", "ms")


def headline(
    info: EvaluationInfo, comparison: ComparisonInfo | None = None, baseline: EvaluationInfo | None = None
) -> VerdictBlock:
    """What a page about an evaluation begins with: what makes it void, a regression, the verdict; that it counts is a fact among others.

    Args:
        info: the evaluation.
        comparison: of its answers with those of the baseline.
        baseline: the pinned evaluation of its test set; None: there is none, or it is this one.
    """
    figures, code = info.figures, VerdictCode.INVALID
    facts, of = tuple(_facts(info)), f" of {figures.primary}" if figures.primary else ""
    if info.state is EvaluationState.VOID:
        return VerdictBlock(code.text, f"The figures of {info.label} are invalid.", code.tone, facts, info.void)
    if info.state in {EvaluationState.WAITING, EvaluationState.GRADED}:
        left = f"Grades of {count_noun(info.n_waiting, 'results')} of its book are missing. " if info.n_waiting else ""
        then = (
            (
                "These figures are from when the results were collected; the measures of its page use the "
                "current grades of the book."
            )
            if figures.has_value
            else f"No query had a value{of} when the results were collected."
        )
        text = left + then
        cell = STATES[info.state]
        return VerdictBlock(
            str(cell.value), text, "open" if info.n_waiting else "even", facts, caveats=figures.warnings
        )
    if info.state is EvaluationState.NO_VALUE and not info.broken_rules:
        name = str(STATES[info.state].value)
        return VerdictBlock(name, f"No query has a value{of} yet.", "open", facts, caveats=figures.warnings)
    if figures.pilot:
        return VerdictBlock("pilot", "A pilot, not for the record.", "open", facts, caveats=figures.warnings)
    return _of_record(info, comparison, baseline, facts)


def _of_record(
    info: EvaluationInfo,
    comparison: ComparisonInfo | None,
    baseline: EvaluationInfo | None,
    facts: tuple[VerdictFact, ...],
) -> VerdictBlock:
    """The verdict against the baseline and the rules of the gate."""
    verdict = None if comparison is None else code_of(comparison.verdict)
    broken, gate = info.broken_rules, info.figures.gate or {}
    name: str = "not compared"
    tone: Tone = "open"
    is_of_record = comparison is not None and comparison.is_of_record
    if verdict is not None and verdict is not VerdictCode.INVALID and is_of_record:
        name, tone = verdict.text, verdict.tone
    if info.pinned:
        name, tone, sentence = (
            "baseline",
            "even",
            "This evaluation is the baseline of its test set; others are compared with it.",
        )
    elif comparison is not None:
        sentence = comparison.sentence if is_of_record else f"{comparison.sentence} {PARTLY}"
    else:
        sentence = _uncompared(info, baseline)
    if broken:
        rules = f"It breaks {len(broken)} of {count_noun(len(gate), 'rules')} of the gate: {'; '.join(broken)}."
        is_worse = comparison is not None and comparison.is_regression
        name, sentence = (
            (f"{name}, gate failed", f"{sentence} {rules}") if is_worse else ("gate failed", f"{rules} {sentence}")
        )
        tone = "bad"
    counts = VerdictFact("Evidence", "valid", "no check found a reason to reject the figures")
    return VerdictBlock(name, sentence, tone, (*facts, counts), caveats=info.figures.warnings)


def _uncompared(info: EvaluationInfo, baseline: EvaluationInfo | None) -> str:
    """That it is not known to be better or worse; with both means, where they are of the same queries."""
    if baseline is None:
        return (
            f"No evaluation is pinned as the baseline of {info.testset_name}, so it is unknown whether this one "
            "is better or worse."
        )
    text = f"Not compared with the baseline {baseline.label} #{baseline.id} yet."
    primary = info.figures.primary
    means = [each.figures.measures.get(primary or "", {}).get("mean") for each in (info, baseline)]
    if None in means or info.testset_digest != baseline.testset_digest or baseline.book_id is not None:
        return text
    return f"{text} {primary}: {VALUE.text(means[0])}, baseline: {VALUE.text(means[1])}."


def _facts(info: EvaluationInfo) -> Iterator[VerdictFact]:
    figures = info.figures
    primary = figures.measures.get(figures.primary or "")
    if primary is not None:
        text = VALUE.text(primary.get("mean"))
        low, high = primary.get("ci_low"), primary.get("ci_high")
        interval = "" if low is None else f"95 % CI {CI.text((low, high))}"
        yield VerdictFact(f"{figures.primary}", text, interval)
    unscored = f", {figures.n_unscored} without a value" if figures.n_unscored else ""
    yield VerdictFact("Queries", f"{figures.n_queries}", f"n = {primary.get('n') if primary else 0}{unscored}")
    mean, k = figures.judged.get("mean"), figures.judged.get("k")
    yield VerdictFact("Judged", PERCENT.text(mean), f"of the first {k} results" if k else "")
    n_failed = sum(figures.failures.values())
    kinds = ", ".join(f"{kind}: {n}" for kind, n in figures.failures.items())
    yield VerdictFact("Failed", f"{n_failed}", kinds or "no query failed", "bad" if n_failed else "")
    if figures.latency_ms:
        p50, p95 = (figures.latency_ms.get(key) for key in ("p50", "p95"))
        if p50 is not None:
            yield VerdictFact(
                "Latency", MS.text(p50), f"median; 95 % under {MS.text(p95)}" if p95 is not None else "median"
            )


def summary_sections(info: EvaluationInfo) -> tuple[Section, ...]:
    """Measures, strata, the worst queries, rules of the gate, and where it is all from."""
    return tuple(
        section
        for section in (_measures(info), *_strata(info), _worst(info), _gate(info), _provenance(info))
        if section is not None
    )


def _measures(info: EvaluationInfo) -> Section:
    found = info.figures.measures
    if not found:
        return Section("measures", "Measures", (Paragraph("No measure has a value for any query."),))
    rows: list[tuple[Cell, ...]] = [
        (f"* {name}" if name == info.figures.primary else name, each.get("mean"), _interval(each), each.get("n"))
        for name, each in found.items()
    ]
    columns = (Column("measure"), Column("mean", "value"), CI, Column("n", "count"))
    caption = "Means over the n queries with a value; * primary measure"
    return Section("measures", "Measures", (Table(columns, rows, caption, shown=None),))


def _interval(found: Mapping[str, Any]) -> tuple[float | None, float | None]:
    return found.get("ci_low"), found.get("ci_high")


def _strata(info: EvaluationInfo) -> Iterator[Section]:
    """A heat map and a table for each key of strata."""
    blocks: list[Block] = []
    for place, (key, values) in enumerate(info.figures.strata.items()):
        names = list(dict.fromkeys(chain(info.figures.measures, *values.values())))
        names = [name for name in names if any(name in found for found in values.values())]
        if names:
            blocks += _stratum_blocks(place, key, values, names)
    if blocks:
        yield Section("strata", "Strata", tuple(blocks))


def _stratum_blocks(
    place: int, key: str, values: Mapping[str, Mapping[str, Mapping[str, Any]]], names: Sequence[str]
) -> Iterator[Block]:
    drawn = [name for name in names if CATALOGUE[parse(name).name].range == (0.0, 1.0)]
    columns = (Column(key), Column("n", "count"), *(Column(name, "value") for name in names))
    rows: list[tuple[Cell, ...]] = [
        (
            value or "none",
            max((each.get("n") or 0 for each in found.values()), default=0),
            *(found.get(name, {}).get("mean") for name in names),
        )
        for value, found in values.items()
    ]
    table = Table(columns, rows, f"Means by {key}", shown=None)
    if drawn and 2 <= len(values) <= MAX_DRAWN:
        heat = [
            HeatRow(f"{row[0]} ({row[1]})", tuple(found.get(name, {}).get("mean") for name in drawn), frozenset())
            for row, found in zip(rows, values.values(), strict=True)
        ]
        spec, narrow = (heat_map(heat, drawn, drawn, screen) for screen in SCREENS)
        legend: tuple[tuple[Swatch, str], ...] = (("good", "stronger colour: higher mean"),)
        alt = f"Means of {count_noun(len(heat), 'groups')} by {key}; the table has the numbers."
        yield Chart(f"heat-{place}", f"Measures by {key}", alt, spec, narrow, table, legend, table_follows=True)
    yield table
    intervals: list[tuple[Cell, ...]] = [
        (value or "none", name, each.get("mean"), _interval(each), each.get("n"))
        for value, found in values.items()
        for name, each in found.items()
    ]
    inner = (Column(key), Column("measure"), Column("mean", "value"), CI, Column("n", "count"))
    yield Details(f"With intervals, by {key}", (Table(inner, intervals, f"Means and intervals by {key}", shown=None),))


def _worst(info: EvaluationInfo) -> Section | None:
    if not info.figures.worst:
        return None
    rows: list[tuple[Cell, ...]] = [
        (Link(str(each["query"]), f"{info.id}/queries/{each['query']}"), each.get("text"), each.get("value"))
        for each in info.figures.worst
    ]
    columns = (Column("query"), Column("text"), Column(f"{info.figures.primary}", "value"))
    return Section("worst", "Worst queries", (Table(columns, rows, f"Lowest {info.figures.primary}", shown=None),))


def _gate(info: EvaluationInfo) -> Section | None:
    if not info.figures.gate:
        return None
    rows: list[tuple[Cell, ...]] = [
        (
            rule,
            TonedCell("not decided", "open")
            if holds is None
            else TonedCell("holds" if holds else "broken", "" if holds else "bad"),
        )
        for rule, holds in info.figures.gate.items()
    ]
    return Section(
        "gate", "Rules of the gate", (Table((Column("rule", "code"), Column("state")), rows, "Rules", shown=None),)
    )


def _provenance(info: EvaluationInfo) -> Section:
    facts = [
        ("test set", f"{info.testset_name} {info.testset_version}".strip()),
        ("its digest", info.testset_digest[:DIGEST_SHOWN]),
        ("system", info.system),
        ("variant", info.variant),
        ("components", info.components),
        ("config of the system", info.config_digest[:DIGEST_SHOWN]),
        ("results requested", "" if info.figures.k is None else str(info.figures.k)),
        ("convention", info.figures.convention),
        ("stored run", str(info.run_id)),
        ("made", f"{when(info.at)}, by {info.account or info.trigger.value}"),
    ]
    shown = tuple((name, value) for name, value in facts if value)
    blocks: list[Block] = [KeyValues(shown)]
    if info.void and info.figures.warnings:
        blocks.append(Bullets(info.figures.warnings, "warning"))
    return Section("provenance", "Provenance", tuple(blocks))
