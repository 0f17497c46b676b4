"""Records of the steps. What a role writes is a draft; a record is a draft with its identity and provenance.

Every record is a line of JSON. `schema_version` is checked when it is read.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cranfield.model.judging import Disposition, FailureMode, ReviewVerdict, decision_problems

SCHEMA_VERSION = "1.0.0"
MAX_SPANS = 3
"""Most spans of a query whose targets are lines."""
Filled = Annotated[str, Field(min_length=1, pattern=r"\S")]
LineNumber = Annotated[int, Field(ge=1, le=999_999_999)]
TaskType = Literal["locate", "explain", "debug", "extend", "review", "general"]
Difficulty = Literal["easy", "medium", "hard"]
EntityRoleName = Literal["primary", "supporting", "contextual"]
Confidence = Literal["high", "medium", "low"]
ClaimType = Literal["entity", "file", "line_range", "must_mention_fact", "must_not_mention_fact"]
ClaimVerdict = Literal["supported", "partial", "unsupported"]
NarrativeRating = Literal["equivalent", "minor_divergence", "significant_divergence"]


class GoldenModel(BaseModel):
    """Accepts nothing that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CitedLines(GoldenModel):
    """Lines of a file, counted from 1, both ends included."""

    file: Filled
    start: LineNumber
    end: LineNumber

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        if self.end < self.start:
            raise ValueError("the range ends before it starts")
        return self


class TargetSpan(CitedLines):
    """Lines that answer a query."""

    grade: Annotated[int, Field(ge=1, le=3)] = 1


class CitedFact(GoldenModel):
    """A statement that can be checked, and the lines that show it, or show it to be false."""

    fact: Filled
    citations: list[CitedLines] = []


class ExpectedEntity(GoldenModel):
    """An entity of the answer: `path::Qual.name`."""

    entity_id: Filled
    role: EntityRoleName | None = None
    """None: an existing set does not say."""
    rationale: str = ""


class Evidence(CitedLines):
    """Lines that were read."""

    read_at_step: Annotated[int, Field(ge=1)]


class PromptUsed(GoldenModel):
    """A prompt: its label, and the digest of its text."""

    label: str
    digest: str


class Cost(GoldenModel):
    """What the work of a role on a record took. None: not reported, which is not 0."""

    total_tokens: int | None = None
    requests: int = 0
    tool_calls: int = 0
    turns: int = 0
    wall_clock_s: float = 0.0
    money: float | None = None


class Stamp(GoldenModel):
    """Identity and provenance."""

    query_id: Filled
    model: str = ""
    """`provider:name`; empty where a person or another tool made it."""
    prompt: PromptUsed | None = None
    tool_versions: dict[str, str] = {}
    commit: str = ""
    attempt: Annotated[int, Field(ge=1)] = 1
    """One more for each time that a person sent the record back."""
    cost: Cost | None = None
    imported_from: str = ""
    """Digest of the existing set that it comes from; empty: a role made it."""
    schema_version: str = SCHEMA_VERSION


class CandidateDraft(GoldenModel):
    """What an author writes."""

    query_text: Filled
    target_entity_ids: list[Filled] = []
    """`path::Qual.name`, or `path.md::Heading > Heading` of a section of Markdown."""
    target_files: list[Filled] = []
    target_spans: Annotated[list[TargetSpan], Field(max_length=MAX_SPANS)] = []
    difficulty_rationale: str = ""
    """Why the query fits its tier; of medium and hard ones."""
    classifier_expectation: TaskType | None = None
    """The task type that a classifier is expected to pick; of general ones."""


class QueryCandidate(CandidateDraft, Stamp):
    """A candidate query: what an author wrote, or a query of an existing set."""

    task_type: TaskType
    difficulty: Difficulty
    scope: str = ""
    """Folder of the repository that it was written from."""
    focus_area: str = ""
    authored_by: str
    created_at: str

    @model_validator(mode="after")
    def _has_a_target(self) -> Self:
        if not (self.target_entity_ids or self.target_files or self.target_spans):
            raise ValueError("has no target (an entity, a file or a span)")
        if self.imported_from:  # what an existing set does not say is missing, not wrong
            return self
        if self.difficulty != "easy" and not self.difficulty_rationale.strip():
            raise ValueError("a medium or hard query requires a difficulty_rationale")
        if (self.task_type == "general") != (self.classifier_expectation is not None):
            raise ValueError("classifier_expectation is required for general queries, and not allowed for others")
        return self


class OracleClaims(GoldenModel):
    """The canonical answer of a query, and what it rests on."""

    expected_entities: list[ExpectedEntity]
    expected_files: list[Filled]
    expected_line_ranges: list[CitedLines]
    must_mention_facts: list[CitedFact]
    must_not_mention_facts: list[CitedFact]
    canonical_narrative: str
    source_evidence: list[Evidence]
    baseline_answerable: bool | None = None
    """Whether an agent that only lists, searches and reads files could answer."""


class OracleDraft(OracleClaims):
    """What an oracle writes."""

    confidence: Confidence
    uncertainty_notes: str | None = None
    """What was tried and what is unclear; of answers with low confidence."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.confidence == "low" and not (self.uncertainty_notes or "").strip():
            raise ValueError("an answer with low confidence requires uncertainty_notes")
        if any(entity.role is None for entity in self.expected_entities):
            raise ValueError("each expected entity requires a role")
        return self


class OracleAnswer(OracleClaims, Stamp):
    """The canonical answer of a query, with its provenance."""

    confidence: Confidence | None = None
    """None: an existing set does not say."""
    uncertainty_notes: str | None = None
    task_type: TaskType
    difficulty: Difficulty
    authored_by: str
    created_at: str

    @model_validator(mode="after")
    def _says_how_sure(self) -> Self:
        if self.confidence is None and not self.imported_from:
            raise ValueError("an answer requires a confidence")
        return self


class ClaimReview(GoldenModel):
    """Verdict on one claim of the oracle."""

    claim_type: ClaimType
    claim: Filled
    """As the oracle wrote it: an id, a path, `path:start-end`, or a fact."""
    verdict: ClaimVerdict
    citation: CitedLines | None = None
    note: str = ""


class AdversaryDraft(GoldenModel):
    """What an adversary writes."""

    claim_verdicts: list[ClaimReview]
    missing_entities: list[Filled] = []
    """Entities that a complete answer names, and the oracle's does not."""
    missing_files: list[Filled] = []
    overall_verdict: ClaimVerdict
    blocking_issues: list[Filled] = []
    findings: str = ""
    """In prose, for the judge of the narrative."""


class AdversaryReport(AdversaryDraft, Stamp):
    """The attempt to falsify an oracle's answer."""

    reviewed_by: str
    reviewed_at: str


class RowCheck(GoldenModel):
    """What a checker writes of a row: a place that a set says answers a query, with its grade."""

    place: CitedLines | None = None
    """The lines that the row should name, where its file or its range is wrong; null: both are right."""
    grade: Annotated[int, Field(ge=0, le=3)]
    """Grade that the lines deserve; 0: they neither answer the query nor help to."""
    reason: Filled


class NarrativeJudgment(GoldenModel):
    """Whether the oracle's narrative and the adversary's findings agree."""

    rating: NarrativeRating
    reason: str = ""


class ReviewEdit(GoldenModel):
    """A change by a person. The whole value before and after, so that it can be shown as a difference, and undone."""

    field: Literal["must_mention_facts", "must_not_mention_facts", "canonical_narrative"]
    before: list[CitedFact] | str
    after: list[CitedFact] | str

    @model_validator(mode="after")
    def _of_its_field(self) -> Self:
        expected = str if self.field == "canonical_narrative" else list
        if {type(self.before), type(self.after)} != {expected}:
            raise ValueError(f"an edit of {self.field} requires two values of the type of the field")
        return self


class ReviewDecision(GoldenModel):
    """What a person decides of a record."""

    verdict: ReviewVerdict
    disposition: Disposition = Disposition.KEEP
    failure_mode: FailureMode | None = None
    reason: str = ""
    hint: str = ""
    """For the oracle; of a record that is sent back."""
    edits: list[ReviewEdit] = []

    @model_validator(mode="after")
    def _can_stand(self) -> Self:
        found = decision_problems(
            self.verdict,
            self.disposition,
            has_mode=self.failure_mode is not None,
            reason=self.reason,
            hint=self.hint,
            has_edits=bool(self.edits),
        )
        if found:
            raise ValueError("; ".join(found))
        return self


class Opinion(ReviewDecision):
    """The decision of one reviewer, made without sight of the others."""

    reviewer: Filled
    at: str


class HumanReview(ReviewDecision):
    """What people decided of a record; the last line of a record holds.

    Written where the reviewers agree in everything, or a lead has decided; or one person has looked at it twice.
    """

    query_id: Filled
    attempt: Annotated[int, Field(ge=1)] = 1
    """Attempt of the oracle; one more after each time that the record was sent back."""
    opinions: list[Opinion]
    """Opinions of the reviewers, in the order in which they were given."""
    lead: str = ""
    """Who decided between them; empty: they agree, or they are two looks of one person, of which the worse verdict holds, and what is further from keeping."""
    book: str
    reviewed_at: str
    schema_version: str = SCHEMA_VERSION

    @property
    def reviewers(self) -> tuple[str, ...]:
        """All who have looked at it."""
        return tuple(dict.fromkeys([*(each.reviewer for each in self.opinions), *([self.lead] if self.lead else [])]))


class ReviewFeedback(GoldenModel):
    """A failure that people found: the next run gives it to author and oracle of the cell, or of the record."""

    query_id: Filled
    task_type: TaskType
    difficulty: Difficulty
    verdict: ReviewVerdict
    failure_mode: FailureMode
    reason: Filled
    hint: str = ""
    schema_version: str = SCHEMA_VERSION
