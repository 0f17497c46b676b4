"""Scores with the alternatives of a test set and without them, as a Document."""

from __future__ import annotations

from collections import Counter

from cranfield.judging.pools.alternatives import WithAndWithout
from cranfield.model import TestSet
from cranfield.record import record_of
from cranfield.reporting.document import Cell, Column, Document, Paragraph, Section, tidy_table
from cranfield.reporting.documents.testset import table, testset_document

FAVOURS = (
    "An alternative is in the set because a system of the pool found it: scores with them favour that system, and a system "
    "that was not in the pool finds no place for its own. Compare systems by the scores without them."
)


def alternatives_document(testset: TestSet, found: WithAndWithout) -> Document:
    """Both scores of each run, and which system found how many."""
    rows: list[tuple[Cell, ...]] = [
        (each.run, each.measure, each.without, each.with_them,
         None if each.without is None or each.with_them is None else each.with_them - each.without)
        for each in found.scores
    ]  # fmt: skip
    columns = (
        *(Column("run"), Column("measure"), Column("without", "value"), Column("with", "value")),
        Column("change", "delta"),
    )
    counts = Counter(name for each in found.alternatives for name in each.found_by)
    by_system: list[tuple[Cell, ...]] = sorted(counts.items())
    found_by = (Column("system"), Column("alternatives", "count"))
    sections = [
        Section(
            "scores", "Scores", (table("Means with the alternatives and without", columns, rows), Paragraph(FAVOURS))
        ),
        Section("found", "Found by", (table("Systems that found the alternatives", found_by, by_system),)),
    ]
    tidy = tidy_table(("run", "measure", "without", "with", "change"), rows)
    payload = {"schema_version": 1, **record_of(found)}
    return testset_document("Alternatives", testset, sections, tidy, payload)
