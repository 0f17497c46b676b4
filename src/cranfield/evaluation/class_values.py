"""Values of a verdict by class: a row for each class, the test over all queries, and the verdict of the mean."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from cranfield.evaluation.unseen import Unseen
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.stats.result import TestResult
from cranfield.stats.vectors import TOLERANCE

WITHOUT = ""
"""Label of the queries that have no class."""
CHANGED = (VerdictCode.BETTER, VerdictCode.WORSE)

Move = Literal["rises", "falls", "level"]


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class of queries, with its verdict."""

    label: str
    """Name of the class, or value of the stratum; empty for the queries without one."""
    measure: Measure
    """That decides within the class."""
    test: str
    query_ids: tuple[str, ...]
    """That have a value on both sides."""
    n_nonzero: int
    baseline: float | None
    candidate: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    """Of the mean difference, or of what the test estimates; not adjusted for the number of classes."""
    result: TestResult | None
    """None where no query has a pair; its `p_adjusted` is None where the class cannot decide."""
    code: VerdictCode = VerdictCode.NOT_SIGNIFICANT
    too_few: str = ""
    """Why the test cannot be significant, if so."""
    estimate: float | None = None
    """What the interval is about, where that is not the mean difference: the Hodges-Lehmann estimate, the median."""
    unseen: Unseen | None = None
    """Queries of a kind that is not among these, and what would turn the verdict of the class; None from 50 queries on, and
    where the class cannot decide."""
    n: int = field(init=False, default=0)
    """Queries with a value on both sides."""
    can_decide: bool = field(init=False, default=False)
    """Whether the class counts in the family of tests."""
    move: Move = field(init=False, default="level")
    """Where the difference moves, in favour of the candidate or against it, significant or not."""

    def __post_init__(self) -> None:
        gain = (self.shown or 0.0) * (1 if CATALOGUE[self.measure.name].higher_is_better else -1)
        derived = {
            "n": len(self.query_ids),
            "can_decide": self.result is not None and self.result.p_adjusted is not None,
            "move": "rises" if gain > TOLERANCE else "falls" if gain < -TOLERANCE else "level",
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """The label, or `queries without a class`."""
        return self.label or "queries without a class"

    @property
    def shown(self) -> float | None:
        """The estimate that the interval is about, else the mean difference."""
        return self.delta if self.estimate is None else self.estimate


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """The verdicts of all classes, the test over all queries, and the verdict of the mean."""

    key: str
    """`class`, or the key of the strata."""
    rows: tuple[ClassRow, ...]
    overall: TestResult
    """The declared test on the primary measure, over all queries, with the classes as strata."""
    pooled: VerdictCode
    """The verdict of the mean over all queries."""
    n_tested: int = field(init=False, default=0)
    """Classes in the family of Holm's adjustment."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_tested", sum(row.can_decide for row in self.rows))

    def with_code(self, code: VerdictCode) -> tuple[ClassRow, ...]:
        """The classes with this verdict."""
        return tuple(row for row in self.rows if row.code is code)

    @property
    def falling(self) -> tuple[ClassRow, ...]:
        """Classes with a lower mean of the candidate that is not significant."""
        return tuple(row for row in self.rows if row.move == "falls" and row.code is not VerdictCode.WORSE)
