"""Versions of a test set: the newest one with all that was judged, and the part of it that evaluations have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cranfield.base.errors import UsageError, shorten
from cranfield.evaluation.testset.split import only
from cranfield.workbench.service.responses import StoredSource
from cranfield.workbench.service.values import SetInfo

if TYPE_CHECKING:
    from cranfield.model import TestSet
    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import EvaluationInfo


JUDGED = " (judged)"
SHARED = " (shared queries)"
Raters = Mapping[tuple[str, str], Collection[str]]
"""Query and document to names of raters."""


def own_name(name: str) -> str:
    """The test set that a version is of: without what its name says of the version."""
    return name.removesuffix(SHARED).removesuffix(JUDGED)


def stored_name(service: Service, name: str) -> str:
    """The name under which versions with the judgments of books are stored."""
    own = own_name(name)
    return own if service.testsets.config_key(own) is None else own + JUDGED


def newest(service: Service, name: str, withdrawn: Raters | None = None) -> TestSet:
    """The newest version of a test set, with all that was judged.

    Args:
        service: of the test set.
        name: of it, or of a version.
        withdrawn: judgments that raters took back: they are not in it, where they are these raters' alone.

    Raises:
        UnknownNameError: there is no such test set.
        InputError: a test set of the config cannot be read, with all its problems.
    """
    own, stored = own_name(name), stored_name(service, name)
    if own == stored:
        return _without(service.testsets.load(own), withdrawn or {})
    now = service.testsets.snapshot_of_config(own)
    files = service.testsets.load_id(now.id or 0)
    latest = service.testsets.latest(stored)
    if latest is None:
        return files
    judged = _without(service.testsets.load_id(latest.id or 0), withdrawn or {})
    then = next((each for each in service.testsets.versions(own) if (each.id or 0) < (latest.id or 0)), now)
    if then.id == now.id and not withdrawn:
        return judged
    return _moved_on(service.testsets.load_id(then.id or 0), files, judged)


def are_versions_of_one(baseline: EvaluationInfo, candidate: EvaluationInfo) -> bool:
    """Whether two evaluations are of different versions of one test set, and the judgments of neither move."""
    is_judged = baseline.book_id is not None or candidate.book_id is not None
    differ = baseline.testset_digest != candidate.testset_digest
    return differ and not is_judged and own_name(baseline.testset_name) == own_name(candidate.testset_name)


def baseline_for(service: Service, info: EvaluationInfo) -> EvaluationInfo | None:
    """The pinned evaluation of its test set, of any version; None where none is, or it is this one."""
    own = own_name(info.testset_name)
    names = dict.fromkeys((info.testset_name, own, own + JUDGED, own + SHARED))
    found = next(filter(None, map(service.evaluations.baseline, names)), None)
    return None if found is None or found.id == info.id else found


def newest_for(service: Service, infos: Sequence[EvaluationInfo], by: int | None) -> SetInfo:
    """The newest version of the test set of evaluations, as far as each was asked its queries.

    Raises:
        UsageError: there is none; `ChangedMeanwhileError`.
    """
    name = infos[0].testset_name
    latest = service.testsets.latest(stored_name(service, name)) or service.testsets.get(own_name(name))
    testset = newest(service, name)
    if testset.digest != latest.digest:  # of the config, whose files say something new
        latest = service.testsets.keep(
            stored_name(service, name), testset, source=StoredSource.BOOK, by=by, after=latest.id
        )
    return part_for(service, latest, infos, by)


def part_for(service: Service, version: SetInfo, infos: Sequence[EvaluationInfo], by: int | None) -> SetInfo:
    """The part of a version that evaluations can be scored on: the queries that each was asked, with the same text.

    Raises:
        UsageError: there is none.
    """
    testset = service.testsets.load_id(version.id or 0)
    lists = [service.testsets.load_id(info.testset_id).by_id for info in infos]
    shared = [
        query.id
        for query in testset.queries
        if all(query.id in each and each[query.id].text == query.text for each in lists)
    ]
    if not shared:
        which = " and ".join(f"#{info.id}" for info in infos)
        raise UsageError(
            f"no query of {shorten(version.ref)}, the newest version, was answered by {which}",
            hint="evaluate both systems on it",
        )
    if len(shared) == len(testset.queries):
        return version
    name = own_name(version.name) + SHARED  # a part loses a stored split
    return service.testsets.keep(name, only(testset, shared), source=StoredSource.BOOK, by=by)


def shares_queries(service: Service, infos: Sequence[EvaluationInfo]) -> bool:
    """Whether evaluations have a query in common: what `part_for` needs."""
    lists = [{(q.id, q.text) for q in service.testsets.load_id(info.testset_id).queries} for info in infos]
    return bool(set.intersection(*lists))


def _without(testset: TestSet, withdrawn: Raters) -> TestSet:
    """Without grades that only these raters gave."""
    grades = {query_id: dict(of_query) for query_id, of_query in testset.grades.items()}
    ratings = dict(testset.ratings)
    for (query_id, doc), raters in withdrawn.items():
        given = [rating for rating in ratings.get(query_id, ()) if rating.doc_id == doc]
        if given and all(rating.rater in raters for rating in given):
            grades[query_id][doc] = -1.0
            ratings[query_id] = tuple(rating for rating in ratings[query_id] if rating.doc_id != doc)
    return replace(testset, grades=grades, ratings={query_id: given for query_id, given in ratings.items() if given})


def _moved_on(then: TestSet, now: TestSet, judged: TestSet) -> TestSet:
    """What the files have now, with what books made of what they had then."""
    known = then.by_id.keys() | now.by_id.keys()
    queries = (*now.queries, *(query for query in judged.queries if query.id not in known))
    grades: dict[str, dict[str, float]] = {}
    ratings = dict(now.ratings)
    for query in queries:
        before, after, by_books = (each.grades.get(query.id, {}) for each in (then, now, judged))
        decided = {doc for doc, grade in by_books.items() if grade >= 0 and grade != before.get(doc)}
        found = {**by_books, **after, **{doc: by_books[doc] for doc in decided}}
        gone = {doc for doc in found if doc not in after and doc not in decided and before.get(doc, -1.0) >= 0}
        found = {doc: grade for doc, grade in found.items() if doc not in gone}
        if found or query.id in now.grades:
            grades[query.id] = found
        given = [rating for rating in judged.ratings.get(query.id, ()) if rating.doc_id in decided]
        others = [rating for rating in now.ratings.get(query.id, ()) if rating.doc_id not in decided]
        if given:
            ratings[query.id] = (*others, *given)
    converted = then.targets.keys() - judged.targets.keys()
    return replace(
        now,
        queries=queries,
        grades=grades,
        ratings=ratings,
        targets={query_id: targets for query_id, targets in now.targets.items() if query_id not in converted},
        consensus=judged.consensus,
        matching=judged.matching,
        version=judged.version,
        meta=replace(
            now.meta,
            scale=judged.meta.scale,
            judging=judged.meta.judging,
            history=judged.meta.history,
            previous=judged.digest,
        ),
    )
