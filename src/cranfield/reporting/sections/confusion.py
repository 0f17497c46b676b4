"""Predicted against expected values: accuracy with its interval, and a table of counts for each system."""

from __future__ import annotations

from typing import Any

from cranfield.evaluation.confusion import Confusion
from cranfield.numbers import format_count, format_level
from cranfield.record import Fields, record_of
from cranfield.reporting.document import Block, Cell, Column, Paragraph, Section, Table
from cranfield.reporting.sections.subject import Subject
from cranfield.words import and_list, n_of

MOST_LABELS = 12
"""Predicted values that have a column; the others are one column together."""


def confusion(subject: Subject) -> Section | None:
    """How often a field of the answers is what the stratum of the query expects."""
    tables = [(label, found) for label, evaluation in subject.systems for found in evaluation.confusions]
    if not tables:
        return None
    rows: list[tuple[Cell, ...]] = [
        (label, found.field, found.stratum, found.accuracy, found.interval, found.commonest, found.n)
        for label, found in tables
    ]
    level = format_level(1 - tables[0][1].level)
    columns = (
        *(Column("system"), Column("field", "code"), Column("expected", "code"), Column("accuracy", "value")),
        *(Column(f"{level} CI", "interval"), Column("commonest value", "value"), Column("n", "count")),
    )
    caption = "Accuracy, its Wilson interval, and the accuracy of always predicting the commonest expected value"
    blocks: list[Block] = [Table(columns, rows, caption)]
    for label, found in tables:
        blocks += _counts(label, found)
    return Section("confusion", "Predicted and expected", tuple(blocks))


def _counts(label: str, found: Confusion) -> list[Block]:
    shown, rest = found.predicted[:MOST_LABELS], len(found.predicted) - MOST_LABELS
    others = (Column(f"{format_count(rest)} others", "count"),) if rest > 0 else ()
    columns = (Column(found.stratum), *(Column(name, "count") for name in shown), *others)
    columns += (Column("n", "count"), Column("recall", "value"))
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *counts[:MOST_LABELS],
            *([sum(counts[MOST_LABELS:])] if others else []),
            *(sum(counts), found.recall[name]),
        )
        for name, counts in zip(found.expected, found.counts, strict=True)
    ]
    blocks: list[Block] = [
        Table(columns, rows, f"{label}: {found.stratum} expected (rows), {found.field} predicted (columns)")
    ]
    precisions: list[tuple[Cell, ...]] = [
        (name, sum(row[place] for row in found.counts), found.precision[name])
        for place, name in enumerate(found.predicted)
        if name in found.expected and found.is_prediction
    ]
    if precisions:
        titles = (Column(found.field), Column("predicted", "count"), Column("precision", "value"))
        blocks.append(Table(titles, precisions, f"{label}: precision of each predicted value"))
    if not found.is_prediction:
        sentence = f"{label}: no value of {found.field} is a value of {found.stratum}, so there is no accuracy."
        blocks.append(Paragraph(sentence, "note"))
    if found.differs_by_case:
        pairs = and_list([f"{value} is {expected}" for value, expected in found.differs_by_case.items()])
        blocks.append(Paragraph(f"{label}: {pairs} in another case, and counts as another value.", "warning"))
    if found.n_unanswered:
        left_out = n_of(found.n_unanswered, "queries", format_count)
        have, are = ("has", "is") if found.n_unanswered == 1 else ("have", "are")
        blocks.append(Paragraph(f"{label}: {left_out} failed or {have} no answer, and {are} not in the table.", "note"))
    return blocks


FIELDS: Fields = {
    Confusion: (
        "field stratum accuracy ci_low=interval.0 ci_high=interval.1 ci_level=level commonest n n_right n_unanswered expected "
        "predicted counts recall precision"
    ),
}
"""What is written of each class; see `cranfield.record`."""


def confusion_record(found: Confusion) -> dict[str, Any]:
    """A table in JSON."""
    wrong = {query_id: {"expected": e, "predicted": p} for query_id, (e, p) in found.wrong.items()}
    return record_of(found, FIELDS) | {"wrong": wrong}
