"""A frozen book put onto the test set that its pool was made for: the next version of that set."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

from cranfield.errors import Problem, UsageError, shorten
from cranfield.model import Rating, TestSet
from cranfield.model.note import info
from cranfield.testsets.edit import next_version, recorded


def put_onto(old: TestSet, frozen: TestSet, today: date) -> TestSet:
    """The old test set with the judgments of a frozen book.

    A document that the book gives a grade has that one, with its ratings. What only the old set judges stays, also where the
    book has the document pooled and unjudged.

    Args:
        old: the set as its file has it.
        frozen: what `freeze` made.
        today: the date of the version.

    Raises:
        UsageError: a query of both whose truth is a rule, or ratings that became grades by another rule.
    """
    problems = _problems(old, frozen)
    if problems:
        raise UsageError(problems)
    grades, ratings = _judgments(old, frozen)
    known = set(old.query_ids)
    judging = frozen.meta.judging
    stale = judging is not None and judging.pool is not None and judging.pool.testset not in {"", old.digest}
    merged = replace(
        old,
        queries=(*old.queries, *(query for query in frozen.queries if query.id not in known)),
        grades=grades,
        ratings=ratings,
        consensus=frozen.consensus,
        version=next_version(old.version, today),
        meta=replace(old.meta, scale=old.meta.scale or frozen.meta.scale, judging=judging, previous=old.digest),
        notes=info(*(["the pool of the book was made for another version of the test set"] if stale else [])),
    )
    return recorded(merged, frozen.meta.history[-1].partition(": ")[2], today)


def _problems(old: TestSet, frozen: TestSet) -> list[Problem]:
    problems: list[Problem] = []
    with_targets = [query_id for query_id in frozen.query_ids if old.targets.get(query_id)]
    if with_targets:
        more = f" and {len(with_targets) - 1} more" if len(with_targets) > 1 else ""
        problems.append(
            Problem(
                f"query {shorten(with_targets[0])}{more}: has targets, and graded documents cannot stand beside them",
                hint="without a set to put it onto, the book becomes a test set of its own, "
                "with the grades that the targets gave its documents",
            )
        )
    if any(old.ratings.values()) and old.consensus != frozen.consensus:
        problems.append(
            Problem(
                f"the ratings of {old.name!r} became grades by {old.consensus or 'no rule that is named'}",
                got=frozen.consensus,
                hint=f"{{rule={old.consensus}}}" if old.consensus else None,
                parameters=("rule",),
            )
        )
    return problems


def _judgments(old: TestSet, frozen: TestSet) -> tuple[dict[str, dict[str, float]], dict[str, tuple[Rating, ...]]]:
    """Grades and ratings of both; those of the book where it has a grade."""
    grades = {query_id: dict(judged) for query_id, judged in old.grades.items()}
    ratings = dict(old.ratings)
    for query_id, judged in frozen.grades.items():
        here = grades.setdefault(query_id, {})
        new = {doc_id for doc_id, grade in judged.items() if grade >= 0 or here.get(doc_id, -1.0) < 0}
        here |= {doc_id: judged[doc_id] for doc_id in judged if doc_id in new}
        given = [rating for rating in frozen.ratings.get(query_id, ()) if rating.doc_id in new]
        kept = [rating for rating in ratings.get(query_id, ()) if rating.doc_id not in {r.doc_id for r in given}]
        if kept or given:
            ratings[query_id] = (*kept, *given)
    return grades, ratings
