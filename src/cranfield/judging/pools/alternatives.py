"""Alternatives: results of queries that a system seems to miss, which may answer all the same.

A set over code names one place of an answer, and the same may stand in another. Of a query without a relevant result down to
the depth of the pool, a person grades the first results; those that answer become targets of grade 1. The set keeps which
system found each, because a score with them favours that system: report it with and without them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from cranfield.base.errors import UsageError
from cranfield.base.words import count_noun
from cranfield.books.pool_file import Pool
from cranfield.evaluation.testset.edit import next_version, recorded
from cranfield.judging.pools.results import Candidate
from cranfield.model import Entity, File, Hit, Pattern, Predicate, Span, Target, TestSet
from cranfield.model.label import Label
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking.matching.place import ENTITY_MARK, place_of

GRADE = 1.0
KEY = "alternatives"
"""Key in the provenance of a label."""
Grades = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Alternative:
    """A result that was accepted."""

    query_id: str
    label: str
    """Label of the target, or the id of the document."""
    found_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BothScores:
    """The mean of a measure for a run."""

    run: str
    measure: str
    without: float | None
    with_them: float | None
    change: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithAndWithout(Record):
    """Scores on both forms of a test set."""

    testset: TestSetRecord
    alternatives: tuple[Alternative, ...]
    scores: tuple[BothScores, ...]


def missed(candidates: list[Candidate]) -> set[tuple[str, str]]:
    """Query and system, of those that return something and nothing relevant."""
    found = {(each.query_id, name): False for each in candidates for name in each.ranks}
    for each in candidates:
        if max(each.judged or 0.0, each.prefilled or 0.0) > 0:
            found |= {(each.query_id, name): True for name in each.ranks}
    return {key for key, is_found in found.items() if not is_found}


def with_alternatives(testset: TestSet, pool: Pool, grades: Grades, today: date) -> TestSet:
    """The set with the results of a pool that persons graded as relevant, as targets or documents of grade 1.

    Args:
        testset: that the pool was made for.
        pool: of `--preset alternatives`.
        grades: of persons: query id to document to grade.
        today: the date of the version.

    Raises:
        UsageError: the pool is of another test set, or nothing of it was graded as relevant.
    """
    if pool.testset_digest != testset.digest:
        raise UsageError("the pool was created for another version of the test set", expected=pool.testset_digest)
    targets, judged, labels = dict(testset.targets), dict(testset.grades), dict(testset.labels)
    accepted = [item for item in pool.items if item.is_open and grades.get(item.query, {}).get(item.doc, 0.0) > 0]
    if not accepted:
        raise UsageError("no result of the pool was graded above 0 by a person")
    for item in accepted:
        label = item.doc
        if item.query in targets:
            target = _target(testset, item.query, item.doc)
            targets[item.query], label = (*targets[item.query], target), target.label
        else:
            judged[item.query] = {**judged.get(item.query, {}), item.doc: GRADE}
        before = labels.get(item.query, Label())
        entry = {"target": label, "found_by": sorted(item.runs), "accepted": today.isoformat()}
        provenance = {**before.provenance, KEY: [*_entries(before), entry]}
        labels[item.query] = replace(before, provenance=provenance)
    changed = replace(
        testset,
        targets=targets,
        grades=judged,
        labels=labels,
        version=next_version(testset.version, today),
        meta=replace(testset.meta, previous=testset.digest),
    )
    names = sorted({name for item in accepted for name in item.runs})
    return recorded(
        changed, f"{count_noun(len(accepted), 'alternatives')} of grade 1, found by {', '.join(names)}", today
    )


def alternatives_of(testset: TestSet) -> tuple[Alternative, ...]:
    """The alternatives of a set, by its provenance."""
    return tuple(
        Alternative(query_id, str(entry.get("target")), tuple(map(str, entry.get("found_by", ()))))
        for query_id, label in testset.labels.items()
        for entry in _entries(label)
    )


def without_alternatives(testset: TestSet) -> TestSet:
    """The set as it was without them."""
    taken = {(each.query_id, each.label) for each in alternatives_of(testset)}
    targets = {
        query_id: tuple(target for target in given if (query_id, target.label) not in taken)
        for query_id, given in testset.targets.items()
    }
    grades = {
        query_id: {doc: grade for doc, grade in given.items() if (query_id, doc) not in taken}
        for query_id, given in testset.grades.items()
    }
    return replace(testset, targets=targets, grades=grades)


def _entries(label: Label) -> list[Mapping[str, Any]]:
    found = label.provenance.get(KEY, [])
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list | tuple) else []


def _target(testset: TestSet, query_id: str, doc: str) -> Target:
    """A result as a target of the kind that the query has."""
    if any(isinstance(target, Pattern | Predicate) for target in testset.targets[query_id]):
        return Pattern(f"^{re.escape(doc)}$", GRADE)
    place = place_of(Hit(doc), testset.matching)
    if ENTITY_MARK in place.entity:
        return Entity(place.entity, GRADE)
    return File(place.path, GRADE) if place.lines is None else Span(place.path, *place.lines, GRADE)
