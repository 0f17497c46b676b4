"""How the judgments of a test set were made: its raters, their agreement, the rule, the guidelines, the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, ClassVar

from cranfield.model.kinds import Count, FilledText, Id, InFile, Number, Text, Whole, at_least


@dataclass(frozen=True)
class JudgingRater(InFile):
    """A rater of a book."""

    name: FilledText
    """Name or pseudonym."""
    kind: FilledText
    """`person`, `model`, `rule` or `carried` (judgments of an earlier test set)."""
    n: Count
    """Number of grades."""
    about: Mapping[Id, Text] = field(default_factory=dict)
    """Provider, name and settings of a model."""


@dataclass(frozen=True)
class JudgingGuideline(InFile):
    """A version of the guidelines that documents were judged by."""

    version: Whole
    """Number of the version in its book."""
    digest: FilledText
    """SHA-256 of its text."""
    n: Count
    """Number of grades by persons."""


@dataclass(frozen=True)
class JudgingAgreement(InFile):
    """A coefficient of agreement of the persons who judged."""

    _ALWAYS: ClassVar = frozenset({"n"})

    name: FilledText
    """Name of the coefficient, such as `alpha-ordinal`."""
    value: Number | None = None
    """Its value; none where it is not defined."""
    ci_low: Number | None = None
    """Lower end of its confidence interval."""
    ci_high: Number | None = None
    """Upper end."""
    n: Count = 0
    """Number of documents that it is about."""
    note: Text = ""
    """Why it is not defined."""


@dataclass(frozen=True)
class JudgingPool(InFile):
    """How the documents to judge were chosen."""

    _ALWAYS: ClassVar = frozenset({"seed", "complete_to"})

    method: FilledText
    """`depth`, `stratified`, `budget` or `holes`."""
    depth: Annotated[int, at_least(1)]
    """Number of results of each run and query."""
    seed: Whole = 0
    """Random seed."""
    runs: Mapping[Id, Text] = field(default_factory=dict)
    """Name of a run to its digest."""
    testset: Text = ""
    """Digest of the test set that the pool was made for."""
    complete_to: Count = 0
    """Rank down to which every result of every run is in it."""


@dataclass(frozen=True)
class JudgingOverruled(InFile):
    """A document whose grade by a rule of the test set another source replaced."""

    query: Id
    """Its query."""
    doc: Id
    """Its id."""
    rule: Number
    """Grade of the target that it matches."""
    grade: Number
    """The grade that holds."""


@dataclass(frozen=True)
class Judging(InFile):
    """How the judgments were made: the manifest of a frozen book."""

    book: FilledText
    """Name of the book."""
    number: Annotated[int, at_least(1)]
    """1, 2, ...: versions frozen from the book."""
    rule: FilledText
    """Consensus rule of the grades by persons."""
    raters: tuple[JudgingRater, ...] = ()
    """Who judged, and how much."""
    guidelines: tuple[JudgingGuideline, ...] = ()
    """Versions of the guidelines that grades were given by."""
    agreement: tuple[JudgingAgreement, ...] = ()
    """Agreement of the persons."""
    coverage: Mapping[Id, Count] = field(default_factory=dict)
    """Number of documents by what became of them: `pooled`, `judged`, `unjudged`, ..."""
    skipped: Mapping[Id, Count] = field(default_factory=dict)
    """Reason to number of skips by persons."""
    pool: JudgingPool | None = None
    """The pool."""
    by_id: tuple[Id, ...] = ()
    """Queries that patterns, spans or other rules judged before, and now the ids of documents."""
    unmatched: tuple[Text, ...] = ()
    """Rules of those queries that no judged document matches; they are expected under their own names."""
    overruled: tuple[JudgingOverruled, ...] = ()
    """Documents of those queries that were graded otherwise than by their rule."""

    @property
    def guideline(self) -> str:
        """The digests of the guidelines as one text; figures are comparable where it is the same."""
        return " ".join(sorted({row.digest for row in self.guidelines if row.n}))

    def has_other_guidelines(self, other: Judging | None) -> bool:
        """Whether the other judgments are of a book too, and by other guidelines: a difference of figures may come from them."""
        return other is not None and other.guideline != self.guideline


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
