"""The results of the systems that a pool is made of: per query each document once, best first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Any

from cranfield.base.errors import UsageError
from cranfield.base.words import and_list, count_noun
from cranfield.books.pool_file import Pool
from cranfield.evaluation.testset.edit import next_version, recorded
from cranfield.model import Criteria, Entity, File, Hit, Passage, Pattern, Predicate, Run, Span, Target, TestSet
from cranfield.model.judging import Label
from cranfield.model.results import Record, TestSetRecord
from cranfield.ranking.matching.place import ENTITY_MARK, place_of


@dataclass(frozen=True)
class SystemResults:
    """One run, under the name that it has in a pool."""

    name: str
    run: Run
    """With the results of each query best first."""
    given_digest: str = ""
    """Digest of the run as it was read; empty: that of `run`."""

    @cached_property
    def digest(self) -> str:
        """Digest of the run as it was read."""
        return self.given_digest or self.run.digest

    @cached_property
    def hits(self) -> Mapping[str, tuple[Hit, ...]]:
        """Query id to its results, best first, each document once, down to the depth of the run; none where it failed."""
        return {
            query_id: () if answer.outcome.is_failure else self._ranked(answer.hits)
            for query_id, answer in self.run.answers.items()
        }

    def _ranked(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        first: dict[str, Hit] = {}
        for hit in hits:
            first.setdefault(hit.id, hit)
        return tuple(first.values())[: self.run.depth]

    def top(self, query_id: str, depth: int) -> tuple[Hit, ...]:
        """The first results of a query, rank 1 first; none where the run does not answer it."""
        return self.hits.get(query_id, ())[:depth]


def with_names(systems: Iterable[tuple[str, str, Run, str]]) -> tuple[SystemResults, ...]:
    """Runs with a name of their own each.

    Args:
        systems: the name that the user gave, or an empty text; the name of the file; the run; its digest.

    Returns:
        The name given, else the name of the run, or of its file where two runs have one name.

    Raises:
        UsageError: two have one name all the same.
    """
    given = list(systems)
    names = [name or run.name for name, _, run, _ in given]
    if len(set(names)) < len(names):
        names = [name or file for name, file, _, _ in given]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(
            f"two runs are called {and_list(list(map(repr, twice)))}",
            expected="a different name for each run",
            hint="name them: NAME=FILE",
        )
    return tuple(
        SystemResults(name, replace(run, name=name), digest)
        for name, (_, _, run, digest) in zip(names, given, strict=True)
    )


@dataclass(slots=True)
class Candidate:
    """A document of a query that at least one system returned."""

    query_id: str
    doc_id: str
    ranks: dict[str, int] = field(default_factory=dict)
    """System to rank."""
    fields: dict[str, object] = field(default_factory=dict)
    """What the runs say of it; of two that differ the first run's."""
    judged: float | None = None
    """Grade of the test set; None where it has none, also where it names the document as pooled only (a grade under 0)."""

    prefilled: float | None = None
    """Grade of the rater `rule`; None where no pattern, span, entity or predicate of the test set matches."""

    @property
    def is_open(self) -> bool:
        """Whether a person is still to judge it."""
        return self.judged is None and self.prefilled is None

    @property
    def best(self) -> int:
        """Smallest rank."""
        return min(self.ranks.values())


def union(
    systems: Sequence[SystemResults],
    query_ids: Iterable[str],
    depth: int,
    grades: Mapping[str, Mapping[str, float]],
    prefilled: Mapping[tuple[str, str], float] | None = None,
) -> list[Candidate]:
    """Every document that a system returns down to a depth, by query, then by document id.

    Args:
        systems: at least one.
        query_ids: in the order of the pool.
        depth: 1 or more.
        grades: of the test set; under 0 is pooled, and not judged.
        prefilled: query and document to the grade of the rater `rule`.
    """
    found: list[Candidate] = []
    for query_id in query_ids:
        of_query: dict[str, Candidate] = {}
        for system in systems:
            for rank, hit in enumerate(system.top(query_id, depth), start=1):
                candidate = of_query.setdefault(hit.id, Candidate(query_id, hit.id))
                candidate.ranks[system.name] = rank
                candidate.fields = {**fields_of(hit), **candidate.fields}
        judged = grades.get(query_id, {})
        for doc_id in sorted(of_query):
            if judged.get(doc_id, -1) >= 0:
                of_query[doc_id].judged = judged[doc_id]
            of_query[doc_id].prefilled = (prefilled or {}).get((query_id, doc_id))
            found.append(of_query[doc_id])
    return found


def fields_of(hit: Hit) -> dict[str, object]:
    """What a result says of its document, as JSON can hold it."""
    named = {"title": hit.title, "span": hit.public_span}
    given = {name: value for name, value in named.items() if value is not None}
    return {_text(name): _plain(value) for name, value in {**given, **(hit.fields or {})}.items()}


def _plain(value: object) -> object:
    """A value that JSON files and databases can hold."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return {_text(str(key)): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _text(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def is_storable(name: str) -> bool:
    """Whether an id can be in a JSON file and in a database: bytes that are no UTF-8, and NUL, cannot."""
    return "\0" not in name and not any("\ud800" <= letter <= "\udfff" for letter in name)


def found_by(candidates: Iterable[Candidate], name: str, depth: int) -> list[Candidate]:
    """Those that a system returned down to a depth."""
    return [candidate for candidate in candidates if candidate.ranks.get(name, depth + 1) <= depth]


def only_by(candidates: Iterable[Candidate], name: str, depth: int) -> list[Candidate]:
    """Those that a system returned down to a depth, and no other system."""
    return [
        candidate
        for candidate in candidates
        if {system for system, rank in candidate.ranks.items() if rank <= depth} == {name}
    ]


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
    if any(isinstance(target, Pattern | Predicate | Criteria | Passage) for target in testset.targets[query_id]):
        return Pattern(f"^{re.escape(doc)}$", GRADE)
    place = place_of(Hit(doc), testset.matching)
    if ENTITY_MARK in place.entity:
        return Entity(place.entity, GRADE)
    return File(place.path, GRADE) if place.lines is None else Span(place.path, *place.lines, GRADE)
