"""Why a query has no relevant result, before anything is measured: one table of words, for notes, reasons and reports."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Absence(StrEnum):
    """What is absent. Programs compare the member; its value is the term of notes and reports."""

    NEVER_JUDGED = "never judged"
    """The test set has no judgment of the query."""
    NO_CONSENSUS = "rated, no consensus"
    """Raters judged the query, and the consensus rule gives no document a grade."""
    ONLY_POOLED = "in the pool, none judged"
    """All grades of the query are under 0."""
    NONE_RELEVANT = "judged, none relevant"
    """The query has judgments, and none is relevant."""
    NOT_RETURNED = "not returned"
    """The run has no answer for the query."""


ABSENCES: Mapping[Absence, str] = {
    Absence.NEVER_JUDGED: "the test set has no judgment of the query",
    Absence.NO_CONSENSUS: "raters judged the query, and the consensus rule gives no document a grade",
    Absence.ONLY_POOLED: "every document of the query is in the pool and unjudged",
    Absence.NONE_RELEVANT: "the query has judgments, and no document is relevant",
    Absence.NOT_RETURNED: "the run has no answer for the query",
}
"""Absence to its definition."""
