"""How far a model agrees with people on the documents that both graded, and the mean grade that people would give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cranfield.judging.book.contents import BookContents
from cranfield.judging.book.grades import people_grades
from cranfield.judging.quality import FEWEST_PAIRS
from cranfield.judging.store.schema import Origin
from cranfield.model import Query, TestSet
from cranfield.stats.agreement import Agreement, agreement
from cranfield.stats.confusion import ConfusionMatrix, confusion_matrices
from cranfield.stats.consensus import slot_table
from cranfield.stats.interval import t_interval
from cranfield.stats.ppi import CorrectedMean, corrected_mean

PEOPLE_NAME = "people"
Grades = Mapping[str, Mapping[str, float]]
"""Query id to document id to grade."""


@dataclass(frozen=True)
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
    """None under `FEWEST_PAIRS` pairs."""
    confusion: ConfusionMatrix | None
    bias: float | None
    """Mean grade of the model minus that of people, over the pairs."""
    bias_interval: tuple[float, float] | None
    grades: Grades
    """Of the model."""


@dataclass(frozen=True)
class BookModels:
    """The models of a book."""

    book: str
    people: Grades
    """By persons: adjudicated, or by the consensus rule of the book."""
    models: tuple[ModelAgreement, ...]
    levels: tuple[float, ...]
    seed: int


@dataclass(frozen=True)
class SystemOrder:
    """The means of several systems by the grades of people and of a model, for the same documents."""

    rater: str
    measure: str
    systems: tuple[str, ...]
    by_people: tuple[float | None, ...]
    by_model: tuple[float | None, ...]
    tau: float | None
    n_queries: int


@dataclass(frozen=True)
class Corrected:
    """A mean by the grades of a model, corrected by those of people."""

    rater: str
    quantity: str
    """`mean grade`, `nDCG@10 of bm25`, `nDCG@10: dense − bm25`."""
    mean: CorrectedMean
    unit: str
    """`queries` or `documents`."""


@dataclass(frozen=True)
class ModelReport:
    """What `cranfield book models` shows."""

    models: BookModels
    orders: tuple[SystemOrder, ...]
    corrected: tuple[Corrected, ...]
    sample: str
    """What the people's judgments are a random sample of; empty: not declared."""


def compare_models(contents: BookContents, *, seed: int = 0) -> BookModels:
    """Compare each model of a book with the grades of its people."""
    people = people_grades(contents)
    levels = tuple(map(float, contents.info.settings.scale.grades))
    models = tuple(
        _compared(name, settings, model_grades(contents, name), people, levels, seed)
        for name, settings in contents.models.items()
    )
    return BookModels(contents.info.name, people, models, levels, seed)


def model_grades(contents: BookContents, rater: str) -> dict[str, dict[str, float]]:
    """The grades of a rater for the documents of the pool."""
    grades: dict[str, dict[str, float]] = {}
    for item in contents.items:
        for row in item.ratings:
            if row.rater == rater and row.grade is not None and item.origin is not Origin.CALIBRATION:
                grades.setdefault(item.query, {})[item.doc] = row.grade
    return grades


def _compared(
    rater: str,
    settings: Mapping[str, object],
    grades: Grades,
    people: Grades,
    levels: tuple[float, ...],
    seed: int,
) -> ModelAgreement:
    shared = pairs(people, grades)
    table = slot_table(shared, (PEOPLE_NAME, rater))
    differences = [by_model - by_people for by_people, by_model in shared]
    matrices = confusion_matrices(table, levels, most_raters=2)
    return ModelAgreement(
        rater,
        str(settings.get("model", "")),
        str(settings.get("prompt", "")),
        str(settings.get("temperature", "not known")),
        sum(map(len, grades.values())),
        sum(map(len, people.values())),
        len(shared),
        agreement(table, seed=seed, pairwise=False) if len(shared) >= FEWEST_PAIRS else None,
        matrices[0] if matrices else None,
        float(np.mean(differences)) if differences else None,
        t_interval(differences) if len(shared) >= FEWEST_PAIRS else None,
        grades,
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
