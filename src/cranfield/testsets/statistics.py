"""What a test set holds, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from cranfield.evaluation.testset.expected import judgments_of
from cranfield.evaluation.testset.split import strata_keys, stratum
from cranfield.model import Meta, TestSet
from cranfield.model.query import negative_of
from cranfield.model.results import Record, TestSetRecord
from cranfield.model.target import Source


@dataclass(frozen=True, slots=True)
class Spread:
    """Counts per query, summed up."""

    name: str
    total: int
    least: int
    median: float
    most: int


@dataclass(frozen=True, slots=True)
class GradeCount:
    """Judgments of one kind and grade."""

    kind: str
    grade: float
    n: int


@dataclass(frozen=True, slots=True)
class StratumCount:
    """Queries that have one value of a stratum; empty: they have none."""

    stratum: str
    value: str
    n: int


@dataclass(frozen=True, slots=True)
class RaterCount:
    """Ratings that a rater gave, and slots left empty."""

    rater: str
    ratings: int
    empty: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """How queries fall into two strata at once."""

    row_key: str
    column_key: str
    rows: tuple[str, ...]
    """Values of the first stratum; an empty value is "has none"."""
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """Queries by row and column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics(Record):
    """Everything that is counted."""

    testset: TestSetRecord
    n_negative: int
    n_without_text: int
    consensus: str
    """Rule that made the grades of ratings."""
    spreads: tuple[Spread, ...]
    """Judgments, relevant ones, and each kind, per query."""
    grades: tuple[GradeCount, ...]
    strata: tuple[StratumCount, ...]
    """Strata as they are met, `class` last."""
    matrices: tuple[Matrix, ...]
    raters: tuple[RaterCount, ...]
    description: str
    sources: tuple[Source, ...]
    meta: Meta


def statistics(testset: TestSet, pairs: Sequence[tuple[str, str]] | None = None) -> Statistics:
    """Count what a test set holds.

    Args:
        testset: of any kind.
        pairs: strata that are crossed; None: every two that group queries.
    """
    keys = strata_keys(testset)
    n = len(testset.queries)
    per_query: defaultdict[str, list[int]] = defaultdict(lambda: [0] * n)
    grades: defaultdict[str, Counter[float]] = defaultdict(Counter)
    for place, query in enumerate(testset.queries):
        for judgment in judgments_of(testset, query.id):
            per_query["judgments"][place] += 1
            per_query["relevant"][place] += judgment.grade > 0
            per_query[judgment.kind][place] += 1
            grades[judgment.kind][judgment.grade] += 1
    raters: dict[str, list[int]] = {}
    for ratings in testset.ratings.values():
        for rating in ratings:
            raters.setdefault(rating.rater, [0, 0])[rating.grade is None] += 1
    crossed = list(combinations(keys, 2)) if pairs is None else pairs
    return Statistics(
        testset=TestSetRecord.of(testset),
        n_negative=sum(negative_of(query) is not None for query in testset.queries),
        n_without_text=sum(not query.text.strip() for query in testset.queries),
        consensus=testset.consensus,
        spreads=tuple(_spread(name, per_query[name]) for name in sorted(per_query, key=_order)),
        grades=tuple(
            GradeCount(kind, float(grade), n)
            for kind, counts in grades.items()
            for grade, n in sorted(counts.items(), reverse=True)
        ),
        strata=tuple(
            StratumCount(key, value, n)
            for key in keys
            for value, n in sorted(Counter(stratum(query, key) for query in testset.queries).items())
        ),
        matrices=tuple(_matrix(testset, item, other) for item, other in crossed),
        raters=tuple(RaterCount(rater, *counts) for rater, counts in sorted(raters.items())),
        description=testset.description,
        sources=testset.sources,
        meta=testset.meta,
    )


def _order(name: str) -> tuple[int, str]:
    first = ("judgments", "relevant")
    return (first.index(name) if name in first else len(first), name)


def _spread(name: str, counts: Sequence[int]) -> Spread:
    return Spread(name, sum(counts), min(counts), float(median(counts)), max(counts))


def _matrix(testset: TestSet, row_key: str, column_key: str) -> Matrix:
    counts = Counter((stratum(query, row_key), stratum(query, column_key)) for query in testset.queries)
    rows = tuple(sorted({row for row, _ in counts}))
    columns = tuple(sorted({column for _, column in counts}))
    return Matrix(row_key, column_key, rows, columns, tuple(tuple(counts[row, c] for c in columns) for row in rows))
