"""How the judgments of a test set were made: its raters, their agreement, the rule, the guidelines, the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
