"""How the judgments of a test set were made: its raters, their agreement, the rule, the guidelines, the pool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from cranfield.model.kinds import Count, FilledText, Id, InFile, Number, Text, Whole, at_least
from cranfield.model.target import Entity, Span, Target


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


_PROVENANCE = "provenance"
_REVIEW = "validation"
"""Key of a record that says how it was checked: provenance by another name."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines of a file, counted from 1, both ends included."""

    file: str
    start: int
    end: int

    def __str__(self) -> str:
        """`src/index.rs:41-61`."""
        return f"{self.file}:{self.start}-{self.end}"


@dataclass(frozen=True, slots=True)
class Fact:
    """A statement about the code that can be checked."""

    text: str
    citations: tuple[Lines, ...] = ()
    """Lines that show it; for a statement that an answer must not make, lines that show it to be false."""

    @property
    def record(self) -> str | dict[str, Any]:
        """As a golden record has it: its text alone where nothing is cited."""
        return (
            {"fact": self.text, "citations": [asdict(lines) for lines in self.citations]}
            if self.citations
            else self.text
        )


@dataclass(frozen=True, slots=True)
class EntityRole:
    """What an expected entity is to the answer."""

    entity_id: str
    role: str = ""
    """`primary`, `supporting` or `contextual`; empty: not known."""
    rationale: str = ""

    @property
    def record(self) -> dict[str, str]:
        """As a golden record has it."""
        return {key: value for key, value in asdict(self).items() if value}


@dataclass(frozen=True, slots=True)
class Label:
    """What a record of a golden set says beyond its query, its strata and its targets."""

    roles: tuple[EntityRole, ...] = ()
    """Roles of the expected entities that have a role or a rationale."""
    line_ranges: tuple[Lines, ...] = ()
    """All that the record has, in their order."""
    must_mention: tuple[Fact, ...] = ()
    must_not_mention: tuple[Fact, ...] = ()
    narrative: str = ""
    """The canonical answer in prose."""
    difficulty_rationale: str = ""
    classifier_expectation: str = ""
    """The task type that a classifier is expected to report."""
    baseline_answerable: bool | None = None
    """Whether an agent without the tool under test could answer; None: not known."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Who and what made and reviewed the record: models, prompts, tools, commit, reviewers, edits."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Other keys of the record, as they were written."""

    @property
    def places(self) -> tuple[Lines, ...]:
        """Its line ranges and the citations of its facts, each once."""
        cited = (lines for fact in (*self.must_mention, *self.must_not_mention) for lines in fact.citations)
        return tuple(dict.fromkeys((*self.line_ranges, *cited)))

    @property
    def record(self) -> dict[str, Any]:
        """The keys and values of a golden record, without what says nothing; entities are those with a role."""
        values = {
            "expected_entities": [role.record for role in self.roles],
            "expected_line_ranges": [asdict(lines) for lines in self.line_ranges],
            "must_mention_facts": [fact.record for fact in self.must_mention],
            "must_not_mention_facts": [fact.record for fact in self.must_not_mention],
            "canonical_narrative": self.narrative,
            "difficulty_rationale": self.difficulty_rationale,
            "classifier_expectation": self.classifier_expectation,
            "baseline_answerable": self.baseline_answerable,
            _PROVENANCE: dict(self.provenance),
        }
        return {key: value for key, value in values.items() if value not in (None, "", [], {})} | dict(self.more)

    @property
    def content(self) -> dict[str, Any]:
        """What `TestSet.labels_digest` covers: the record without provenance."""
        return {key: value for key, value in self.record.items() if key not in {_PROVENANCE, _REVIEW}}

    def moved(self, place: Callable[[Lines], Lines]) -> Label:
        """The same label with its line ranges and citations at other places."""

        def facts(given: tuple[Fact, ...]) -> tuple[Fact, ...]:
            return tuple(replace(fact, citations=tuple(map(place, fact.citations))) for fact in given)

        return replace(
            self,
            line_ranges=tuple(map(place, self.line_ranges)),
            must_mention=facts(self.must_mention),
            must_not_mention=facts(self.must_not_mention),
        )


def lines_of_targets(targets: Iterable[Target]) -> tuple[Lines, ...]:
    """Lines of spans, then of entities, each once."""
    spans = [target for target in targets if isinstance(target, Span)]
    spans += [span for target in targets if isinstance(target, Entity) for span in target.spans]
    return tuple(dict.fromkeys(Lines(span.path, span.start, span.end) for span in spans))
