"""Models as raters of a book: agreement with people, the order of systems under both, and corrected means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from cranfield.errors import RunFormatError, UsageError
from cranfield.evaluation.values import Evaluation
from cranfield.formats.io.files import opened
from cranfield.judging.book.contents import BookContents, contents_of
from cranfield.judging.models.compare import (
    BookModels,
    Corrected,
    Grades,
    ModelAgreement,
    ModelReport,
    SystemOrder,
    compare_models,
    complete_queries,
    corrected_grade,
    graded_testset,
    shared_testsets,
)
from cranfield.judging.store.store import Store
from cranfield.model import TestSet
from cranfield.project.inputs import ScoringOptions
from cranfield.project.read_ahead import evaluate_files
from cranfield.stats.ppi import corrected_mean
from cranfield.stats.rank_correlation import kendall_tau

MEASURES = ("nDCG@10",)
SAMPLES = ("queries", "items")
"""What people's judgments may be a random sample of."""


def model_report(
    store: Store,
    book: str,
    runs: Sequence[Path] = (),
    measures: Sequence[str] | None = None,
    *,
    sample: str = "",
    options: ScoringOptions | None = None,
    seed: int = 0,
) -> ModelReport:
    """Compare the models of a book with its people.

    Args:
        store: the database.
        book: name of the book.
        runs: run files of the systems whose order is compared.
        measures: of the systems; default nDCG@10.
        sample: `queries` or `items` where the people's judgments are a random sample of them; empty: nothing is corrected.
        options: how runs are scored.
        seed: of the resamples.

    Raises:
        UnknownNameError: there is no such book.
        UsageError: an unknown kind of sample, or a book of preferences.
        RunFormatError: a run cannot be read.
    """
    if sample and sample not in SAMPLES:
        raise UsageError(f"people's judgments are no sample of {sample!r}", expected=" or ".join(SAMPLES))
    for run in runs:
        with opened(run, RunFormatError):  # also where nothing is scored, because no document has both grades
            pass
    contents = contents_of(store, book)
    models = compare_models(contents, seed=seed)
    scoring = _Scoring(runs, tuple(measures or MEASURES), options or ScoringOptions())
    orders = [order for model in models.models for order in _orders(contents, models, model, scoring)]
    corrected = [row for model in models.models for row in _corrected(contents, models, model, scoring, sample)]
    return ModelReport(models, tuple(orders), tuple(corrected), sample)


@dataclass(frozen=True)
class _Scoring:
    runs: Sequence[Path]
    measures: tuple[str, ...]
    options: ScoringOptions

    def evaluations(self, testset: TestSet) -> list[Evaluation]:
        """None where there is nothing to score."""
        if not self.runs or not testset.queries:
            return []
        return evaluate_files(testset, self.runs, self.measures, self.options)


def _orders(contents: BookContents, models: BookModels, model: ModelAgreement, scoring: _Scoring) -> list[SystemOrder]:
    if len(scoring.runs) < 2 or not model.n_pairs:
        return []
    by_people, by_model = map(scoring.evaluations, shared_testsets(contents, models.people, model.grades))
    rows = []
    for measure in scoring.measures:
        first, second = (tuple(each.mean(measure) for each in found) for found in (by_people, by_model))
        known = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
        tau = kendall_tau([a for a, _ in known], [b for _, b in known])
        names = tuple(each.name for each in by_people)
        rows.append(SystemOrder(model.rater, measure, names, first, second, tau, len(by_people[0].query_ids)))
    return rows


def _corrected(
    contents: BookContents, models: BookModels, model: ModelAgreement, scoring: _Scoring, sample: str
) -> list[Corrected]:
    if sample == "items":
        return [Corrected(model.rater, "mean grade", corrected_grade(model.grades, models.people), "documents")]
    if sample != "queries":
        return []
    complete = complete_queries(contents, model.grades)
    judged = complete & complete_queries(contents, models.people)
    by_model = {query_id: model.grades[query_id] for query_id in sorted(complete)}
    by_people = {query_id: models.people[query_id] for query_id in sorted(judged)}
    found = [_row(model.rater, "mean grade of a query", _query_means(by_model), _query_means(by_people))]
    predicted = scoring.evaluations(graded_testset(contents, "model", by_model))
    labelled = scoring.evaluations(graded_testset(contents, "people", by_people))
    for measure, (place, evaluation) in product(scoring.measures, enumerate(predicted)):
        values = _values(evaluation, measure)
        labels = _values(labelled[place], measure) if labelled else {}
        found.append(_row(model.rater, f"{measure} of {evaluation.name}", values, labels))
        if place:
            first = _values(predicted[0], measure)
            first_labels = _values(labelled[0], measure) if labelled else {}
            title = f"{measure}: {evaluation.name} minus {predicted[0].name}"
            found.append(_row(model.rater, title, _minus(values, first), _minus(labels, first_labels)))
    return found


def _query_means(grades: Grades) -> dict[str, float]:
    return {query_id: sum(docs.values()) / len(docs) for query_id, docs in grades.items()}


def _values(evaluation: Evaluation, measure: str) -> dict[str, float]:
    """Query id to value, of the queries that have one."""
    values = ((query_id, evaluation.value(measure, query_id)) for query_id in evaluation.query_ids)
    return {query_id: value for query_id, value in values if value is not None}


def _minus(values: dict[str, float], others: dict[str, float]) -> dict[str, float]:
    return {query_id: value - others[query_id] for query_id, value in values.items() if query_id in others}


def _row(rater: str, quantity: str, predicted: dict[str, float], labels: dict[str, float]) -> Corrected:
    mean = corrected_mean(list(predicted.values()), [labels.get(query_id) for query_id in predicted])
    return Corrected(rater, quantity, mean, "queries")
