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
from cranfield.judging.book.grades import people_grades
from cranfield.judging.models.compare import (
    Corrected,
    Grades,
    ModelReport,
    SystemOrder,
    compare_model,
    complete_queries,
    corrected_grade,
    graded_testset,
    model_grades,
    scale_of,
    shared_testsets,
)
from cranfield.judging.store.store import Store
from cranfield.model import TestSet
from cranfield.options.scoring import ScoringOptions
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
    people = people_grades(contents)
    grades = {rater: model_grades(contents, rater) for rater in contents.models}
    scoring = _Scoring(contents, people, runs, tuple(measures or MEASURES), options or ScoringOptions())
    return ModelReport(
        book=contents.info.name,
        n_people=sum(map(len, people.values())),
        levels=scale_of(contents),
        seed=seed,
        sample=sample,
        models=tuple(compare_model(contents, rater, given, people, seed) for rater, given in grades.items()),
        orders=tuple(order for rater, given in grades.items() for order in scoring.orders(rater, given)),
        corrected=tuple(row for rater, given in grades.items() for row in scoring.corrected(rater, given, sample)),
    )


@dataclass(frozen=True)
class _Scoring:
    contents: BookContents
    people: Grades
    runs: Sequence[Path]
    measures: tuple[str, ...]
    options: ScoringOptions

    def evaluations(self, testset: TestSet) -> list[Evaluation]:
        """None where there is nothing to score."""
        if not self.runs or not testset.queries:
            return []
        return evaluate_files(testset, self.runs, self.measures, self.options)

    def orders(self, rater: str, grades: Grades) -> list[SystemOrder]:
        """The order of the systems by people and by a model, for each measure."""
        testsets = shared_testsets(self.contents, self.people, grades)
        if len(self.runs) < 2 or not testsets[0].queries:
            return []
        by_people, by_model = map(self.evaluations, testsets)
        rows = []
        for measure in self.measures:
            first, second = (tuple(each.mean(measure) for each in found) for found in (by_people, by_model))
            known = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
            tau = kendall_tau([a for a, _ in known], [b for _, b in known])
            names = tuple(each.name for each in by_people)
            rows.append(SystemOrder(rater, measure, names, first, second, tau, len(by_people[0].query_ids)))
        return rows

    def corrected(self, rater: str, grades: Grades, sample: str) -> list[Corrected]:
        """The corrected means of a model."""
        if sample == "items":
            return [Corrected.of(rater, "mean grade", "documents", corrected_grade(grades, self.people))]
        if sample != "queries":
            return []
        complete = complete_queries(self.contents, grades)
        judged = complete & complete_queries(self.contents, self.people)
        by_model = {query_id: grades[query_id] for query_id in sorted(complete)}
        by_people = {query_id: self.people[query_id] for query_id in sorted(judged)}
        found = [_row(rater, "mean grade of a query", _query_means(by_model), _query_means(by_people))]
        predicted = self.evaluations(graded_testset(self.contents, "model", by_model))
        labelled = self.evaluations(graded_testset(self.contents, "people", by_people))
        for measure, (place, evaluation) in product(self.measures, enumerate(predicted)):
            values = _values(evaluation, measure)
            labels = _values(labelled[place], measure) if labelled else {}
            found.append(_row(rater, f"{measure} of {evaluation.name}", values, labels))
            if place:
                first = _values(predicted[0], measure)
                first_labels = _values(labelled[0], measure) if labelled else {}
                title = f"{measure}: {evaluation.name} minus {predicted[0].name}"
                found.append(_row(rater, title, _minus(values, first), _minus(labels, first_labels)))
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
    return Corrected.of(rater, quantity, "queries", mean)
