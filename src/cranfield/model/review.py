"""What a person decides of a record of a golden set."""

from __future__ import annotations

from enum import StrEnum


class ReviewVerdict(StrEnum):
    """On the record as it was found, before any edit."""

    CORRECT = "correct"
    MINOR_ISSUE = "minor_issue"
    MAJOR_ISSUE = "major_issue"
    WRONG = "wrong"


class Disposition(StrEnum):
    """What becomes of the record."""

    KEEP = "keep"
    """With the edits, where there are any."""
    SEND_BACK = "send_back"
    """To the oracle, with a hint."""
    DROP = "drop"


class FailureMode(StrEnum):
    """What is wrong with a record."""

    QUERY_UNCLEAR = "query_unclear"
    QUERY_LEAKS_TARGET = "query_leaks_target"
    WRONG_STRATUM = "wrong_stratum"
    """Another task type or difficulty."""
    WRONG_TARGET = "wrong_target"
    MISSING_TARGET = "missing_target"
    """An entity or a file that a complete answer names."""
    WRONG_LINES = "wrong_lines"
    FALSE_FACT = "false_fact"
    MISSING_FACT = "missing_fact"
    UNSUPPORTED_FACT = "unsupported_fact"
    """The cited lines do not show it."""
    NARRATIVE = "narrative"
    OTHER = "other"


def decision_problems(
    verdict: ReviewVerdict, disposition: Disposition, *, has_mode: bool, reason: str, hint: str, has_edits: bool
) -> list[str]:
    """Why a decision cannot stand; nothing where it can.

    Example:
        >>> decision_problems(
        ...     ReviewVerdict.WRONG, Disposition.DROP, has_mode=True, reason="other file", hint="", has_edits=False
        ... )
        []
    """
    found = []
    if verdict is not ReviewVerdict.CORRECT and not (has_mode and reason.strip()):
        found.append("a verdict other than correct needs a failure mode and a reason")
    if verdict is ReviewVerdict.CORRECT and (has_edits or disposition is not Disposition.KEEP):
        found.append("a record that is edited, sent back or dropped is not correct: give another verdict")
    if verdict is ReviewVerdict.WRONG and disposition is Disposition.KEEP:
        found.append("a wrong record is sent back or dropped")
    if verdict is ReviewVerdict.MAJOR_ISSUE and disposition is Disposition.KEEP and not has_edits:
        found.append("a record with a major issue is edited, sent back or dropped")
    if disposition is Disposition.SEND_BACK and not hint.strip():
        found.append("a record is sent back with a hint for the oracle")
    return found
