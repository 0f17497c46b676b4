"""Why a query has no relevant result, before anything is measured: the words of notes, reasons and reports."""

from __future__ import annotations

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
