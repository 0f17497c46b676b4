"""An evaluation as sections of a report, from its record: nothing is scored for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING

from cranfield.base.numbers import format_interval, format_ms, format_percent, format_value
from cranfield.base.words import count_noun
from cranfield.evaluation.values import Summary
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.reporting.charts.spec import SCREENS
from cranfield.reporting.charts.systems import HeatRow, heat_map
from cranfield.reporting.document import (
    Block,
    Bullets,
    Chart,
    Details,
    KeyValues,
    Link,
    Paragraph,
    Section,
    Swatch,
    Tone,
    TonedCell,
    VerdictBlock,
    VerdictFact,
)
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec, interval
from cranfield.workbench.server.pages import when
from cranfield.workbench.server.tables import CI, STATES
from cranfield.workbench.service.responses import EvaluationState

if TYPE_CHECKING:
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo, Json

N_WORST = 20
MAX_DRAWN = 24
"""Rows of a heat map; more are a table alone."""
DIGEST_SHOWN = 19
PARTLY = "One side is a pilot or uses other components, so the result does not apply to the whole system."


def headline(
    info: EvaluationInfo, comparison: ComparisonInfo | None = None, baseline: EvaluationInfo | None = None
) -> VerdictBlock:
    """What a page about an evaluation begins with: what makes it void, a regression, the verdict; that it counts is a fact among others.

    Args:
        info: the evaluation.
        comparison: of its answers with those of the baseline.
        baseline: the pinned evaluation of its test set; None: there is none, or it is this one.
    """
    code, facts, of = VerdictCode.INVALID, tuple(_facts(info)), f" of {info.primary}" if info.primary else ""
    if info.state is EvaluationState.VOID:
        return VerdictBlock(code.text, f"The figures of {info.label} are invalid.", code.tone, facts, info.void)
    if info.state in {EvaluationState.WAITING, EvaluationState.GRADED}:
        left = f"Grades of {count_noun(info.n_waiting, 'results')} of its book are missing. " if info.n_waiting else ""
        then = (
            (
                "These figures are from when the results were collected; the measures of its page use the "
                "current grades of the book."
            )
            if info.has_value
            else f"No query had a value{of} when the results were collected."
        )
        text = left + then
        cell = STATES[info.state]
        tone: Tone = "open" if info.n_waiting else "even"
        return VerdictBlock(str(cell.value), text, tone, facts, caveats=info.warnings)
    if info.state is EvaluationState.NO_VALUE and not info.broken_rules:
        name = str(STATES[info.state].value)
        return VerdictBlock(name, f"No query has a value{of} yet.", "open", facts, caveats=info.warnings)
    if info.pilot:
        return VerdictBlock("pilot", "A pilot, not for the record.", "open", facts, caveats=info.warnings)
    return _of_record(info, comparison, baseline, facts)


def _of_record(
    info: EvaluationInfo,
    comparison: ComparisonInfo | None,
    baseline: EvaluationInfo | None,
    facts: tuple[VerdictFact, ...],
) -> VerdictBlock:
    """The verdict against the baseline and the rules of the gate."""
    verdict = None if comparison is None else comparison.record.verdict
    broken, gate = info.broken_rules, info.facts.gate or {}
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
        sentence = comparison.record.verdict_sentence + ("" if is_of_record else f" {PARTLY}")
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
    return VerdictBlock(name, sentence, tone, (*facts, counts), caveats=info.warnings)


def _uncompared(info: EvaluationInfo, baseline: EvaluationInfo | None) -> str:
    """That it is not known to be better or worse; with both means, where they are of the same queries."""
    if baseline is None:
        return (
            f"No evaluation is pinned as the baseline of {info.testset_name}, so it is unknown whether this one "
            "is better or worse."
        )
    text = f"Not compared with the baseline {baseline.label} #{baseline.id} yet."
    primary = info.primary
    found = [each.scores.measures.get(primary) for each in (info, baseline) if primary is not None]
    means = [each.mean for each in found if each is not None and each.mean is not None]
    if len(means) < 2 or info.testset_digest != baseline.testset_digest or baseline.book_id is not None:
        return text
    return f"{text} {primary}: {format_value(means[0])}, baseline: {format_value(means[1])}."


def _facts(info: EvaluationInfo) -> Iterator[VerdictFact]:
    scores, primary, n = info.scores, info.summary, 0
    if primary is not None:
        n = primary.n
        ends = "" if primary.ci_low is None else f"{CI} {format_interval(interval(primary))}"
        yield VerdictFact(f"{info.primary}", format_value(primary.mean), ends)
    unscored = f", {scores.n_queries - n} without a value" if primary is not None and n < scores.n_queries else ""
    yield VerdictFact("Queries", f"{scores.n_queries}", f"n = {n}{unscored}")
    yield VerdictFact(
        "Judged", format_percent(scores.judged.mean), f"of the first {scores.judged.measure.depth} results"
    )
    kinds = ", ".join(f"{kind}: {n}" for kind, n in info.facts.failures.items())
    yield VerdictFact("Failed", f"{info.n_failed}", kinds or "no query failed", "bad" if info.n_failed else "")
    if info.facts.latency_ms:
        p50, p95 = (info.facts.latency_ms.get(key) for key in ("p50", "p95"))
        if p50 is not None:
            yield VerdictFact(
                "Latency", format_ms(p50), f"median; 95 % under {format_ms(p95)}" if p95 is not None else "median"
            )


def summary_sections(info: EvaluationInfo, payload: Json) -> tuple[Section, ...]:
    """Measures, strata, the worst queries, rules of the gate, and where it is all from; `payload` is the JSON with all queries."""
    return tuple(
        section
        for section in (_measures(info), *_strata(info), _worst(info, payload), _gate(info), _provenance(info))
        if section is not None
    )


def _measures(info: EvaluationInfo) -> Section:
    found = info.scores.measures
    if not found:
        return Section("measures", "Measures", (Paragraph("No measure has a value for any query."),))
    columns: Columns[tuple[Measure, Summary]] = (
        Col("measure", lambda row: f"* {row[0]}" if row[0] == info.primary else str(row[0])),
        Col("mean", lambda row: row[1].mean, "value"),
        Col(CI, lambda row: interval(row[1]), "interval"),
        Col("n", lambda row: row[1].n, "count"),
    )
    caption = "Means over the n queries with a value; * primary measure"
    return Section("measures", "Measures", (TableSpec(caption, list(found.items()), columns).table(),))


def _strata(info: EvaluationInfo) -> Iterator[Section]:
    """A heat map and a table for each key of strata."""
    blocks: list[Block] = []
    for place, (key, values) in enumerate(info.strata.items()):
        blocks += _stratum_blocks(place, key, values, list(dict.fromkeys(chain(*values.values()))))
    if blocks:
        yield Section("strata", "Strata", tuple(blocks))


def _stratum_blocks(
    place: int, key: str, values: Mapping[str, Mapping[Measure, Summary]], measures: list[Measure]
) -> Iterator[Block]:
    drawn = [each for each in measures if each.name in CATALOGUE and CATALOGUE[each.name].range == (0.0, 1.0)]
    rows = [
        (value or "none", max((each.n for each in found.values()), default=0), found) for value, found in values.items()
    ]
    columns: Columns[tuple[str, int, Mapping[Measure, Summary]]] = (
        Col(key, lambda row: row[0]),
        Col("n", lambda row: row[1], "count"),
        Cols(measures, lambda row, measure: row[2][measure].mean if measure in row[2] else None, "value"),
    )
    table = TableSpec(f"Means by {key}", rows, columns).table()
    if drawn and 2 <= len(values) <= MAX_DRAWN:
        heat = [
            HeatRow(f"{value} ({n})", tuple(found[each].mean if each in found else None for each in drawn), frozenset())
            for value, n, found in rows
        ]
        names = list(map(str, drawn))
        spec, narrow = (heat_map(heat, names, names, screen) for screen in SCREENS)
        legend: tuple[tuple[Swatch, str], ...] = (("good", "stronger colour: higher mean"),)
        alt = f"Means of {count_noun(len(heat), 'groups')} by {key}; the table has the numbers."
        yield Chart(f"heat-{place}", f"Measures by {key}", alt, spec, narrow, table, legend, table_follows=True)
    yield table
    of_each: Columns[tuple[str, Measure, Summary]] = (
        Col(key, lambda row: row[0]),
        Col("measure", lambda row: str(row[1])),
        Col("mean", lambda row: row[2].mean, "value"),
        Col(CI, lambda row: interval(row[2]), "interval"),
        Col("n", lambda row: row[2].n, "count"),
    )
    each = [(value, measure, about) for value, _, found in rows for measure, about in found.items()]
    yield Details(f"With intervals, by {key}", (TableSpec(f"Means and intervals by {key}", each, of_each).table(),))


def _worst(info: EvaluationInfo, payload: Json) -> Section | None:
    """The queries with the worst values of the primary measure."""
    measure, values = info.primary, payload["systems"][0]["queries"]
    if measure is None or measure.name not in CATALOGUE or not info.has_value:
        return None
    found = {query: value for query, of in values.items() if (value := of.get(measure.canonical)) is not None}
    worst = sorted(found, key=lambda query: sign_of(measure) * found[query])[:N_WORST]
    columns: Columns[str] = (
        Col("query", lambda query: Link(query, f"{info.id}/queries/{query}")),
        Col("text", lambda query: payload["queries"][query]["text"]),
        Col(str(measure), found.__getitem__, "value"),
    )
    return Section("worst", "Worst queries", (TableSpec(f"Lowest {measure}", worst, columns).table(),))


def _gate(info: EvaluationInfo) -> Section | None:
    if not info.facts.gate:
        return None
    states = {
        None: TonedCell("not decided", "open"),
        True: TonedCell("holds", ""),
        False: TonedCell("broken", "bad"),
    }
    columns: Columns[tuple[str, bool | None]] = (
        Col("rule", lambda row: row[0], "code"),
        Col("state", lambda row: states[row[1]]),
    )
    table = TableSpec("Rules", list(info.facts.gate.items()), columns).table()
    return Section("gate", "Rules of the gate", (table,))


def _provenance(info: EvaluationInfo) -> Section:
    facts = [
        ("test set", f"{info.testset_name} {info.testset_version}".strip()),
        ("its digest", info.testset_digest[:DIGEST_SHOWN]),
        ("system", info.system),
        ("variant", info.variant),
        ("components", info.components),
        ("config of the system", info.config_digest[:DIGEST_SHOWN]),
        ("results requested", "" if info.facts.k is None else str(info.facts.k)),
        ("convention", info.record.convention),
        ("stored run", str(info.run_id)),
        ("made", f"{when(info.at)}, by {info.account or info.trigger.value}"),
    ]
    shown = tuple((name, value) for name, value in facts if value)
    blocks: list[Block] = [KeyValues(shown)]
    if info.void and info.warnings:
        blocks.append(Bullets(info.warnings, "warning"))
    return Section("provenance", "Provenance", tuple(blocks))
