"""Predicted against expected values: accuracy with its interval, and a table of counts for each system."""

from __future__ import annotations

from collections.abc import Sequence

from cranfield.evaluation.confusion import Confusion
from cranfield.numbers import format_count, format_level, format_value
from cranfield.reporting.document import Block, Cell, Column, Paragraph, Section, Table
from cranfield.reporting.sections.subject import Subject
from cranfield.words import and_list, first_of, n_of

SHOWN = 4
"""Accuracies in the line of the section while it is closed."""
MOST_LABELS = 12
"""Predicted values that have a column; the others are one column together."""


def confusion(subject: Subject) -> Section | None:
    """How often a field of the answers is what the stratum of the query expects."""
    tables = [(label, found) for label, system in subject.systems for found in system.confusion]
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
    blocks += _expected_errors(tables)
    for label, found in tables:
        blocks += _counts(label, found)
    accuracies = [f"{label} {format_value(found.accuracy)}" for label, found in tables if found.accuracy is not None]
    key_figure = f"accuracy {first_of(accuracies, SHOWN)}" if accuracies else "no accuracy"
    return Section("confusion", "Predicted and expected", tuple(blocks), key_figure)


def _expected_errors(tables: Sequence[tuple[str, Confusion]]) -> list[Block]:
    """How often each system picked the wrong task type that the labels expect."""
    found = [(label, table.field, errors) for label, table in tables if (errors := table.expected_errors) is not None]
    rows: list[tuple[Cell, ...]] = [
        (label, field, e.n_as_expected, e.share, e.interval, e.n_right, e.n - e.n_as_expected - e.n_right, e.n)
        for label, field, e in found
    ]
    if not rows:
        return []
    level = format_level(1 - found[0][2].level)
    columns = (
        *(Column("system"), Column("field", "code"), Column("expected wrong type", "count"), Column("share", "value")),
        *(
            Column(f"{level} CI", "interval"),
            Column("right type", "count"),
            Column("other", "count"),
            Column("n", "count"),
        ),
    )
    return [
        Table(columns, rows, "Queries whose label expects a classifier to pick another task type, and what it picked")
    ]


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
