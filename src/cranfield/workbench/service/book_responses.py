"""What the REST API answers and takes of books of judgments, as models."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cranfield.workbench.service.responses import Number, ResponseBody


class BookResponse(ResponseBody):
    """A book of judgments."""

    name: str
    state: str
    mode: str
    n_queries: int
    n_items: int
    guideline_version: int
    created_at: int


class QueryCoverageResponse(ResponseBody):
    """A query of a book, with the progress of its items."""

    query: str
    text: str
    n_items: int
    n_judged: int
    n_done: int
    n_adjudicate: int


class BookCoverage(ResponseBody):
    """Progress of a book, and agreement of its raters."""

    n_items: int
    states: dict[str, int]
    judged_lowest: int
    """Items whose grades are all the lowest of the scale: judged 0."""
    judged_higher: int
    unjudged: int
    """In the pool, and without any grade. Never counted as 0."""
    by_persons: dict[str, int]
    """0, 1, 2, … grades by persons to items."""
    n_twice: int
    """Items that two persons judged."""
    alpha: Number
    """Krippendorff's alpha, ordinal; null where too few items were judged twice."""
    alpha_low: Number
    alpha_high: Number
    null_queries: list[str]
    """Queries without a grade: their measures are null."""
    queries: list[QueryCoverageResponse]


class LiveMeasureResponse(ResponseBody):
    """A measure with the current grades."""

    measure: str
    scale: str
    mean: Number
    """Null: no query has a value, which is not 0."""
    n: int
    n_null: int
    n_shown: int
    n_judged: int
    n_rated: int
    n_ties: int


class BookMeasures(ResponseBody):
    """Measures of an evaluation whose results are judged in a book, with the current grades."""

    void: list[str]
    """Why the figures do not count; empty where they do."""
    evaluation: int
    system: str
    failures: dict[str, int]
    """Kind of failure to the number of queries."""
    measures: list[LiveMeasureResponse]


class GradeRow(ResponseBody):
    """Judgment of an item by a rater."""

    rater: str
    kind: str
    grade: Number
    skip_reason: str | None
    reason: str
    at: int


class ItemResponse(ResponseBody):
    """An item of a book, with every judgment of it."""

    id: int
    query: str
    doc: str
    state: str
    origin: str
    final: Number
    """The adjudicated grade."""
    ratings: list[GradeRow]


class GradeEntry(BaseModel):
    """A grade by this account."""

    model_config = ConfigDict(extra="forbid", strict=True)

    query: Annotated[str, Field(min_length=1, max_length=2000)]
    doc: Annotated[str, Field(min_length=1, max_length=2000)]
    grade: Annotated[float, Field(allow_inf_nan=False)]
    reason: Annotated[str, Field(max_length=10_000)] = ""
    key: Annotated[str, Field(min_length=1, max_length=80)] | None = None
    """The same key is saved once; default: made of query, document, grade and reason."""


class Grades(BaseModel):
    """Grades by this account, saved all or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    grades: Annotated[list[GradeEntry], Field(min_length=1, max_length=1000)]


class SavedGrades(ResponseBody):
    """Result of each judgment."""

    n_saved: int
    n_known: int
    """Saved before, by their key."""
