"""Books as Documents: how the verdict on two runs depends on the consensus rule and on the raters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cranfield.evaluation.sensitivity import Sensitivity, Variation
from cranfield.evaluation.values import Comparison
from cranfield.record import Fields, record_of
from cranfield.reporting.document import Bullets, Cell, Column, Document, Paragraph, Section, tidy_table
from cranfield.reporting.documents.testset import table, testset_document
from cranfield.reporting.sections.verdict import sensitivity_blocks

if TYPE_CHECKING:
    from cranfield.judging.book.grades import SourceDifference
    from cranfield.model import TestSet

SHOWN_DIFFERENCES = 20
Means = Sequence[tuple[float | None, float | None]]
"""Of baseline and candidate in each variation."""
TIDY = ("setting", "value", "verdict", "delta", "ci_low", "ci_high", "n")


def book_sensitivity_document(
    testset: TestSet,
    comparison: Comparison,
    found: Sensitivity,
    means: Means,
    line: str,
    differences: Sequence[SourceDifference],
) -> Document:
    """The declared verdict, the line of how many analyses agree, the table of them, and where the sources differ."""
    names = f"A: {comparison.baseline.name}, B: {comparison.candidate.name}; {comparison.primary}; grades by {testset.consensus}"
    sections = [
        Section("verdict", "Verdict", (Paragraph(comparison.verdict.sentence), Paragraph(f"{names}."))),
        Section("sensitivity", "Sensitivity to rules and raters", tuple(sensitivity_blocks(found, f"{line}."))),
    ]
    if means:
        sections.append(_means(comparison, found, means))
    if differences:
        sections.append(_differences(differences))
    if notes := tuple(dict.fromkeys(str(note) for note in testset.notes)):
        sections.append(Section("notes", "Notes", (Bullets(notes),)))
    tidy = tidy_table(TIDY, [_row(row) for row in found.variations])
    return testset_document(
        "Sensitivity of a book", testset, sections, tidy, _payload(comparison, found, means, line, differences)
    )


def _means(comparison: Comparison, found: Sensitivity, means: Means) -> Section:
    columns = (Column("setting"), Column("value"), Column("A", "value"), Column("B", "value"), Column("n", "count"))
    rows: list[tuple[Cell, ...]] = [
        (row.family, row.name, *pair, row.n) for row, pair in zip(found.variations, means, strict=True)
    ]
    return Section("means", "Means", (table(f"Mean {comparison.primary}", columns, rows),))


def _differences(differences: Sequence[SourceDifference]) -> Section:
    columns = (
        *(Column("query", "query id"), Column("document", "code"), Column("grade", "value"), Column("by")),
        *(Column("other grade", "value"), Column("by")),
    )
    rows: list[tuple[Cell, ...]] = [
        (row.query_id, row.doc_id, row.grade, row.decided_by, row.other, f"{row.rater} ({row.kind.value})")
        for row in differences
    ]
    shown = table("Persons precede carried judgments, rules and models", columns, rows, SHOWN_DIFFERENCES)
    return Section("sources", "Sources that differ", (shown,))


def _row(row: Variation) -> tuple[Cell, ...]:
    return (row.family, row.name, row.verdict.value, row.delta, row.ci_low, row.ci_high, row.n)


FIELDS: Fields = {Variation: "setting=family value=name verdict=verdict.value delta ci_low ci_high n estimate"}


def _payload(
    comparison: Comparison, found: Sensitivity, means: Means, line: str, differences: Sequence[SourceDifference]
) -> dict[str, Any]:
    return {
        "baseline": comparison.baseline.name,
        "candidate": comparison.candidate.name,
        "measure": str(comparison.primary),
        "verdict": comparison.verdict.code.value,
        "sentence": comparison.verdict.sentence,
        "line": line,
        "n_unchanged": found.n_agree,
        "n": len(found.variations),
        "analyses": [
            record_of(row, FIELDS) | {"baseline": first, "candidate": second}
            for row, (first, second) in zip(found.variations, means, strict=True)
        ],
        "not_applicable": list(found.left_out),
        "differences": [record_of(row) for row in differences],
    }
