"""Review of records of a golden set: what a reviewer sees, what he or she decides, and the rules of a decision.

An item of a book of reviews is a record. Its fields are a `ReviewMaterial`, and stay as they are: a decision is the
`ReviewData` of an event, and an edit in it holds the text before and after.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cranfield.base.errors import Problem
from cranfield.books.settings import REVIEW_SCALE, BookSettings, Mode
from cranfield.model.judging import Disposition, FailureMode, ReviewVerdict, decision_problems

if TYPE_CHECKING:
    from cranfield.books.store.values import ItemView, RatingRow

VERDICTS: Mapping[float, ReviewVerdict] = {
    float(place): verdict for place, verdict in enumerate(ReviewVerdict, start=1)
}
"""Grade to verdict."""
Line = Annotated[int, Field(ge=1, le=999_999_999)]
Text = Annotated[str, Field(max_length=20_000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ReviewedLines(_Part):
    """Lines of a file."""

    file: Annotated[str, Field(min_length=1, max_length=2_000)]
    start: Line
    end: Line

    def __str__(self) -> str:
        """`src/index.rs:41-61`."""
        return f"{self.file}:{self.start}-{self.end}"


class StatedFact(_Part):
    """A fact and the lines that show it."""

    fact: Annotated[str, Field(min_length=1, max_length=20_000, pattern=r"\S")]
    citations: Annotated[list[ReviewedLines], Field(max_length=50)] = []


class ReviewedEntity(_Part):
    """An entity of the answer."""

    entity_id: str
    role: str = ""
    rationale: str = ""


class CheckedClaim(_Part):
    """A verdict of the adversary."""

    claim_type: str
    claim: str
    verdict: str
    citation: ReviewedLines | None = None
    note: str = ""


class SourceLines(_Part):
    """Lines that the record cites, as they are at its commit."""

    file: str
    start: Line
    end: Line
    text: str = ""
    problem: str = ""
    """Why there is no text."""


class ReviewMaterial(_Part):
    """A record as its reviewers see it: no model is named."""

    task_type: str
    difficulty: str
    difficulty_rationale: str = ""
    targets: list[str] = []
    """Targets of the author."""
    expected_entities: list[ReviewedEntity] = []
    expected_files: list[str] = []
    expected_line_ranges: list[ReviewedLines] = []
    must_mention_facts: list[StatedFact] = []
    must_not_mention_facts: list[StatedFact] = []
    canonical_narrative: str = ""
    confidence: str = ""
    uncertainty_notes: str = ""
    reasons: list[str] = []
    """Why a person must see it."""
    may_keep: bool = True
    """False: a step refuses it as it is, so that it is sent back or dropped."""
    claims: list[CheckedClaim] = []
    findings: str = ""
    missing: list[str] = []
    """Entities and files that the adversary misses."""
    sources: list[SourceLines] = []
    commit: str = ""


EditedField = Literal["must_mention_facts", "must_not_mention_facts", "canonical_narrative"]
EDITED_FIELDS: tuple[EditedField, ...] = ("must_mention_facts", "must_not_mention_facts", "canonical_narrative")


class FieldEdit(_Part):
    """A change of a field: the whole value before and after."""

    field: EditedField
    before: list[StatedFact] | Text
    after: list[StatedFact] | Text


class ReviewData(_Part):
    """What a reviewer decides beside verdict and reason."""

    disposition: Disposition = Disposition.KEEP
    failure_mode: FailureMode | None = None
    hint: Text = ""
    edits: Annotated[list[FieldEdit], Field(max_length=3)] = []


AS_IT_IS = ReviewData()


def data_of(row: RatingRow | ItemView) -> ReviewData:
    """The decision of a reviewer, or of the lead who decided."""
    found = getattr(row, "data", None) or getattr(row, "final_data", None)
    return ReviewData.model_validate(found) if found else AS_IT_IS


def edits_of(material: ReviewMaterial, values: Mapping[EditedField, list[StatedFact] | str]) -> list[FieldEdit]:
    """The fields whose value is another than that of the record."""
    return [
        FieldEdit(field=field, before=before, after=values[field])
        for field in EDITED_FIELDS
        if field in values and values[field] != (before := getattr(material, field))
    ]


def review_settings(reviewers: int, seed: int) -> BookSettings:
    """Settings of a book of reviews: reviewers do not see each other, and a lead decides where they differ."""
    return BookSettings(
        mode=Mode.REVIEW,
        scale=REVIEW_SCALE,
        raters_per_item=reviewers,
        most_raters=max(reviewers, 1),
        escalate_from=1,
        calibration_first=0,
        lease_seconds=3600,
        reveal="never",
        seed=seed,
    )


def review_problems(
    fields: Mapping[str, object], grade: float | None, reason: str, data: Mapping[str, object] | None
) -> list[Problem]:
    """What is wrong with a decision on a record; nothing where it can stand.

    Args:
        fields: of the item.
        grade: the verdict.
        reason: for it.
        data: the rest of the decision; None: the record is kept as it is.
    """
    try:
        decided = ReviewData.model_validate(data or {})
    except ValidationError as error:
        return [Problem(each["msg"], path=".".join(map(str, ("data", *each["loc"])))) for each in error.errors()[:10]]
    material = ReviewMaterial.model_validate(fields)
    found = decision_problems(
        VERDICTS[grade or 0.0],
        decided.disposition,
        has_mode=decided.failure_mode is not None,
        reason=reason,
        hint=decided.hint,
        has_edits=bool(decided.edits),
    )
    if decided.disposition is Disposition.KEEP and not material.may_keep:
        found.append("a pipeline step rejects this record: send it back or drop it")
    names = [each.field for each in decided.edits]
    if len(set(names)) < len(names):
        found.append("a field is edited twice")
    for each in decided.edits:
        if each.before != getattr(material, each.field):
            found.append(f"the edit of {each.field} does not match the current text of the record")
        elif each.before == each.after:
            found.append(f"the edit of {each.field} changes nothing")
        elif type(each.before) is not type(each.after):
            found.append(f"the edit of {each.field} has a value of a different type")
    return [Problem(text, path="data") for text in found]
