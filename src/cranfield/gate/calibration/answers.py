"""Answers with the confidence that a system stated for them, and whether they were right, by each kind of correctness."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from cranfield.base.errors import Problem
from cranfield.model.query_ids import ids_digest


class Correctness(StrEnum):
    """What `correct` means."""

    FACTS = "facts"
    """The answer has the facts that it must have."""
    STRUCTURAL = "structural"
    """The right results, files or entities were found."""
    STATED = "as stated"
    """The table has a column `correct` and does not say by what rule."""


class Exclusion(StrEnum):
    """Why a query is not counted."""

    FAILED = "failed, or has no answer"
    NO_SCORE = "no score"
    NO_CORRECTNESS = "correctness not known"


@dataclass(frozen=True, slots=True)
class ScoredAnswer:
    """One query: the confidence of its answer, and whether that was right."""

    query_id: str
    score: float | None
    correct: Mapping[Correctness, bool]
    """By each kind that is known."""
    strata: Mapping[str, str] = field(default_factory=dict)
    is_failed: bool = False
    """The call failed, or there is no answer: a confidence of nothing."""

    def excluded(self, kind: Correctness) -> Exclusion | None:
        """Why it does not count for a kind of correctness; None where it does."""
        if self.is_failed:
            return Exclusion.FAILED
        if self.score is None:
            return Exclusion.NO_SCORE
        return None if kind in self.correct else Exclusion.NO_CORRECTNESS


@dataclass(frozen=True, slots=True)
class CalibrationAnswers:
    """The answers of one system."""

    name: str
    """File or run."""
    score: str
    """Name of the confidence: a column, or a field of the answers."""
    rules: Mapping[Correctness, str]
    """Kind of correctness to what it is here: a column, a measure with its bound."""
    answers: Sequence[ScoredAnswer]
    testset: str = ""
    """Name, version and review of the test set by which they are judged; empty: a table has no test set."""

    @property
    def queries_digest(self) -> str:
        """Digest of the ids of its queries, in any order: shows whether a test set has the same."""
        return ids_digest(answer.query_id for answer in self.answers)

    @property
    def kinds(self) -> tuple[Correctness, ...]:
        """Kinds of correctness that any answer has, facts first."""
        return tuple(kind for kind in Correctness if any(kind in answer.correct for answer in self.answers))


def score_problem(value: float, query_id: str, place: Mapping[str, Any]) -> Problem:
    """The problem that a confidence is no number from 0 to 1."""
    hint = "divide a percentage by 100; a score without an upper bound, such as BM25, cannot be calibrated."
    message = f"the confidence of {query_id} is {value:g}"
    return Problem(message, expected="a number from 0 to 1", hint=hint, **place)
