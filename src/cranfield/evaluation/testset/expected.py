"""What queries of a test set expect, as plain rows and as a record: for reports, checks, counts and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from cranfield.model import (
    Criteria,
    Entity,
    File,
    Label,
    Meta,
    Passage,
    Pattern,
    Predicate,
    Query,
    Rating,
    Span,
    Target,
    TestSet,
)
from cranfield.model.results import Record, TestSetRecord
from cranfield.model.target import Legacy, Source
from cranfield.ranking.matching.place import ENTITY_MARK, parts_of, plain_entity


@dataclass(frozen=True, slots=True)
class ExpectedGrade:
    """One expected thing and its grade."""

    kind: str
    """`document`, or one of `KINDS`."""
    label: str
    grade: float


@dataclass(frozen=True, slots=True)
class JudgedQuery:
    """A query with everything that is known of it."""

    query: Query
    expected: tuple[ExpectedGrade, ...]
    files: tuple[str, ...]
    """Files to cover."""
    legacy: Legacy | None
    forbidden: tuple[str, ...]
    """Labels of what must not be found."""
    label: Label | None
    ratings: tuple[Rating, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries(Record):
    """Queries of a test set, and what is known of the set beside them."""

    testset: TestSetRecord
    queries: tuple[JudgedQuery, ...]
    description: str
    sources: tuple[Source, ...]
    meta: Meta


def queries_of(testset: TestSet, query_ids: Iterable[str] = ()) -> Queries:
    """The record of some queries, or of all."""
    return Queries(
        testset=TestSetRecord.of(testset),
        queries=tuple(
            JudgedQuery(
                query,
                tuple(judgments_of(testset, query.id)),
                testset.files.get(query.id, ()),
                testset.legacy.get(query.id),
                tuple(target.label for target in testset.forbidden.get(query.id, ())),
                testset.labels.get(query.id),
                testset.ratings.get(query.id, ()),
            )
            for query in [testset.by_id[query_id] for query_id in query_ids] or testset.queries
        ),
        description=testset.description,
        sources=testset.sources,
        meta=testset.meta,
    )


KINDS: Mapping[type, str] = {
    Pattern: "pattern",
    Span: "span",
    Entity: "entity",
    File: "file",
    Predicate: "predicate",
    Criteria: "criteria",
    Passage: "passage",
}
"""What a target is, in a word."""


def judgments_of(testset: TestSet, query_id: str) -> Iterator[ExpectedGrade]:
    """Everything judged for one query, in its order: graded documents and targets."""
    for doc_id, grade in testset.grades.get(query_id, {}).items():
        yield ExpectedGrade("document", doc_id, float(grade))
    for target in testset.targets.get(query_id, ()):
        yield ExpectedGrade(KINDS[type(target)], target.label, float(target.grade))


def is_relevant(testset: TestSet, query_id: str) -> bool:
    """Whether anything is judged relevant, with a grade above 0, to one query."""
    if any(grade > 0 for grade in testset.grades.get(query_id, {}).values()):
        return True
    return any(target.grade > 0 for target in testset.targets.get(query_id, ()))


def paths_of(targets: Iterable[Target]) -> Iterator[str]:
    """Files that targets lie in; patterns and predicates lie in none."""
    for target in targets:
        if isinstance(target, Span | File) or (isinstance(target, Passage) and target.path):
            yield target.path
        elif isinstance(target, Entity):
            yield target.id.partition("::")[0]


def plain_label(target: Target) -> str:
    """The label of a target, the same of all definitions of one entity."""
    return plain_entity(target.id) if isinstance(target, Entity) else target.label


def names_of(target: Target) -> tuple[str, ...]:
    """Identifiers that give a target away: `Index` and `add` of `src/index.py::Index.add`, else the stem of its file."""
    if isinstance(target, Entity) and ENTITY_MARK in target.id:
        return tuple(filter(None, parts_of(target.id)))
    return tuple(PurePosixPath(path).stem for path in paths_of([target]))
