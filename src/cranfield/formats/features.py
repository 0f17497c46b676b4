"""What a test set may say, one row each: so that a format that cannot hold it says what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cranfield.model import Entity, File, MatchingRules, Pattern, Predicate, Span, TestSet


@dataclass(frozen=True, slots=True)
class Feature:
    """One row."""

    name: str
    noun: str
    """What is lost, in the plural: `texts of queries`."""
    count: Callable[[TestSet], int]
    """How many of them a test set has."""
    is_truth: bool = False
    """True where it is what is expected: a query that loses it is left out, and a file without any is not written."""


def _targets(kind: type) -> Callable[[TestSet], int]:
    return lambda testset: sum(isinstance(t, kind) for targets in testset.targets.values() for t in targets)


def _grades(testset: TestSet, wanted: Callable[[float], bool]) -> int:
    return sum(wanted(grade) for judged in testset.grades.values() for grade in judged.values())


FEATURES: Mapping[str, Feature] = {
    feature.name: feature
    for feature in (
        Feature("grades", "graded document ids", lambda t: sum(map(len, t.grades.values())), is_truth=True),
        Feature("patterns", "patterns", _targets(Pattern), is_truth=True),
        Feature("spans", "spans of lines", _targets(Span), is_truth=True),
        Feature("entities", "entities", _targets(Entity), is_truth=True),
        Feature("file targets", "files as answers", _targets(File), is_truth=True),
        Feature("predicates", "queries to a database", _targets(Predicate), is_truth=True),
        Feature(
            "negative", "negative queries", lambda t: sum(q.negative is not None for q in t.queries), is_truth=True
        ),
        Feature(
            "barren",
            "queries nobody judged",
            lambda t: sum(not t.grades.get(q.id) and not t.targets.get(q.id) and q.negative is None for q in t.queries),
        ),
        Feature("fractions", "grades that are no whole numbers", lambda t: _grades(t, lambda g: g != int(g))),
        Feature("unjudged", "grades under 0 (pooled, not judged)", lambda t: _grades(t, lambda g: g < 0)),
        Feature("zeros", "grades of 0 (judged, not relevant)", lambda t: _grades(t, lambda g: g == 0)),
        Feature("texts", "texts of queries", lambda t: sum(bool(q.text) for q in t.queries)),
        Feature("strata", "strata", lambda t: sum(len(q.strata) for q in t.queries)),
        Feature("params", "parameters of queries", lambda t: sum(len(q.params) for q in t.queries)),
        Feature("weights", "weights of queries", lambda t: sum(q.weight != 1 for q in t.queries)),
        Feature("classes", "query classes", lambda t: sum(bool(q.query_class) for q in t.queries)),
        Feature("files", "files to cover", lambda t: sum(map(len, t.files.values()))),
        Feature("legacy", "legacy forms", lambda t: len(t.legacy)),
        Feature("sources", "sources by authority", lambda t: len(t.sources)),
        Feature("matching", "rules of matching", lambda t: int(t.matching != MatchingRules())),
        Feature("databases", "databases", lambda t: len(t.databases)),
        Feature("ratings", "ratings by rater", lambda t: sum(map(len, t.ratings.values()))),
        Feature("groups", "judgments by group", lambda t: sum(map(len, t.groups.values()))),
        Feature("name", "names of the set", lambda t: int(bool(t.name))),
        Feature("version", "versions of the set", lambda t: int(bool(t.version))),
        Feature("description", "descriptions of the set", lambda t: int(bool(t.description))),
        Feature("meta", "facts about the set (review, anchors, history)", lambda t: int(t.meta != type(t.meta)())),
    )
}
"""Name to row, in the order losses are told."""

QUIET = frozenset({"name", "zeros", "matching", "databases"})
"""Not worth a sentence when lost alone."""


def losses(testset: TestSet, holds: Iterable[str]) -> tuple[str, ...]:
    """A sentence for each thing a test set has that a format cannot hold."""
    held = set(holds) | QUIET
    lost = ((feature, feature.count(testset)) for name, feature in FEATURES.items() if name not in held)
    return tuple(f"not carried over: {n} {feature.noun}" for feature, n in lost if n)
