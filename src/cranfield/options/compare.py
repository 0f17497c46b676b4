"""Options of a comparison: what is declared before the numbers are seen."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from annotated_types import Ge, Gt, Interval

from cranfield.errors import Problem
from cranfield.options.declaration import Option, check
from cranfield.options.limits import Limits
from cranfield.stats.table import ADJUSTMENTS, DEFAULT_DRAWS, MEAN_DIFFERENCE, TESTS, adjustment_for

SMALLEST_ALPHA = 1e-12
"""Below this, 1 - alpha loses its digits."""
DEFAULT_TEST = "permutation"
VerdictRule = Literal["classes", "pooled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """What is declared before the numbers are seen."""

    primary: Annotated[
        str | None,
        Option(
            help="Primary measure, which decides the verdict; default: the first.",
            metavar="MEASURE",
            choices="measures",
        ),
    ] = None
    test: Annotated[
        str,
        Option(help="Test for the verdict and its confidence interval: {tests}.", metavar="NAME", choices="tests"),
    ] = DEFAULT_TEST
    margin: Annotated[
        float | None,
        Option(
            help="Equivalence margin: the largest difference that does not matter; required for the verdict equivalent.",
            metavar="X",
        ),
        Gt(0),
    ] = None
    verdict: Annotated[
        VerdictRule,
        Option(
            help="classes: where queries have classes, each class has its verdict; pooled: the mean over all queries decides.",
            metavar="RULE",
            places=("command", "config", "testset"),
        ),
    ] = "classes"
    strata: Annotated[
        str | None,
        Option(
            help="Key of the strata that are the classes of the verdict of two runs; default: the query classes, if any.",
            flag="--verdict-strata",
            metavar="KEY",
            places=("command", "config", "testset"),
        ),
    ] = None
    alpha: Annotated[float, Option(help="Significance level (alpha).", metavar="X"), Interval(gt=0, lt=1)] = 0.05
    seed: Annotated[
        int, Option(help="Random seed for permutation and bootstrap.", metavar="N", places=("command",)), Ge(0)
    ] = 0
    draws: Annotated[int, Option(help="Random sign patterns, where not all can be counted.", metavar="N"), Ge(2)] = (
        DEFAULT_DRAWS
    )
    adjust: Annotated[
        str | None,
        Option(
            help="Adjustment of all pairs of three or more runs: {adjustments}; default: max-t for the test permutation, else "
            "holm.",
            metavar="NAME",
            choices="adjustments",
        ),
    ] = None
    limits: Limits = field(default_factory=Limits)

    @property
    def adjustment(self) -> str:
        """The adjustment of many systems, declared or that of the test."""
        return self.adjust or adjustment_for(self.test)

    def __post_init__(self) -> None:
        check(self, *self._clashes())
        if self.primary is not None:
            from cranfield.measures import parse

            parse(self.primary)

    def _clashes(self) -> list[Problem]:
        """What does not go together."""
        problems = []
        if isinstance(self.alpha, float) and 0 < self.alpha < SMALLEST_ALPHA:
            expected = f"{SMALLEST_ALPHA:g} or more"
            problems.append(Problem(f"{{alpha}} is {self.alpha:g}", expected=expected, parameters=("alpha",)))
        if self.test in TESTS and not TESTS[self.test].can_declare:
            expected = f"one of {', '.join(name for name, spec in TESTS.items() if spec.can_declare)}"
            problems.append(Problem(f"test {self.test} gives no interval to decide by", expected=expected))
        estimates = TESTS[self.test].estimates if self.test in TESTS else ""
        if self.margin is not None and estimates not in {"", MEAN_DIFFERENCE}:
            problems.append(
                Problem(
                    f"a margin is about the mean difference, and test {self.test} about the {estimates}",
                    hint="choose permutation, t or bootstrap, or leave the margin out",
                )
            )
        if self.verdict == "pooled" and self.strata:
            problems.append(Problem(f"verdict pooled and strata {self.strata}", hint="leave one of them out"))
        tests = ADJUSTMENTS[self.adjust].tests if self.adjust is not None and self.adjust in ADJUSTMENTS else ()
        if tests and self.test in TESTS and self.test not in tests:
            expected = f"the test {' or '.join(tests)}, or the adjustment {adjustment_for(self.test)}"
            problems.append(
                Problem(f"adjustment {self.adjust} does not go with the test {self.test}", expected=expected)
            )
        return problems
