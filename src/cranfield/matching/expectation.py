"""What one query expects, and which expected item a result id is.

Calls nothing above it: the ranking asks `Expectation.matches` for each result and applies the credit rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cranfield.model import Convention, Pattern, TestSet

NO_MATCH: tuple[int, ...] = ()
HIGHEST_LEVEL = 2**31 - 1
"""A grade beyond it, either way, has this level: no `rel=` asks for more."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected items of one query, best first, and the function that recognises them."""

    grades: tuple[float, ...]
    """One per item, descending. Under 0: pooled, not judged."""
    gains: tuple[float, ...]
    """What a match of each item is worth under the convention; never under 0."""
    labels: tuple[str, ...]
    """What to call each item in a report: the document id, or the pattern."""
    counts: tuple[int | None, ...]
    """Documents each item stands for; None where nobody said."""
    repeatable: tuple[bool, ...]
    """True where every match is paid, not only the first."""
    closed_world: bool
    """True when what matches nothing is known not to be relevant."""
    matches: Callable[[str], Sequence[int]]
    """Result id to the items it matches, best first."""

    @property
    def levels(self) -> tuple[int, ...]:
        """Whole-number grades (rounded down), for measures that ask `rel=`."""
        return tuple(max(-HIGHEST_LEVEL, min(math.floor(grade), HIGHEST_LEVEL)) for grade in self.grades)


def expect(testset: TestSet, query_id: str, convention: Convention) -> Expectation:
    """Build the expectation of one query from its graded ids or its patterns."""
    patterns = testset.patterns.get(query_id, ())
    if patterns:
        return _from_patterns(patterns, convention)
    graded = sorted(testset.grades.get(query_id, {}).items(), key=lambda item: -item[1])
    positions = {doc_id: (index,) for index, (doc_id, _) in enumerate(graded)}
    grades = tuple(float(grade) for _, grade in graded)
    return Expectation(
        grades=grades,
        gains=_gains(grades, convention),
        labels=tuple(doc_id for doc_id, _ in graded),
        counts=(1,) * len(graded),
        repeatable=(False,) * len(graded),
        closed_world=False,
        matches=lambda doc_id: positions.get(doc_id, NO_MATCH),
    )


def _from_patterns(patterns: Sequence[Pattern], convention: Convention) -> Expectation:
    ordered = sorted(patterns, key=lambda pattern: -pattern.grade)
    compiled = [re.compile(pattern.regex) for pattern in ordered]
    every = convention.credit == "every"
    grades = tuple(float(pattern.grade) for pattern in ordered)
    return Expectation(
        grades=grades,
        gains=_gains(grades, convention),
        labels=tuple(pattern.regex for pattern in ordered),
        counts=tuple(pattern.expected_count if every else pattern.count for pattern in ordered),
        repeatable=tuple(every or pattern.credit == "every" for pattern in ordered),
        closed_world=True,
        matches=lambda doc_id: [index for index, regex in enumerate(compiled) if regex.search(doc_id)],
    )


def _gains(grades: Sequence[float], convention: Convention) -> tuple[float, ...]:
    if convention.gain == "match":
        return tuple(1.0 if grade > 0 else 0.0 for grade in grades)
    return tuple(max(grade, 0.0) for grade in grades)
