"""How far a model agrees with people on the documents that both graded, and the mean grade that people would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cranfield.books.store.schema import Origin
from cranfield.judging.book.grades import BookContents
from cranfield.judging.quality import MIN_PAIRS
from cranfield.model import Query, TestSet
from cranfield.model.results import Record
from cranfield.stats.agreement import Agreement, agreement
from cranfield.stats.confusion import ConfusionMatrix, confusion_matrices
from cranfield.stats.consensus import slot_table
from cranfield.stats.describe import t_interval
from cranfield.stats.ppi import CorrectedMean, corrected_mean

PEOPLE_NAME = "people"
Grades = Mapping[str, Mapping[str, float]]
"""Query id to document id to grade."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAgreement:
    """A model and people, over the documents that both graded."""

    rater: str
    model: str
    prompt: str
    temperature: str
    n_model: int
    """Documents that the model graded."""
    n_people: int
    n_pairs: int
    agreement: Agreement | None
    """None under `MIN_PAIRS` pairs."""
    confusion: ConfusionMatrix | None
    bias: float | None
    """Mean grade of the model minus that of people, over the pairs."""
    bias_interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class SystemOrder:
    """The means of several systems by the grades of people and of a model, for the same documents."""

    rater: str
    measure: str
    systems: tuple[str, ...]
    by_people: tuple[float | None, ...]
    by_model: tuple[float | None, ...]
    tau: float | None
    n_queries: int


@dataclass(frozen=True, slots=True)
class Corrected:
    """A mean by the grades of a model, corrected by those of people."""

    rater: str
    quantity: str
    """`mean grade`, `nDCG@10 of bm25`, `nDCG@10: dense − bm25`."""
    unit: str
    """`queries` or `documents`."""
    mean: CorrectedMean
    is_valid: bool
    """False where what people judged is no random sample."""

    @classmethod
    def of(cls, rater: str, quantity: str, unit: str, mean: CorrectedMean) -> Corrected:
        """A mean, valid where the sample looks random."""
        return cls(rater, quantity, unit, mean, mean.looks_random)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReport(Record):
    """What `cranfield book models` shows."""

    book: str
    n_people: int
    """Documents that people graded: adjudicated, or by the consensus rule of the book."""
    levels: tuple[float, ...]
    seed: int
    sample: str
    """What the people's judgments are a random sample of; empty: not declared."""
    models: tuple[ModelAgreement, ...]
    orders: tuple[SystemOrder, ...]
    corrected: tuple[Corrected, ...]


def scale_of(contents: BookContents) -> tuple[float, ...]:
    """The grades of the scale of a book."""
    return tuple(map(float, contents.info.settings.scale.grades))


def model_grades(contents: BookContents, rater: str) -> dict[str, dict[str, float]]:
    """The grades of a rater for the documents of the pool."""
    grades: dict[str, dict[str, float]] = {}
    for item in contents.items:
        for row in item.ratings:
            if row.rater == rater and row.grade is not None and item.origin is not Origin.CALIBRATION:
                grades.setdefault(item.query, {})[item.doc] = row.grade
    return grades


def compare_model(contents: BookContents, rater: str, grades: Grades, people: Grades, seed: int = 0) -> ModelAgreement:
    """Compare the grades of a model of a book with those of its people."""
    settings, levels = contents.models[rater], scale_of(contents)
    shared = pairs(people, grades)
    table = slot_table(shared, (PEOPLE_NAME, rater))
    differences = [by_model - by_people for by_people, by_model in shared]
    matrices = confusion_matrices(table, levels, most_raters=2)
    return ModelAgreement(
        rater=rater,
        model=str(settings.get("model", "")),
        prompt=str(settings.get("prompt", "")),
        temperature=str(settings.get("temperature", "not known")),
        n_model=sum(map(len, grades.values())),
        n_people=sum(map(len, people.values())),
        n_pairs=len(shared),
        agreement=agreement(table, seed=seed, pairwise=False) if len(shared) >= MIN_PAIRS else None,
        confusion=matrices[0] if matrices else None,
        bias=float(np.mean(differences)) if differences else None,
        bias_interval=t_interval(differences) if len(shared) >= MIN_PAIRS else None,
    )


def pairs(first: Grades, second: Grades) -> list[tuple[float, float]]:
    """The grades of the documents that both graded."""
    return [
        (grade, second[query_id][doc_id])
        for query_id, docs in first.items()
        for doc_id, grade in docs.items()
        if doc_id in second.get(query_id, {})
    ]


def shared_testsets(contents: BookContents, people: Grades, model: Grades) -> tuple[TestSet, TestSet]:
    """Two test sets with the same documents, those that both graded: by people, and by the model."""
    common = {
        query_id: [doc_id for doc_id in docs if doc_id in model.get(query_id, {})] for query_id, docs in people.items()
    }

    def of(name: str, grades: Grades) -> TestSet:
        chosen = {
            query_id: {doc_id: grades[query_id][doc_id] for doc_id in docs} for query_id, docs in common.items() if docs
        }
        return graded_testset(contents, name, chosen)

    return of(PEOPLE_NAME, people), of("model", model)


def graded_testset(contents: BookContents, name: str, grades: Grades) -> TestSet:
    """A test set of the queries that have a grade."""
    queries = tuple(Query(row.name, row.text, dict(row.strata)) for row in contents.queries if row.name in grades)
    return TestSet(name, queries, {query_id: dict(docs) for query_id, docs in grades.items()})


def complete_queries(contents: BookContents, grades: Grades) -> set[str]:
    """Queries whose pooled documents all have a grade."""
    pooled: dict[str, set[str]] = {}
    for item in contents.items:
        if item.origin is not Origin.CALIBRATION:
            pooled.setdefault(item.query, set()).add(item.doc)
    return {query_id for query_id, docs in pooled.items() if docs <= set(grades.get(query_id, {}))}


def corrected_grade(model: Grades, people: Grades) -> CorrectedMean:
    """The mean grade that people would give to the documents that the model graded.

    Valid where the documents that people graded are a simple random sample of those. The mean is of these documents, not of a
    population: documents of one query are not independent, which does not matter for it.
    """
    keys = [(query_id, doc_id) for query_id, docs in model.items() for doc_id in docs]
    return corrected_mean(
        [model[query_id][doc_id] for query_id, doc_id in keys],
        [people.get(query_id, {}).get(doc_id) for query_id, doc_id in keys],
        finite=True,
    )
