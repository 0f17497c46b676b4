"""How the judgments of a test set were made: its raters, their agreement, the rule, the guidelines, the pool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class JudgingRater:
    """A rater and how much he or she judged."""

    name: str
    """Or a pseudonym."""
    kind: str
    """`person`, `model`, `rule` or `carried` (judgments of an earlier test set, whose raters are not known)."""
    n: int
    """Grades."""
    about: Mapping[str, str] = field(default_factory=dict)
    """Of a model: its provider, name and settings."""


@dataclass(frozen=True)
class JudgingGuideline:
    """A version of the guidelines and the grades that were given by it."""

    version: int
    digest: str
    """SHA-256 of its text, by which it is known in other books."""
    n: int
    """Grades by persons."""


@dataclass(frozen=True)
class JudgingAgreement:
    """One coefficient of agreement of the persons."""

    name: str
    value: float | None
    """None where it is not defined; `note` says why."""
    ci_low: float | None
    ci_high: float | None
    n: int
    """Documents that it is about."""
    note: str = ""


@dataclass(frozen=True)
class JudgingPool:
    """How the documents to judge were chosen."""

    method: str
    """`depth`, `stratified`, `budget` or `holes`."""
    depth: int
    seed: int = 0
    runs: Mapping[str, str] = field(default_factory=dict)
    """Name of a run to its digest."""
    testset: str = ""
    """Digest of the test set that it was made for."""
    complete_to: int = 0
    """Rank down to which every result of every run is in it."""


@dataclass(frozen=True)
class JudgingOverruled:
    """A document whose grade by a rule of the test set another source replaced."""

    query: str
    doc: str
    rule: float
    """Grade of the target that it matches."""
    grade: float


@dataclass(frozen=True)
class Judging:
    """Everything that the manifest of a frozen book says."""

    book: str
    number: int
    """1, 2, ...: versions frozen from the book."""
    rule: str
    """Consensus rule of the persons' grades."""
    raters: tuple[JudgingRater, ...] = ()
    guidelines: tuple[JudgingGuideline, ...] = ()
    """Those that grades were given by."""
    agreement: tuple[JudgingAgreement, ...] = ()
    coverage: Mapping[str, int] = field(default_factory=dict)
    """Documents by what became of them: `pooled`, `judged`, `by persons`, `adjudicated`, `tied`, `unjudged`, ..."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Reason to skips of persons."""
    pool: JudgingPool | None = None
    by_id: tuple[str, ...] = ()
    """Queries that targets judged in the version before, and now the ids of documents."""
    unmatched: tuple[str, ...] = ()
    """Targets of those queries that no judged document matches: expected under their own names."""
    overruled: tuple[JudgingOverruled, ...] = ()
    """Documents of those queries that were graded otherwise than by their target."""

    @property
    def guideline(self) -> str:
        """The digests of the guidelines as one text; figures are comparable where it is the same."""
        return " ".join(sorted({row.digest for row in self.guidelines if row.n}))

    def has_other_guidelines(self, other: Judging | None) -> bool:
        """Whether the other judgments are of a book too, and by other guidelines: a difference of figures may come from them."""
        return other is not None and other.guideline != self.guideline
