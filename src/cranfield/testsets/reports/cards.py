"""How a notebook shows a test set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.model import TestSet
from cranfield.reporting.document import (
    Document,
    Table,
)
from cranfield.reporting.notebook.cards import part_of
from cranfield.reporting.notebook.shapes import CardShape

if TYPE_CHECKING:
    pass


def testset_card(testset: TestSet) -> Document:
    """Counts of queries, judgments, grades and strata."""
    from cranfield.testsets.reports.testset import statistics_document
    from cranfield.testsets.statistics import statistics

    report = statistics_document(statistics(testset, ()))
    return replace(part_of(report, ("counts", "judgments", "grades", "strata")), title="Test set")


def testset_table(testset: TestSet) -> Table:
    """A row a judgment; a query without one has a row too."""
    from cranfield.evaluation.testset.expected import queries_of
    from cranfield.testsets.reports.testset import queries_document

    return queries_document(queries_of(testset)).tidy()


TESTSET = CardShape(testset_card, testset_table)
