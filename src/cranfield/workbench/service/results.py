"""Stored evaluations and comparisons, as values of the library again: scored from the stored run, compared anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from cranfield.base.errors import Problem, UsageError
from cranfield.books.database.engine import Clock, Database
from cranfield.evaluation.latency import CallsResult
from cranfield.evaluation.options.blocks import CompareOptions, DifferenceOptions
from cranfield.evaluation.options.keys import given_keys
from cranfield.evaluation.result import result_from
from cranfield.model.results import from_jsonable
from cranfield.workbench.service.requests import CompareRequest, DiffOptions, DiffRequest, Settings
from cranfield.workbench.service.store.comparisons import StoredComparisons
from cranfield.workbench.service.store.evaluations import StoredEvaluations
from cranfield.workbench.service.values import EvaluationInfo

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.evaluation.difference import RunDifference
    from cranfield.evaluation.values import Comparison, Evaluation
    from cranfield.model import Run, TestSet
    from cranfield.reporting.sections.subject import Subject
    from cranfield.workbench.service.live_measures import LiveMeasures
    from cranfield.workbench.service.runs import Runs
    from cranfield.workbench.service.testsets import TestSets


Side = TypeVar("Side", "Evaluation", "Run")


class Evaluations(StoredEvaluations):
    """Evaluations of one system on one test set each."""

    def __init__(self, store: Store, clock: Clock, testsets: TestSets, runs: Runs) -> None:
        super().__init__(store.database, clock)
        self._store, self._testsets, self._runs = store, testsets, runs

    def rescore(self, evaluation_id: int) -> Evaluation:
        """Score the stored run on the stored test set, as it was scored: the same numbers, with every query and hit.

        Where its results are judged in a book, it is scored by the grades that the book has now.

        Raises:
            UnknownNameError: there is none of this number.
        """
        from cranfield.workbench.service.runs import read_stored_run
        from cranfield.workbench.service.scoring import score

        info, settings = self.get(evaluation_id), self.settings(evaluation_id)
        testset = self._testsets.load_id(info.testset_id)
        with self._runs.file(info.run_id) as (run, path):
            if info.book_id is None:
                return score(settings, testset, path, run.format)
            answers = replace(read_stored_run(path, run.format), name=settings.name)
            return self.score_in_book(info.book_id, settings, testset, answers)

    def answers(self, evaluation_id: int) -> tuple[TestSet, Run]:
        """The test set of an evaluation, and the run under its label: the results of each query best first.

        Raises:
            UnknownNameError: there is none of this number.
        """
        from cranfield.app.runs_by_name import read_for

        info, settings = self.get(evaluation_id), self.settings(evaluation_id)
        testset = self._testsets.load_id(info.testset_id)
        with self._runs.file(info.run_id) as (stored, path):
            run = read_for(testset, settings.scoring.convention_name, path, stored.format)
        return testset, replace(run, name=info.label)

    def difference(self, request: DiffRequest) -> RunDifference:
        """Compare two evaluations, or two stored runs, without judgments.

        Raises:
            UnknownNameError: there is none of this number.
            UsageError: both are one, or options that cannot be.
            NoCommonQueryError: no query has an answer on both sides.
        """
        ids = (request.baseline, request.candidate)
        check_two(*ids)
        if request.of == "evaluations":
            found = [self.answers(each) for each in ids]
            return compare_lists(request, [run for _, run in found], list(map(str, ids)), found[1][0])
        return compare_lists(request, [self._runs.lists(each) for each in ids], list(map(str, ids)))

    def score_in_book(self, book_id: int, settings: Settings, testset: TestSet, run: Run) -> Evaluation:
        """Score a run by the grades that a book has now."""
        from cranfield.workbench.service.live_measures import evaluate_in_book
        from cranfield.workbench.service.scoring import primary_first

        made = evaluate_in_book(
            self._store,
            book_id,
            testset,
            run,
            settings.measures,
            settings.scoring.convention_name,
            depth=settings.k,
            limits=settings.scoring.limits,
        )
        return primary_first(replace(made, pilot=made.pilot or settings.pilot), settings)

    def subject(self, evaluation_id: int) -> Subject:
        """The record with its queries, for reports; where its results are judged in a book, by the grades that the book has now.

        Raises:
            UnknownNameError: there is none of this number.
            UsageError: this version cannot read what was stored.
        """
        from cranfield.reporting.sections.subject import Subject

        in_book = self.get(evaluation_id).book_id is not None
        return Subject.of(self.rescore(evaluation_id)) if in_book else _stored_subject(self, evaluation_id)

    def live(self, info: EvaluationInfo) -> LiveMeasures:
        """The measures of an evaluation as the grades of its book are now."""
        from cranfield.workbench.service.live_measures import live_measures
        from cranfield.workbench.service.scoring import failures_of, void_of

        settings = self.settings(info.id)
        testset, run = self._testsets.load_id(info.testset_id), self._runs.load(info.run_id)
        made = self.score_in_book(info.book_id or 0, settings, testset, run)
        found = live_measures(made, run, settings.k)
        return replace(found, void=void_of(made, settings), failures=failures_of(made))


class Comparisons(StoredComparisons):
    """Comparisons of two evaluations."""

    def __init__(self, database: Database, clock: Clock, evaluations: Evaluations) -> None:
        super().__init__(database, clock)
        self._evaluations = evaluations

    def compare(self, request: CompareRequest) -> Comparison:
        """Compare two stored evaluations, without storing the result.

        Raises:
            UnknownNameError: there is no such evaluation.
            UsageError: the two do not belong together: other queries, judgments or conventions.
        """
        infos = [self._evaluations.get(side) for side in (request.baseline, request.candidate)]
        sides = [self._evaluations.rescore(info.id) for info in infos]
        declared = self._evaluations.settings(request.baseline)
        return compare_evaluations(request, declared.compare, sides, [f"#{info.id}" for info in infos])

    def subject(self, comparison_id: int) -> Subject:
        """The record with its queries, for reports; raises as that of `Evaluations`."""
        return _stored_subject(self, comparison_id)


def _stored_subject(stored: StoredEvaluations | StoredComparisons, number: int) -> Subject:
    from cranfield.reporting.sections.subject import Subject

    try:
        record = result_from(stored.payload(number))
    except ValueError as error:  # its database is older, or newer, than this server
        first = str(error).partition("\n")[0].rstrip(":")
        hint = "evaluate the stored runs again, or use the version that stored it"
        problem = Problem(f"the stored result {number} is not readable by this version: {first}", hint=hint)
        raise UsageError(problem) from error
    return Subject(record, lambda: from_jsonable(CallsResult, stored.calls(number)))


def check_two(baseline: object, candidate: object) -> None:
    """Refuse to compare a result with itself.

    Raises:
        UsageError: both are one.
    """
    if baseline == candidate:
        raise UsageError("baseline and candidate are the same evaluation", expected="two evaluations")


def compare_lists(
    options: DiffOptions, sides: Sequence[Run], labels: Sequence[str], testset: TestSet | None = None
) -> RunDifference:
    """Compare two runs without judgments.

    Args:
        options: of the request.
        sides: baseline and candidate, the results of each query best first.
        labels: of the two, for names where both are of one system.
        testset: queries that both should answer, their texts and judgments; None: all queries of either run.

    Raises:
        UsageError: options that cannot be.
        NoCommonQueryError: no query has an answer on both sides.
    """
    from cranfield.app.difference import difference

    baseline, candidate = _named_apart(sides, [f"#{label}" for label in labels])
    return difference(baseline, candidate, DifferenceOptions(**given_keys(DifferenceOptions, options)), testset)


def compare_evaluations(
    request: CompareRequest, declared: CompareOptions, sides: Sequence[Evaluation], labels: Sequence[str]
) -> Comparison:
    """Compare two evaluations.

    Args:
        request: the options; what it leaves out is as the baseline was declared.
        declared: of the baseline.
        sides: baseline and candidate.
        labels: of the two, for names where both are of one system.

    Raises:
        UsageError: both are one, or the two do not belong together: other queries, judgments or conventions.
    """
    from cranfield.app.evaluate import with_measure
    from cranfield.evaluation.compare import compare

    check_two(*labels)
    primary = request.measure or declared.primary
    options = replace(declared, **given_keys(CompareOptions, request), primary=primary)
    spellings = dict.fromkeys(str(measure) for side in sides for measure in side.measures)
    spellings |= {request.measure: None} if request.measure else {}
    for spelling in spellings:
        sides = [with_measure(side, spelling) for side in sides]
    baseline, candidate = _named_apart(sides, labels)
    return compare(baseline, candidate, replace(options, limits=baseline.limits))


def _named_apart(sides: Sequence[Side], labels: Sequence[str]) -> Sequence[Side]:
    """Two evaluations, or runs, of one system with the label of each in its name."""
    if sides[0].name != sides[1].name:
        return sides
    return [replace(side, name=f"{side.name} {label}") for side, label in zip(sides, labels, strict=True)]
