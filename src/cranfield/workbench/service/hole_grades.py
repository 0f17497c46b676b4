"""Grades of results that are not judged, given where they are seen; and new versions of a test set with such grades.

A grade goes into a book. No stored evaluation changes: the grades of a book become a version of the test set, on which
stored runs are scored again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from cranfield.base.errors import UnknownNameError, UsageError, shorten
from cranfield.books.database.engine import day_of
from cranfield.books.pool_file import Pool
from cranfield.books.settings import BookSettings
from cranfield.books.store.rows import ChangedMeanwhileError
from cranfield.books.store.schema import Action, RaterKind
from cranfield.books.store.values import ItemFilter, SaveRequest
from cranfield.evaluation.testset.split import only
from cranfield.judging.book.freeze import freeze, record_frozen
from cranfield.judging.book.grades import contents_of, rated_book
from cranfield.judging.book.imports import scale_for
from cranfield.judging.book.onto import put_onto
from cranfield.stats.consensus import DEFAULT_RULE
from cranfield.workbench.service.requests import CompareResultsRequest, ComparisonOptions, EvaluateRequest
from cranfield.workbench.service.responses import StoredSource, Trigger
from cranfield.workbench.service.set_versions import newest, newest_for, own_name, part_for, stored_name
from cranfield.workbench.service.snapshot import empty_pool, snapshot_pool

if TYPE_CHECKING:
    from cranfield.books.settings import Level
    from cranfield.books.store.values import BookInfo, ItemView
    from cranfield.model import Run, TestSet
    from cranfield.workbench.service.requests import JobRequest
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import EvaluationInfo, JobInfo, SetInfo

GRADES = ": grades"
LOOKED_AT = 200
"""Latest jobs among which one of the same request is looked for."""
ATTEMPTS = 5
"""To store a version while others are stored."""
DEEPEST = 1_000
"""Rank down to which the results of a query with targets go along, with the grades of the rule."""


def hole_book(service: Service, info: EvaluationInfo) -> BookInfo | None:
    """The book that an evaluation's grades go into: its own, or that of its test set; None where there is none yet.

    Raises:
        UsageError: a book of another test set has the name.
    """
    if info.book_id is not None:
        return service.store.books.get(info.book_id)
    name = _book_name(info.testset_name)
    try:
        return service.store.books.get(name)
    except UnknownNameError:
        return None


def _book_name(testset: str) -> str:
    return own_name(testset).replace("\\", "-") + GRADES


def hole_levels(service: Service, info: EvaluationInfo) -> tuple[Level, ...]:
    """The grades that may be given."""
    book = hole_book(service, info)
    scale = scale_for(service.testsets.load_id(info.testset_id)) if book is None else book.settings.scale
    return scale.levels


def grade_hole(
    service: Service, info: EvaluationInfo, query: str, doc: str, grade: float, by: int, *, method: str = "click"
) -> BookInfo:
    """Grade a result of an evaluation that its test set does not judge; the book that has the grade.

    Args:
        service: of the evaluation.
        info: the evaluation.
        query: id of a query.
        doc: id of a result of it.
        grade: of the scale of the test set.
        by: who grades; a second grade of the same account takes the place of the first.
        method: `key` or `click`.

    Raises:
        UnknownNameError: the evaluation has no such query or result.
        UsageError: the test set has judged it, or the grade is not on the scale.
    """
    item, book = hole_item(service, info, query, doc, by)
    request = SaveRequest(book.id, item.id, by, Action.GRADE, f"hole:{uuid4()}", grade, method=method)
    service.store.log.save(request)
    return book


def hole_item(service: Service, info: EvaluationInfo, query: str, doc: str, by: int) -> tuple[ItemView, BookInfo]:
    """The item of a result that is to be graded, in its book, which is made where there is none; raises as `grade_hole`."""
    testset = service.testsets.load_id(info.testset_id)
    pool = hole_pool(testset, service.runs.load(info.run_id), info.system, query, doc)
    book = hole_book(service, info) or _new_book(service, testset, info, by)
    service.store.books.add_pool(book.id, pool)
    items = service.store.reading.items(book.id, ItemFilter(query=query))
    return next(item for item in items if item.doc == doc), book


def _new_book(service: Service, testset: TestSet, info: EvaluationInfo, by: int) -> BookInfo:
    settings = BookSettings(scale=scale_for(testset), consensus=testset.consensus or DEFAULT_RULE)
    pool = empty_pool(testset, 1, testset.name).model_copy(update={"method": "holes", "complete_to": 0})
    return service.store.books.create(_book_name(info.testset_name), pool, settings, by=by)


def hole_pool(testset: TestSet, run: Run, system: str, query: str, doc: str) -> Pool:
    """The pool of one result; of a query of targets, with the results that its rule grades.

    Raises:
        UnknownNameError: there is no such query or result.
        UsageError: the test set has judged it.
    """
    if query not in testset.by_id:
        raise UnknownNameError.among("query", query, testset.query_ids)
    found = snapshot_pool(only(testset, [query]), {system: run}, DEEPEST, testset.name)
    item = next((item for item in found.items if item.doc == doc), None)
    if item is None:
        raise UnknownNameError(f"result {shorten(doc)} of query {shorten(query)} not found")
    if not item.is_open:
        raise UsageError(f"the test set already has a judgment of {shorten(doc)} for query {shorten(query)}")
    rated = [each for each in found.items if each.prefilled is not None]
    return found.model_copy(update={"method": "holes", "complete_to": 0, "items": (item, *rated)})


def new_grades(service: Service, info: EvaluationInfo) -> int:
    """Grades of persons in the book of an evaluation's test set that the version which scored it does not have."""
    book = hole_book(service, info)
    if book is None:
        return 0
    testset = service.testsets.load_id(info.testset_id)
    rated = rated_book(contents_of(service.store, book.id))
    by_person = (pair for pair, source in rated.decided_by.items() if source in {RaterKind.PERSON, Action.ADJUDICATE})
    return sum(
        query in testset.by_id and testset.grades.get(query, {}).get(doc) != rated.testset.grades[query][doc]
        for query, doc in by_person
    )


def freeze_onto(
    service: Service,
    info: EvaluationInfo,
    runs: Mapping[str, Run],
    by: int | None,
    *,
    allow_partial: bool = True,
    others: Sequence[EvaluationInfo] = (),
) -> SetInfo:
    """Freeze the book of an evaluation onto the newest version of its test set: a new version, unless nothing is new.

    Args:
        service: of the evaluation.
        info: the evaluation.
        runs: whose results a rule of the test set grades along with those of the book.
        by: who asks for it.
        allow_partial: whether documents may be without a grade.
        others: evaluations that are scored on it too.

    Returns:
        The part of the version with the queries that all evaluations asked: as a rule all of it.

    Raises:
        UsageError: there is no book, nothing is graded, the book asks for more agreement or for all grades, or no query of
            the newest version was asked.
    """
    book = hole_book(service, info)
    if book is None:
        raise UsageError("no result is graded yet", hint="grade an unjudged result")
    name = stored_name(service, info.testset_name)
    for attempt in range(ATTEMPTS):
        try:
            version = _frozen(service, book, name, runs, by, allow_partial=allow_partial)
            break
        except ChangedMeanwhileError:
            if attempt == ATTEMPTS - 1:
                raise
    return part_for(service, version, [info, *others], by)


def _frozen(
    service: Service, book: BookInfo, name: str, runs: Mapping[str, Run], by: int | None, *, allow_partial: bool
) -> SetInfo:
    """The newest version of a test set with the grades of a book as they are now.

    Raises:
        ChangedMeanwhileError: another version of the set, or of the book, was made meanwhile.
    """
    latest = service.testsets.latest(name)
    _add_rated(service, book, newest(service, name), runs)
    today, contents = day_of(service.clock()), contents_of(service.store, book.id)
    made = freeze(contents, today=today, allow_partial=allow_partial)
    undecided = {(item.query, item.doc) for item in contents.items} - made.rated.decided_by.keys()
    ever = service.store.reading.graded_by(book.id) if undecided else {}
    testset = newest(service, name, {pair: ever[pair] for pair in undecided if pair in ever})
    version = put_onto(testset, contents, made, today)
    if len(version.queries) > len(testset.queries):  # a query of the book that the test set does not have any more
        version = only(version, testset.query_ids)
    if latest is not None and latest.digest == version.digest:
        return latest
    record_frozen(service.store, contents, made)
    after = 0 if latest is None else latest.id
    return service.testsets.keep(name, version, source=StoredSource.BOOK, by=by, after=after)


def _add_rated(service: Service, book: BookInfo, testset: TestSet, runs: Mapping[str, Run]) -> None:
    """Add what the targets of a query match in the runs, so that it keeps its grade when grades of ids decide."""
    in_book = [query.name for query in service.store.reading.queries(book.id) if query.name in testset.targets]
    if in_book:
        pool = snapshot_pool(only(testset, in_book), runs, DEEPEST, testset.name)
        rated = tuple(item for item in pool.items if item.prefilled is not None)
        if rated:
            changed = {"method": "holes", "complete_to": 0, "items": rated}
            service.store.books.add_pool(book.id, pool.model_copy(update=changed))


def score_again(service: Service, infos: Sequence[EvaluationInfo], version: SetInfo, by: int | None) -> JobInfo:
    """The job that scores the stored runs of evaluations on another version of their test set."""
    first = infos[0]
    settings = service.evaluations.settings(first.id)
    request = EvaluateRequest(
        testset=version.ref,
        runs=tuple(info.run_id for info in infos),
        k=settings.k,
        measures=tuple(settings.measures or map(str, first.scores.measures)),
        primary=settings.primary,
        convention=settings.scoring.convention_name,
        note="scored again on another version of the test set: "
        + ", ".join(f"#{info.id} {info.label}" for info in infos),
    )
    return _submit_once(service, request, by)


def _submit_once(service: Service, request: JobRequest, by: int | None) -> JobInfo:
    """The latest job of the same request that has results or will have them, else a new one."""
    for job in service.jobs.all(limit=LOOKED_AT):
        if job.request == request and (job.results or not job.has_ended):
            return job
    return service.jobs.submit(request, trigger=Trigger.PAGE, by=by)


def compare_again(
    service: Service,
    baseline: EvaluationInfo,
    candidate: EvaluationInfo,
    by: int | None,
    *,
    allow_partial: bool = True,
) -> JobInfo:
    """Freeze the grades, and the job that compares both runs on that version. What did not change is not done again.

    Args:
        service: of both.
        baseline: an evaluation.
        candidate: another one of the same queries, in the same book or on the same test set.
        by: who asks for it.
        allow_partial: whether documents may be without a grade.

    Raises:
        UsageError: as of `freeze_onto`.
    """
    infos = (baseline, candidate)
    runs = {f"#{info.id} {info.system}": service.runs.load(info.run_id) for info in infos}
    version = freeze_onto(service, candidate, runs, by, allow_partial=allow_partial, others=[baseline])
    return compare_results(service, [score_again(service, infos, version, by)], by)


def compare_on_newest(
    service: Service,
    baseline: EvaluationInfo,
    candidate: EvaluationInfo,
    by: int | None,
    options: ComparisonOptions | None = None,
    key: str | None = None,
) -> JobInfo:
    """The job that compares two runs on the newest version of their test set: stored answers, nothing is asked again.

    Args:
        service: of both.
        baseline: an evaluation.
        candidate: another one, of another version of the test set.
        by: who asks for it.
        options: of the comparison.
        key: of the job of a schedule.

    Raises:
        UsageError: no query of it was asked by both; `KeyConflictError`.
    """
    infos = (baseline, candidate)
    job = score_again(service, infos, newest_for(service, infos, by), by)
    return compare_results(service, [job], by, options, key)


def compare_results(
    service: Service,
    jobs: Sequence[JobInfo],
    by: int | None,
    options: ComparisonOptions | None = None,
    key: str | None = None,
) -> JobInfo:
    """The job that compares the two evaluations that jobs make, the baseline first, once these have ended."""
    given = {} if options is None else options.model_dump(include=set(ComparisonOptions.model_fields))
    request = CompareResultsRequest(jobs=tuple(job.id for job in jobs), **given)
    if key is None:
        return _submit_once(service, request, by)
    return service.jobs.submit(request, trigger=Trigger.WATCH, by=by, key=key)
