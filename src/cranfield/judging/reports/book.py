"""Books as Documents: how the verdict on two runs depends on the consensus rule and on the raters."""

from __future__ import annotations

from cranfield.judging.book.sensitivity import BookSensitivity
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Bullets, Document, Paragraph, Section
from cranfield.reporting.sections.subject import about_testset
from cranfield.reporting.sections.verdict import sensitivity_blocks
from cranfield.reporting.table_spec import Col, TableSpec

SHOWN_DIFFERENCES = 20


def book_sensitivity_document(found: BookSensitivity) -> Document:
    """The declared verdict, the line of how many analyses agree, the table of them, and where the sources differ."""
    names = f"A: {found.baseline}, B: {found.candidate}; {found.measure}; grades by {found.rule}"
    blocks = sensitivity_blocks(found.sensitivity, f"{found.line}.")
    sections = [
        Section("verdict", "Verdict", (Paragraph(found.sentence), Paragraph(f"{names}."))),
        Section("sensitivity", "Sensitivity to rules and raters", tuple(blocks)),
    ]
    variations = TableSpec(
        f"Mean {found.measure}",
        [*zip(found.sensitivity.variations, found.means, strict=True)],
        (
            Col("setting", lambda row: row[0].family),
            Col("value", lambda row: row[0].name),
            Col("A", lambda row: row[1].baseline, "value", only="report"),
            Col("B", lambda row: row[1].candidate, "value", only="report"),
            Col("verdict", lambda row: row[0].verdict.value, only="tidy"),
            Col("delta", lambda row: row[0].delta, only="tidy"),
            Col("ci_low", lambda row: row[0].ci_low, only="tidy"),
            Col("ci_high", lambda row: row[0].ci_high, only="tidy"),
            Col("n", lambda row: row[0].n, "count"),
        ),
    )
    if found.means:
        sections.append(Section("means", "Means", (variations.table(),)))
    if found.differences:
        differences = TableSpec(
            "Persons precede carried judgments, rules and models",
            found.differences,
            (
                Col("query", lambda row: row.query_id, "query id"),
                Col("document", lambda row: row.doc_id, "code"),
                Col("grade", lambda row: row.grade, "value"),
                Col("by", lambda row: row.decided_by),
                Col("other grade", lambda row: row.other, "value"),
                Col("by", lambda row: f"{row.rater} ({row.kind.value})"),
            ),
        )
        sections.append(Section("sources", "Sources that differ", (differences.table(shown=SHOWN_DIFFERENCES),)))
    if notes := tuple(dict.fromkeys(map(str, found.testset.notes))):
        sections.append(Section("notes", "Notes", (Bullets(notes),)))
    return Document(
        title="Sensitivity of a book",
        subtitle=about_testset(found.testset),
        sections=tuple(sections),
        tidy=variations.tidy,
        payload=lambda: to_jsonable(found),
    )
