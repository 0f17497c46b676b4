"""What is declared of a book: its scale, how many raters an item has, and what happens where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cranfield.base.errors import UsageError

DEFAULT_GUIDELINE = """\
Grade how well the document answers the query, as stated by its information need.

- Grade the document alone: not its rank, and not compared with the one before it.
- Not every query has good results. If nothing answers it, every document has the lowest grade.
- Skip what you cannot read or understand, with a reason, instead of guessing.
"""


class Level(BaseModel):
    """One grade of a scale."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    grade: Annotated[int, Field(ge=0, le=99)]
    label: str
    description: str = ""


class GradeScale(BaseModel):
    """The grades that a rater may give."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    levels: Annotated[tuple[Level, ...], Field(min_length=2, max_length=20)]

    @model_validator(mode="after")
    def _ascending(self) -> Self:
        grades = self.grades
        if list(grades) != sorted(set(grades)):
            raise ValueError("grades must ascend, each once")
        return self

    @property
    def grades(self) -> tuple[int, ...]:
        """Ascending."""
        return tuple(level.grade for level in self.levels)


def _scale(name: str, *levels: tuple[int, str, str]) -> GradeScale:
    return GradeScale(
        name=name, levels=tuple(Level(grade=grade, label=label, description=about) for grade, label, about in levels)
    )


SCALES: dict[str, GradeScale] = {
    "binary": _scale("binary", (0, "not relevant", ""), (1, "relevant", "")),
    "graded": _scale(
        "graded",
        (0, "not relevant", "Does not answer the query"),
        (1, "related", "On the topic, but does not answer it"),
        (2, "relevant", "Answers a part of it, or answers it indirectly"),
        (3, "perfect", "Answers it completely"),
    ),
    "detail": _scale("detail", *((grade, str(grade), "") for grade in range(1, 11))),
}
"""The scales that have a name."""
REVIEW_SCALE = _scale(
    "review",
    (1, "correct", "Question, answer and cited lines are correct"),
    (2, "minor issue", "A detail is wrong or missing"),
    (3, "major issue", "It cannot be kept unchanged"),
    (4, "wrong", "The answer does not answer the question"),
)
"""Verdicts on a record of a golden set."""


def scale_of(grades: Sequence[float]) -> GradeScale:
    """The scale with these grades: one of `SCALES`, or one of its own, whose ends have labels; `graded` where none is declared.

    Raises:
        UsageError: a grade is no whole number from 0 to 99, or there are fewer than 2 or more than 20.
    """
    if not grades:
        return SCALES["graded"]
    for scale in SCALES.values():
        if list(scale.grades) == sorted(grades):
            return scale
    labels = {0: "not relevant", max(grades): "most relevant"}
    try:
        return _scale("own", *((_whole(grade), labels.get(grade, f"{grade:g}"), "") for grade in sorted(grades)))
    except ValueError:
        expected = "2 to 20 whole numbers from 0 to 99"
        raise UsageError(
            "invalid scale for a book", expected=expected, got=", ".join(f"{grade:g}" for grade in grades)
        ) from None


def _whole(grade: float) -> int:
    if grade != int(grade):
        raise ValueError(grade)
    return int(grade)


class Mode(StrEnum):
    """What a rater is asked."""

    GRADE = "grade"
    """The grade of one document."""
    PREFERENCE = "preference"
    """Which of two result lists of a query is better."""
    REVIEW = "review"
    """What becomes of a record of a golden set: the scale is `REVIEW_SCALE`."""


class BookSettings(BaseModel):
    """Everything that is declared when a book is made."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: Mode = Mode.GRADE
    scale: GradeScale = SCALES["graded"]
    raters_per_item: Annotated[int, Field(ge=1, le=10)] = 1
    overlap: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Share of the items that get `raters_per_item`; the others get one."""
    most_raters: Annotated[int, Field(ge=1, le=20)] = 3
    """Escalation asks no more raters than this, then it is adjudicated."""
    escalate_from: Annotated[int, Field(ge=1)] = 2
    """Range of the grades of an item from which a further rater is asked."""
    quota: Annotated[int, Field(ge=1)] | None = None
    """Most judgments of one rater; None: no limit."""
    repeats: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    """Share of a rater's items that are shown to him or her a second time, unannounced."""
    calibration_first: Annotated[int, Field(ge=0)] = 5
    """Calibration items that each rater should grade, where the book has any; 0: queries with them do not come first."""
    lease_seconds: Annotated[int, Field(ge=10, le=86_400)] = 600
    consensus: str = "median"
    kappa_limit: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Cohen's kappa that the raters must be above before the book may be frozen; None: no limit."""
    reveal: Literal["never", "after"] = "after"
    """Whether rank, system and other grades are shown once an item is graded."""
    seed: Annotated[int, Field(ge=0)] = 0
