"""Features of test sets, a row each: a format without one of them loses it, and the loss is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cranfield.base.words import count_noun
from cranfield.model import (
    Criteria,
    Entity,
    File,
    MatchingRules,
    Meta,
    Negative,
    Passage,
    Pattern,
    Predicate,
    Query,
    Rating,
    Span,
    Target,
    TestSet,
)


@dataclass(frozen=True, slots=True)
class FormatFeature:
    """One row."""

    name: str
    noun: str
    """What is lost, in the plural: `texts of queries`."""
    count: Callable[[TestSet], int]
    """How many of them a test set has."""
    without: Callable[[TestSet], TestSet]
    """The test set without them."""
    is_truth: bool = False
    """True where it is what is expected: a query that loses it is left out, and a file without any is not written."""


def is_judged(testset: TestSet, query: Query) -> bool:
    """Whether anything says what is expected for a query."""
    found = (testset.grades, testset.targets, testset.ratings)
    return query.negative is not None or any(by_query.get(query.id) for by_query in found)


def _with_queries(testset: TestSet, change: Callable[[Query], Query]) -> TestSet:
    return replace(testset, queries=tuple(map(change, testset.queries)))


def _with_targets(testset: TestSet, change: Callable[[Target], Target | None]) -> TestSet:
    """Each target changed, or left out."""
    changed = {
        query_id: tuple(kept for target in targets if (kept := change(target)) is not None)
        for query_id, targets in testset.targets.items()
    }
    return replace(testset, targets={query_id: targets for query_id, targets in changed.items() if targets})


def _target(name: str, noun: str, kind: type) -> FormatFeature:
    """A kind of target."""
    return FormatFeature(
        name,
        noun,
        lambda t: sum(isinstance(target, kind) for targets in t.targets.values() for target in targets),
        lambda t: _with_targets(t, lambda target: None if isinstance(target, kind) else target),
        is_truth=True,
    )


def _grade(name: str, noun: str, wanted: Callable[[float], bool]) -> FormatFeature:
    """Judgments, by id or by rule, whose grade is so."""
    return FormatFeature(
        name, noun, lambda t: _count_grades(t, wanted), lambda t: only_grades(t, lambda g: not wanted(g))
    )


def _count_grades(testset: TestSet, wanted: Callable[[float], bool]) -> int:
    by_id = sum(wanted(grade) for judged in testset.grades.values() for grade in judged.values())
    return by_id + sum(wanted(target.grade) for targets in testset.targets.values() for target in targets)


def only_grades(testset: TestSet, keep: Callable[[float], bool]) -> TestSet:
    """The test set without the judgments and targets of other grades."""
    judged = {
        query_id: {doc_id: grade for doc_id, grade in grades.items() if keep(grade)}
        for query_id, grades in testset.grades.items()
    }
    groups = {
        query_id: tuple(judgment for judgment in found if judgment.doc_id in judged.get(query_id, {}))
        for query_id, found in testset.groups.items()
    }
    kept = replace(
        testset,
        grades={query_id: grades for query_id, grades in judged.items() if grades},
        groups={query_id: found for query_id, found in groups.items() if found},
    )
    return _with_targets(kept, lambda target: target if keep(target.grade) else None)


def _of_query(name: str, noun: str, count: Callable[[Query], int], **plain: Any) -> FormatFeature:
    """Something that queries have; `plain` is what they have without."""
    return FormatFeature(
        name,
        noun,
        lambda t: sum(count(query) for query in t.queries),
        lambda t: _with_queries(t, lambda query: replace(query, **plain)),
    )


def _of_set(name: str, noun: str, count: Callable[[TestSet], int], **plain: Any) -> FormatFeature:
    """Something that the set has."""
    return FormatFeature(name, noun, count, lambda t: replace(t, **plain))


def _is_level(grade: float) -> bool:
    return grade not in {0, 1}


def _flat(testset: TestSet) -> TestSet:
    """Every grade over 0 as 1."""
    grades = {q: {d: _unsigned(grade) for d, grade in judged.items()} for q, judged in testset.grades.items()}
    return _with_targets(replace(testset, grades=grades), lambda target: replace(target, grade=_unsigned(target.grade)))


def _unsigned(grade: float) -> float:
    return 1.0 if grade > 0 else grade


def _is_credited(target: Target) -> bool:
    return isinstance(target, Pattern) and (target.credit != "once" or target.expected_count is not None)


def _with_ratings(testset: TestSet, change: Callable[[Rating], Rating]) -> TestSet:
    ratings = {query_id: tuple(map(change, given)) for query_id, given in testset.ratings.items()}
    return replace(testset, ratings=ratings)


def _outvoted(testset: TestSet) -> dict[str, list[Rating]]:
    """Query id to the ratings of documents that have an adjudicated grade."""
    final = {q: {rating.doc_id for rating in given if rating.final} for q, given in testset.ratings.items()}
    return {
        query_id: [rating for rating in testset.ratings[query_id] if rating.doc_id in documents and not rating.final]
        for query_id, documents in final.items()
        if documents
    }


def _without_outvoted(testset: TestSet) -> TestSet:
    """The adjudicated grade as the only rating of its document."""
    gone = _outvoted(testset)
    kept = {q: tuple(r for r in given if r not in gone.get(q, ())) for q, given in testset.ratings.items()}
    return _with_ratings(replace(testset, ratings=kept), lambda rating: replace(rating, final=False))


def _once(target: Target) -> Target:
    return Pattern(target.regex, target.grade) if isinstance(target, Pattern) else target


FEATURES: Mapping[str, FormatFeature] = {
    feature.name: feature
    for feature in (
        FormatFeature(
            "grades",
            "graded document ids",
            lambda t: sum(map(len, t.grades.values())),
            lambda t: replace(t, grades={}, groups={}, grouping=None),
            is_truth=True,
        ),
        _target("patterns", "patterns", Pattern),
        _target("spans", "spans of lines", Span),
        _target("entities", "entities", Entity),
        _target("file targets", "expected files", File),
        _target("predicates", "queries to a database", Predicate),
        _target("criteria", "conditions on fields of results", Criteria),
        _target("passages", "passages of text", Passage),
        FormatFeature(
            "negative",
            "negative queries",
            lambda t: sum(query.negative is not None for query in t.queries),
            lambda t: _with_queries(t, lambda query: replace(query, negative=None)),
            is_truth=True,
        ),
        _of_set("ratings", "ratings by rater", lambda t: sum(map(len, t.ratings.values())), ratings={}, consensus=""),
        FormatFeature(
            "adjudicated",
            "ratings of documents with an adjudicated grade, which replaces them",
            lambda t: sum(map(len, _outvoted(t).values())),
            _without_outvoted,
        ),
        FormatFeature(
            "reasons",
            "reasons of ratings",
            lambda t: sum(bool(rating.reason) for given in t.ratings.values() for rating in given),
            lambda t: _with_ratings(t, lambda rating: replace(rating, reason="")),
        ),
        FormatFeature(
            "times",
            "times of ratings",
            lambda t: sum(rating.at is not None for given in t.ratings.values() for rating in given),
            lambda t: _with_ratings(t, lambda rating: replace(rating, at=None)),
        ),
        _grade("fractions", "grades with fractions", lambda grade: grade != int(grade)),
        _grade("unjudged", "grades under 0 (pooled, not judged)", lambda grade: grade < 0),
        _grade("zeros", "grades of 0 (judged, not relevant)", lambda grade: grade == 0),
        FormatFeature(
            "barren",
            "unjudged queries",
            lambda t: sum(not is_judged(t, query) for query in t.queries),
            lambda t: replace(t, queries=tuple(query for query in t.queries if is_judged(t, query))),
        ),
        FormatFeature("levels", "grades other than 0 and 1", lambda t: _count_grades(t, _is_level), _flat),
        FormatFeature(
            "credit",
            "patterns with credit for every match, or a count",
            lambda t: sum(_is_credited(target) for targets in t.targets.values() for target in targets),
            lambda t: _with_targets(t, _once),
        ),
        FormatFeature(
            "bounds",
            "confidence bounds of negative queries",
            lambda t: sum(query.negative is not None and query.negative != Negative() for query in t.queries),
            lambda t: _with_queries(t, lambda query: replace(query, negative=query.negative and Negative())),
        ),
        FormatFeature(
            "entity lines",
            "line ranges of entities",
            lambda t: sum(len(e.lines) for targets in t.targets.values() for e in targets if isinstance(e, Entity)),
            lambda t: _with_targets(t, lambda e: replace(e, lines=()) if isinstance(e, Entity) else e),
        ),
        _of_query("texts", "texts of queries", lambda query: bool(query.text), text=""),
        _of_query("need", "information needs of queries", lambda query: bool(query.need), need=""),
        _of_query("notes", "notes on queries", lambda query: bool(query.notes), notes=""),
        _of_query("strata", "strata", lambda query: len(query.strata), strata={}),
        _of_query("params", "parameters of queries", lambda query: len(query.params), params={}),
        _of_query("weights", "weights of queries", lambda query: query.weight != 1, weight=1.0),
        _of_query("classes", "query classes", lambda query: bool(query.query_class), query_class=""),
        _of_set("files", "files to cover", lambda t: sum(map(len, t.files.values())), files={}),
        _of_query(
            "exhaustive", "statements that judgments are complete", lambda query: query.exhaustive, exhaustive=False
        ),
        _of_query("floors", "floors of single queries", lambda query: len(query.floors), floors={}),
        _of_set("legacy", "legacy forms", lambda t: len(t.legacy), legacy={}),
        _of_set("forbidden", "forbidden results", lambda t: sum(map(len, t.forbidden.values())), forbidden={}),
        _of_set("labels", "labels of queries", lambda t: len(t.labels), labels={}),
        _of_set("sources", "sources by authority", lambda t: len(t.sources), sources=()),
        _of_set(
            "matching", "rules of matching", lambda t: int(t.matching != MatchingRules()), matching=MatchingRules()
        ),
        _of_set("databases", "databases", lambda t: len(t.databases), databases={}),
        _of_set("groups", "judgments by group", lambda t: sum(map(len, t.groups.values())), groups={}, grouping=None),
        _of_set("name", "names of the set", lambda t: int(bool(t.name))),
        _of_set("version", "versions of the set", lambda t: int(bool(t.version)), version=""),
        _of_set("description", "descriptions of the set", lambda t: int(bool(t.description)), description=""),
        _of_set(
            "meta",
            "facts about the set (review, anchors, history)",
            lambda t: int(t.meta != Meta()),
            meta=Meta(),
        ),
    )
}
"""Name to row, in the order in which losses are reported: what is expected, then the queries it leaves bare, then the rest."""

QUIET = frozenset({"name"})
"""Not worth a sentence: without it a set goes by the name of its file."""


def losses(testset: TestSet, holds: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each thing a test set has that a format cannot hold."""
    kept = set(holds) | QUIET
    lost = ((feature, feature.count(testset)) for name, feature in FEATURES.items() if name not in kept)
    return tuple(f"not carried over: {count_noun(n, feature.noun)}" for feature, n in lost if n)
