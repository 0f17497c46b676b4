"""How the judgments of a test set were made, in its file: the manifest of a frozen book."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cranfield.formats.io.validation import Text
from cranfield.formats.testsets.native_fields import CLOSED, FilledText, Id, Strict
from cranfield.model import (
    Judging,
    JudgingAgreement,
    JudgingGuideline,
    JudgingOverruled,
    JudgingPool,
    JudgingRater,
)


class RaterModel(Strict):
    """A rater of a book."""

    name: FilledText
    """Name or pseudonym."""
    kind: FilledText
    """`person`, `model`, `rule` or `carried` (judgments of an earlier test set)."""
    n: Annotated[int, Field(ge=0)]
    """Number of grades."""
    about: dict[Id, Text] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Provider, name and settings of a model."""


class GuidelineModel(Strict):
    """A version of the guidelines that documents were judged by."""

    version: int
    """Number of the version in its book."""
    digest: FilledText
    """SHA-256 of its text."""
    n: Annotated[int, Field(ge=0)]
    """Number of grades by persons."""


class AgreementModel(Strict):
    """A coefficient of agreement of the persons who judged."""

    name: FilledText
    """Name of the coefficient, such as `alpha-ordinal`."""
    value: float | None = None
    """Its value; none where it is not defined."""
    ci_low: float | None = None
    """Lower end of its confidence interval."""
    ci_high: float | None = None
    """Upper end."""
    n: Annotated[int, Field(ge=0)] = 0
    """Number of documents that it is about."""
    note: Text = ""
    """Why it is not defined."""


class PoolModel(Strict):
    """How the documents to judge were chosen."""

    method: FilledText
    """`depth`, `stratified`, `budget` or `holes`."""
    depth: Annotated[int, Field(ge=1)]
    """Number of results of each run and query."""
    seed: int = 0
    """Random seed."""
    runs: dict[Id, Text] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Name of a run to its digest."""
    testset: Text = ""
    """Digest of the test set that the pool was made for."""
    complete_to: Annotated[int, Field(ge=0)] = 0
    """Rank down to which every result of every run is in it."""


class OverruledModel(Strict):
    """A document whose grade by a rule of the test set another source replaced."""

    query: Id
    """Its query."""
    doc: Id
    """Its id."""
    rule: float
    """Grade of the target that it matches."""
    grade: float
    """The grade that holds."""


class JudgingModel(Strict):
    """How the judgments were made: the manifest of a frozen book."""

    book: FilledText
    """Name of the book."""
    number: Annotated[int, Field(ge=1)]
    """1, 2, ...: versions frozen from the book."""
    rule: FilledText
    """Consensus rule of the grades by persons."""
    raters: list[RaterModel] = Field(default_factory=list)
    """Who judged, and how much."""
    guidelines: list[GuidelineModel] = Field(default_factory=list)
    """Versions of the guidelines that grades were given by."""
    agreement: list[AgreementModel] = Field(default_factory=list)
    """Agreement of the persons."""
    coverage: dict[Id, Annotated[int, Field(ge=0)]] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Number of documents by what became of them: `pooled`, `judged`, `unjudged`, ..."""
    skipped: dict[Id, Annotated[int, Field(ge=0)]] = Field(default_factory=dict, json_schema_extra=CLOSED)
    """Reason to number of skips by persons."""
    pool: PoolModel | None = None
    """The pool."""
    by_id: list[Id] = Field(default_factory=list)
    """Queries that patterns, spans or other rules judged before, and now the ids of documents."""
    unmatched: list[Text] = Field(default_factory=list)
    """Rules of those queries that no judged document matches; they are expected under their own names."""
    overruled: list[OverruledModel] = Field(default_factory=list)
    """Documents of those queries that were graded otherwise than by their rule."""


def judging_of(model: JudgingModel) -> Judging:
    """The manifest as the file of a set has it."""
    pool = None if model.pool is None else JudgingPool(**model.pool.model_dump())
    return Judging(
        model.book,
        model.number,
        model.rule,
        raters=tuple(JudgingRater(**row.model_dump()) for row in model.raters),
        guidelines=tuple(JudgingGuideline(**row.model_dump()) for row in model.guidelines),
        agreement=tuple(JudgingAgreement(**row.model_dump()) for row in model.agreement),
        coverage=dict(model.coverage),
        skipped=dict(model.skipped),
        pool=pool,
        by_id=tuple(model.by_id),
        unmatched=tuple(model.unmatched),
        overruled=tuple(JudgingOverruled(**row.model_dump()) for row in model.overruled),
    )
