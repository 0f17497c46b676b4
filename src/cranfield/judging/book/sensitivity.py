"""How the verdict on two runs depends on the consensus rule and the raters of a book; `cranfield.judging.use_cases` finds it."""

from __future__ import annotations

from dataclasses import dataclass

from cranfield.evaluation.sensitivity import Sensitivity
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.judging.book.grades import SourceDifference
from cranfield.measures import Measure
from cranfield.model.results import Record, TestSetRecord


@dataclass(frozen=True, slots=True)
class BothMeans:
    """The means of two runs."""

    baseline: float | None
    candidate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BookSensitivity(Record):
    """The declared comparison, and it repeated."""

    testset: TestSetRecord
    """By the declared rule, with adjudicated grades and all raters."""
    rule: str
    baseline: str
    candidate: str
    measure: Measure
    verdict: VerdictCode
    sentence: str
    line: str
    """`Verdict unchanged under 8 of 8 (5 consensus rules, 3 without one of the raters)`."""
    n_unchanged: int
    sensitivity: Sensitivity
    """Each rule, the declared one among them, and each rater left out."""
    means: tuple[BothMeans, ...]
    """Of each variation, in its order."""
    differences: tuple[SourceDifference, ...]
