"""What a test set holds, counted."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from cranfield.model import TestSet
from cranfield.model.query import negative_of
from cranfield.testsets.drawing import strata_keys, stratum
from cranfield.testsets.expected import judgments_of


@dataclass(frozen=True, slots=True)
class Spread:
    """Counts per query, summed up."""

    name: str
    total: int
    least: int
    middle: float
    """Median."""
    most: int


@dataclass(frozen=True, slots=True)
class Matrix:
    """How queries fall into two strata at once."""

    row_key: str
    column_key: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: Mapping[tuple[str, str], int]
    """Row and column value to queries; an empty value is "has none"."""


@dataclass(frozen=True)
class Statistics:
    """Everything that is counted."""

    testset: TestSet
    n_negative: int
    n_without_text: int
    spreads: tuple[Spread, ...]
    """Judgments, relevant ones, and each kind, per query."""
    grades: Mapping[str, Mapping[float, int]]
    """Kind to grade to judgments."""
    strata: Mapping[str, Mapping[str, int]]
    """Key to value to queries; keys as they are met, `class` last."""
    matrices: tuple[Matrix, ...]
    raters: Mapping[str, tuple[int, int]]
    """Rater to ratings given and slots left empty."""


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
        testset=testset,
        n_negative=sum(negative_of(query) is not None for query in testset.queries),
        n_without_text=sum(not query.text.strip() for query in testset.queries),
        spreads=tuple(_spread(name, per_query[name]) for name in sorted(per_query, key=_order)),
        grades={kind: dict(sorted(counts.items(), reverse=True)) for kind, counts in grades.items()},
        strata={key: _sizes(testset, key) for key in keys},
        matrices=tuple(_matrix(testset, item, other) for item, other in crossed),
        raters={rater: (counts[0], counts[1]) for rater, counts in sorted(raters.items())},
    )


def _order(name: str) -> tuple[int, str]:
    first = ("judgments", "relevant")
    return (first.index(name) if name in first else len(first), name)


def _spread(name: str, counts: Sequence[int]) -> Spread:
    return Spread(name, sum(counts), min(counts), float(median(counts)), max(counts))


def _sizes(testset: TestSet, key: str) -> dict[str, int]:
    return dict(sorted(Counter(stratum(query, key) for query in testset.queries).items()))


def _matrix(testset: TestSet, row_key: str, column_key: str) -> Matrix:
    counts = Counter((stratum(query, row_key), stratum(query, column_key)) for query in testset.queries)
    return Matrix(
        row_key,
        column_key,
        tuple(sorted({row for row, _ in counts})),
        tuple(sorted({column for _, column in counts})),
        dict(sorted(counts.items())),
    )
