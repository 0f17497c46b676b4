"""What is declared before a comparison is made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from cranfield.errors import Problem, UnknownNameError, UsageError
from cranfield.evaluation.values import Limits
from cranfield.measures.measure import Measure
from cranfield.stats.table import DEFAULT_DRAWS, MEAN_DIFFERENCE, TESTS

DEFAULT_TEST = "permutation"
SMALLEST_ALPHA = 1e-12
"""Below this, 1 - alpha loses its digits."""


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """What is declared before the numbers are seen."""

    primary: Measure | None = None
    """Measure of the verdict; None is the first measure of the evaluations."""
    test: str = DEFAULT_TEST
    """Procedure of the verdict and its interval: a name of `cranfield.stats.table.TESTS`."""
    alpha: float = 0.05
    """Significance level."""
    margin: float | None = None
    """Largest difference that does not matter; without one nothing is called equivalent."""
    seed: int = 0
    n_draws: int = DEFAULT_DRAWS
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        declarable = [name for name, spec in TESTS.items() if spec.can_declare]
        if self.test not in TESTS:
            raise UnknownNameError.among("test", self.test, declarable)
        problems = []
        if self.test not in declarable:
            expected = f"one of {', '.join(declarable)}"
            problems.append(Problem(f"test {self.test} gives no interval to decide by", expected=expected))
        if not SMALLEST_ALPHA <= self.alpha < 1:
            problems.append(Problem(f"alpha is {self.alpha:g}", expected="a number between 0 and 1, such as 0.05"))
        if self.margin is not None and not 0 < self.margin < math.inf:
            problems.append(Problem(f"margin is {self.margin:g}", expected="a number above 0, in units of the measure"))
        estimates = TESTS[self.test].estimates
        if self.margin is not None and estimates not in {"", MEAN_DIFFERENCE}:
            problems.append(
                Problem(
                    f"a margin is about the mean difference, and test {self.test} about the {estimates}",
                    hint="choose permutation, t or bootstrap, or leave the margin out",
                )
            )
        if self.seed < 0:
            problems.append(Problem(f"seed is {self.seed}", expected="a whole number of 0 or more"))
        if problems:
            raise UsageError(problems)
