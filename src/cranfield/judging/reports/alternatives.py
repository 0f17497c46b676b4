"""Scores with the alternatives of a test set and without them, as a Document."""

from __future__ import annotations

from collections import Counter

from cranfield.judging.pools.alternatives import WithAndWithout
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Document, Paragraph, Section
from cranfield.reporting.sections.subject import about_testset
from cranfield.reporting.table_spec import Col, TableSpec

FAVOURS = (
    "An alternative is in the set because a system of the pool found it: scores with them favour that system, and a system "
    "that was not in the pool finds no place for its own. Compare systems by the scores without them."
)


def alternatives_document(found: WithAndWithout) -> Document:
    """Both scores of each run, and which system found how many."""
    scores = TableSpec(
        "Means with the alternatives and without",
        found.scores,
        (
            Col("run", lambda row: row.run),
            Col("measure", lambda row: row.measure),
            Col("without", lambda row: row.without, "value"),
            Col("with", lambda row: row.with_them, "value"),
            Col("change", lambda row: row.change, "delta"),
        ),
    )
    by_system = TableSpec(
        "Systems that found the alternatives",
        sorted(Counter(name for each in found.alternatives for name in each.found_by).items()),
        (Col("system", lambda row: row[0]), Col("alternatives", lambda row: row[1], "count")),
    )
    return Document(
        title="Alternatives",
        subtitle=about_testset(found.testset),
        sections=(
            Section("scores", "Scores", (scores.table(), Paragraph(FAVOURS))),
            Section("found", "Found by", (by_system.table(),)),
        ),
        tidy=scores.tidy,
        payload=lambda: to_jsonable(found),
    )
