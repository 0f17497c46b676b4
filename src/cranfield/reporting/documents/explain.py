"""Why one run scores differently under two conventions, as a Document: choices, means, causes, and queries one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from cranfield.evaluation.explain import Choice, ChoiceEffect, Explanation, MeasureExplanation, count
from cranfield.evaluation.margins import Margin, tie_margin, unjudged_margin
from cranfield.evaluation.values import known_mean
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import Convention, TestSet
from cranfield.model.convention import CHOICES
from cranfield.numbers import format_delta
from cranfield.record import Fields, plain, record_of
from cranfield.reporting.document import (
    MADE_BY,
    Block,
    Bullets,
    Cell,
    Column,
    Document,
    Paragraph,
    Section,
    Table,
    tidy_table,
)
from cranfield.reporting.sections.labels import testset_label

SCHEMA_VERSION = 1
NEW = "a value"
GONE = "no value"
FIELDS: Fields = {
    Margin: "low=mean_low high=mean_high n_results n_queries",
    TestSet: "name digest",
    ChoiceEffect: "choice=choice.name alone=step_alone n_alone=changed_alone.sum in_order=step n_in_order=changed.sum",
}
"""What is written of each class; see `cranfield.record`."""


def explanation_document(
    explanation: Explanation, *, top: int = 10, ties: bool = False, unjudged: bool = False
) -> Document:
    """The report of an explanation.

    Args:
        explanation: one run under two conventions.
        top: queries shown for each measure.
        ties: add the worst and best case of how equal scores fall.
        unjudged: add the bounds given what is unjudged.
    """
    a, b = explanation.a, explanation.b
    found = _margins(explanation, [*(["ties"] if ties else []), *(["unjudged"] if unjudged else [])])
    sections = [
        Section("choices", "Differences", tuple(_choices(explanation))),
        Section("measures", "Effect on the means", tuple(_measures(explanation))),
        *([Section("margins", "Bounds", tuple(_margin_blocks(found)))] if found else []),
        Section("queries", "Per-query differences", tuple(_queries(explanation, top))),
    ]
    return Document(
        title=f"Why {explanation.run} scores differently under {a.name} and {b.name}",
        subtitle=(
            f"test set {testset_label(explanation.testset)}",
            f"{a.name}: {a.sentence}",
            f"{b.name}: {b.sentence}",
        ),
        sections=tuple(sections),
        tidy=partial(_tidy, explanation),
        payload=partial(_payload, explanation, found),
        made_by=MADE_BY,
    )


def _choices(explanation: Explanation) -> Iterator[Block]:
    if not explanation.choices:
        yield Paragraph(f"{explanation.a.name} and {explanation.b.name} make the same choices.")
        return
    rows: list[tuple[Cell, ...]] = [
        (
            choice.name,
            _choice_text(choice.a),
            _choice_text(choice.b),
            ", ".join(_moved_by(explanation, choice)) or "nothing here",
        )
        for choice in explanation.choices
    ]
    columns = (
        Column("choice", "code"),
        Column(explanation.a.name, "code"),
        Column(explanation.b.name, "code"),
        Column("changes"),
    )
    yield Table(columns, rows, "Choices on which the two differ, in the order they are switched", shown=None)
    if explanation.unused:
        yield Paragraph(f"No effect here: {', '.join(choice.name for choice in explanation.unused)}.")


def _moved_by(explanation: Explanation, choice: Choice) -> list[str]:
    return [
        str(about.measure)
        for about in explanation.measures
        for part in about.parts
        if part.choice == choice and part.has_effect
    ]


def _measures(explanation: Explanation) -> Iterator[Block]:
    a, b = explanation.a.name, explanation.b.name
    rows: list[tuple[Cell, ...]] = [
        (
            str(about.measure),
            known_mean(about.a),
            count(about.a),
            known_mean(about.b),
            count(about.b),
            about.difference,
            int(about.changed.sum()),
        )
        for about in explanation.measures
    ]
    columns = (
        Column("measure"),
        Column(a, "value"),
        Column("n", "count"),
        Column(b, "value"),
        Column("n", "count"),
        Column("difference", "delta"),
        Column("queries", "count"),
    )
    yield Table(columns, rows, "Means, and the queries whose value differs", shown=None)
    causes: list[tuple[Cell, ...]] = [
        (
            str(about.measure),
            part.choice.name,
            part.step_alone,
            int(part.changed_alone.sum()),
            part.step,
            int(part.changed.sum()),
        )
        for about in explanation.measures
        for part in about.parts
        if part.has_effect
    ]
    if not causes:
        yield Paragraph("No value differs.")
        return
    heads = (
        Column("measure"),
        Column("choice", "code"),
        Column("alone", "delta"),
        Column("queries", "count"),
        Column("in order", "delta"),
        Column("queries", "count"),
    )
    yield Table(heads, causes, f"Effect of each choice of {b} on the mean of {a}", shown=None)
    yield Bullets(
        (
            "alone: this choice switched, all others as they are.",
            "in order: switched after those above it; these add up to the difference.",
        )
    )


def _queries(explanation: Explanation, top: int) -> Iterator[Block]:
    for about in explanation.measures:
        places = about.most_changed()
        if not places:
            yield Paragraph(f"{about.measure}: no query differs.")
            continue
        shown = places[:top]
        rows: list[tuple[Cell, ...]] = [
            (explanation.query_ids[place], *about.values(place), _difference(about, place), _causes(about, place))
            for place in shown
        ]
        columns = (
            Column("query", "query id"),
            Column(explanation.a.name, "value"),
            Column(explanation.b.name, "value"),
            Column("difference", "delta"),
            Column("cause"),
        )
        which = (
            f"the {len(shown)} that changed most of {len(places)}" if len(shown) < len(places) else "all that changed"
        )
        yield Table(columns, rows, f"{about.measure}: {which}", shown=None)
        if reasons := (*_reasons(explanation, about, shown), *_narrow_ties(explanation, about, shown)):
            yield Bullets(reasons)


def _difference(about: MeasureExplanation, place: int) -> float | None:
    a, b = about.values(place)
    return None if a is None or b is None else b - a


def _causes(about: MeasureExplanation, place: int) -> str:
    """`ideal +0.2000, rr_depth −0.1000`."""
    words = []
    for part in about.causes(place):
        step = part.step_of(place)
        if step is None:
            words.append(f"{part.choice.name} ({GONE if math.isnan(part.after[place]) else NEW})")
        else:
            words.append(f"{part.choice.name} {format_delta(step)}")
    return ", ".join(words)


def _reasons(explanation: Explanation, about: MeasureExplanation, places: Sequence[int]) -> tuple[str, ...]:
    """Why queries shown have no value on one side, a line a reason."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for place in places:
        query_id = explanation.query_ids[place]
        for side, reasons in ((explanation.a, about.reasons_a), (explanation.b, about.reasons_b)):
            if query_id in reasons:
                by_reason.setdefault((side.name, reasons[query_id]), []).append(query_id)
    return tuple(f"no value under {side}: {why}: {', '.join(queries)}" for (side, why), queries in by_reason.items())


def _narrow_ties(explanation: Explanation, about: MeasureExplanation, places: Sequence[int]) -> Iterator[str]:
    """The results that tie at 32 bits alone, of queries shown that change by it."""
    for place in places:
        if all(part.choice.name != "score_width" for part in about.causes(place)):
            continue
        query_id = explanation.query_ids[place]
        tie = explanation.narrow_tie(query_id)
        if tie is not None:
            yield (
                f"{query_id}: the scores of {tie.above} ({tie.above_score!r}) and {tie.below} ({tie.below_score!r}) "
                f"are equal as 32-bit floats; {tie.below} goes first there"
            )


def _margins(explanation: Explanation, names: Sequence[str]) -> list[tuple[str, Convention, Measure, Margin]]:
    make = {"ties": tie_margin, "unjudged": unjudged_margin}
    return [
        (name, convention, about.measure, make[name](about.measure, ranking))
        for name in names
        for about in explanation.measures
        if not CATALOGUE[about.measure.name].diagnostic
        for convention, ranking in zip((explanation.a, explanation.b), explanation.rankings, strict=True)
    ]


def _margin_blocks(found: Sequence[tuple[str, Convention, Measure, Margin]]) -> Iterator[Block]:
    captions = {
        "ties": "Worst and best case of how equal scores fall: means, judged results that tie, queries that have them",
        "unjudged": "Lowest and highest means over the grades of every unjudged result within the cutoff; how many there are",
    }
    for name, caption in captions.items():
        rows: list[tuple[Cell, ...]] = [
            (str(measure), convention.name, margin.mean_low, margin.mean_high, margin.n_results, margin.n_queries)
            for kind, convention, measure, margin in found
            if kind == name
        ]
        if not rows:
            continue
        columns = (
            Column("measure"),
            Column("convention"),
            Column("lowest", "value"),
            Column("highest", "value"),
            Column("results", "count"),
            Column("queries", "count"),
        )
        yield Table(columns, rows, caption, shown=None)
        silent = {
            f"{measure} under {convention.name}: {margin.why}"
            for kind, convention, measure, margin in found
            if kind == name and margin.why
        }
        if silent:
            yield Bullets(tuple(sorted(silent)))


def _tidy(explanation: Explanation) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            query_id,
            str(about.measure),
            *about.values(place),
            _difference(about, place),
            *(part.step_of(place) for part in about.parts),
        )
        for about in explanation.measures
        for place, query_id in enumerate(explanation.query_ids)
    ]
    names = [choice.name for choice in explanation.choices]
    return tidy_table(("query", "measure", explanation.a.name, explanation.b.name, "difference", *names), rows)


def _payload(explanation: Explanation, found: Sequence[tuple[str, Convention, Measure, Margin]]) -> dict[str, Any]:
    unused = set(explanation.unused)
    payload: dict[str, Any] = {
        "schema_version": SCHEMA_VERSION,
        "run": explanation.run,
        "testset": record_of(explanation.testset, FIELDS) | {"n_queries": len(explanation.query_ids)},
        "a": _convention(explanation.a),
        "b": _convention(explanation.b),
        "choices": [record_of(choice) | {"changes_values": choice not in unused} for choice in explanation.choices],
        "measures": {str(about.measure): _measure(explanation, about) for about in explanation.measures},
    }
    for name in dict.fromkeys(kind for kind, *_ in found):
        payload[name] = [
            {
                "measure": str(measure),
                "convention": convention.name,
                **record_of(margin, FIELDS),
                "why": margin.why or None,
            }
            for kind, convention, measure, margin in found
            if kind == name
        ]
    return payload


def _measure(explanation: Explanation, about: MeasureExplanation) -> dict[str, Any]:
    return {
        "a": known_mean(about.a),
        "b": known_mean(about.b),
        "n_a": count(about.a),
        "n_b": count(about.b),
        "difference": about.difference,
        "n_changed": int(about.changed.sum()),
        "parts": plain(about.parts, FIELDS),
        "queries": {
            query_id: _query(explanation, about, place, query_id)
            for place, query_id in enumerate(explanation.query_ids)
        },
    }


def _query(explanation: Explanation, about: MeasureExplanation, place: int, query_id: str) -> dict[str, Any]:
    a, b = about.values(place)
    record: dict[str, Any] = {"a": a, "b": b, "difference": _difference(about, place)}
    if causes := about.causes(place):
        record["causes"] = {part.choice.name: part.step_of(place) for part in causes}
    if "score_width" in record.get("causes", {}) and (tie := explanation.narrow_tie(query_id)) is not None:
        record["narrow_tie"] = record_of(tie)
    for side, reasons in (("why_not_a", about.reasons_a), ("why_not_b", about.reasons_b)):
        if query_id in reasons:
            record[side] = reasons[query_id]
    return record


def _convention(convention: Convention) -> dict[str, Any]:
    return {"name": convention.name, **{name: getattr(convention, name) for name in CHOICES}}


def _choice_text(choice: str | int | None) -> str:
    return "none" if choice is None else str(choice)
