"""What is declared before a comparison is made, and the verdict of the declared interval."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from cranfield.errors import Problem, UnknownNameError, UsageError
from cranfield.evaluation.caveat import Caveat, CaveatKind
from cranfield.evaluation.values import Limits, MeasureComparison
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.numbers import format_count, format_delta, format_delta_interval, format_level, format_p, format_value
from cranfield.stats.result import TestResult
from cranfield.stats.table import ADJUSTMENTS, DEFAULT_DRAWS, MEAN_DIFFERENCE, TESTS, adjustment_for

DEFAULT_TEST = "permutation"
FEWEST_DRAWS = 2
SMALLEST_ALPHA = 1e-12
"""Below this, 1 - alpha loses its digits."""

NONINFERIORITY = "noninferiority"
"""Name of the non-inferiority test; it runs where a margin is declared, and does not decide."""


Rule = Literal["classes", "pooled"]
RULES: tuple[Rule, ...] = get_args(Rule)
"""What a verdict is made of."""


def rule_of(name: str) -> Rule:
    """The rule of this name.

    Raises:
        UnknownNameError: there is none.
    """
    for rule in RULES:
        if rule == name:
            return rule
    raise UnknownNameError.among("verdict", name, RULES)


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
    """Random sign patterns and resamples."""
    limits: Limits = field(default_factory=Limits)
    verdict: Rule = "classes"
    """`classes`: each class of queries has its verdict, where there are classes; `pooled`: the mean over all queries decides."""
    strata: str = ""
    """Key of the strata that are the classes; empty: the query classes, where queries have them."""

    adjust: str = ""
    """How all pairs of many systems are adjusted: a name of `cranfield.stats.table.ADJUSTMENTS`; empty is that of the test."""

    @property
    def adjustment(self) -> str:
        """The adjustment of many systems, declared or that of the test."""
        return self.adjust or adjustment_for(self.test)

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
        if rule_of(self.verdict) == "pooled" and self.strata:
            problems.append(Problem(f"verdict pooled and strata {self.strata}", hint="leave one of them out"))
        problems += self._adjustment_problems()
        if self.n_draws < FEWEST_DRAWS:
            problems.append(Problem(f"{self.n_draws} random draws", expected=f"{FEWEST_DRAWS} or more"))
        if self.seed < 0:
            problems.append(Problem(f"seed is {self.seed}", expected="a whole number of 0 or more"))
        if problems:
            raise UsageError(problems)

    def _adjustment_problems(self) -> list[Problem]:
        if not self.adjust:
            return []
        if self.adjust not in ADJUSTMENTS:
            raise UnknownNameError.among("adjustment", self.adjust, ADJUSTMENTS)
        tests = ADJUSTMENTS[self.adjust].tests
        if not tests or self.test in tests:
            return []
        expected = f"the test {' or '.join(tests)}, or the adjustment {adjustment_for(self.test)}"
        return [Problem(f"adjustment {self.adjust} does not go with the test {self.test}", expected=expected)]


def decide(
    declared: MeasureComparison, options: CompareOptions, *, names: tuple[str, str], void: Sequence[str]
) -> tuple[VerdictCode, str, tuple[str, ...]]:
    """Reach the verdict of the declared test on the primary measure.

    Order: *invalid* when a finding makes the scores void; *equivalent* when a margin is stated and the whole interval lies inside
    it; *better* or *worse* when the interval excludes zero; else *no significant difference*.

    Returns:
        The verdict, its sentence, and its reasons.
    """
    baseline, candidate = names
    alpha, margin = options.alpha, options.margin
    numbers = numbers_of(declared, options)
    if void:
        return (
            VerdictCode.INVALID,
            f"No verdict on {candidate} against {baseline}: the comparison does not count.",
            tuple(void),
        )
    sign = sign_of(declared.measure)
    code = verdict_of_interval(declared.ci_low, declared.ci_high, sign=sign, margin=margin)
    if code is VerdictCode.EQUIVALENT:
        lean = _direction(declared.delta, sign)
        sentence = f"{candidate} is equivalent to {baseline} within ±{margin:g}{lean}: {numbers}."
        return code, sentence, _noninferiority_note(declared, alpha)
    of_mean = (*mean_note(declared, options.test), *_notes_of_test(declared, options.test))
    if code is VerdictCode.NOT_SIGNIFICANT:
        sentence = f"No significant difference between {baseline} and {candidate}: {numbers}."
        return code, sentence, (*_noninferiority_note(declared, alpha), *of_mean, *_detectable_difference(declared))
    notes = (*_noninferiority_note(declared, alpha), *of_mean)
    return code, f"{candidate} is {code.text} than {baseline}: {numbers}.", notes


def _noninferiority_note(declared: MeasureComparison, alpha: float) -> tuple[str, ...]:
    """Whether a loss of the margin is ruled out, where a margin is declared."""
    result = declared.tests.get(NONINFERIORITY)
    if result is None:
        return ()
    p, margin = result.extra.get("p_noninferior"), result.extra.get("margin")
    if not isinstance(p, float) or not isinstance(margin, float | int):
        return ()
    about = f"(one-sided t test, p {format_p(p)})"
    if p <= alpha:
        sentence = f"{VerdictCode.NON_INFERIOR.text}: a loss of {margin:g} or more is ruled out {about}"
        return (Caveat(sentence, CaveatKind.FINDING),)
    return (f"a loss of {margin:g} or more is not ruled out {about}",)


def sign_of(measure: Measure) -> int:
    """1 where a higher value is better, else -1."""
    return 1 if CATALOGUE[measure.name].higher_is_better else -1


def verdict_of_interval(
    low: float | None, high: float | None, *, sign: int, margin: float | None = None
) -> VerdictCode:
    """The verdict that an interval of the difference supports, limits aside.

    Args:
        low: its lower end; None where it has none.
        high: its upper end.
        sign: 1 where a higher value is better, else -1.
        margin: largest difference that does not matter.
    """
    if margin is not None and low is not None and high is not None and -margin < low and high < margin:
        return VerdictCode.EQUIVALENT
    if low is not None and low > 0:
        return VerdictCode.BETTER if sign > 0 else VerdictCode.WORSE
    if high is not None and high < 0:
        return VerdictCode.WORSE if sign > 0 else VerdictCode.BETTER
    return VerdictCode.NOT_SIGNIFICANT


def verdict_of_p(p: float | None, gain: float, alpha: float) -> VerdictCode:
    """The verdict that an adjusted p-value supports; `gain` is above 0 where the candidate does better."""
    if p is None or p > alpha or not gain:
        return VerdictCode.NOT_SIGNIFICANT
    return VerdictCode.BETTER if gain > 0 else VerdictCode.WORSE


def disagreements(
    verdicts: Collection[VerdictCode],
    comparisons: Mapping[Measure, MeasureComparison],
    primary: Measure,
    options: CompareOptions,
) -> tuple[str, ...]:
    """Each other measure and test whose result differs from all of these verdicts, after Holm's adjustment."""
    if VerdictCode.INVALID in verdicts:
        return ()
    test, alpha = options.test, options.alpha
    signs = {{VerdictCode.BETTER: 1, VerdictCode.WORSE: -1}.get(verdict, 0) for verdict in verdicts}
    sentences = []
    for measure, comparison in comparisons.items():
        spec = CATALOGUE[measure.name]
        if measure == primary or spec.diagnostic or comparison.delta is None:
            continue
        result = comparison.tests.get(test)
        if result is None or not _is_significant(result, alpha):
            continue
        shown = comparison.shown or 0.0
        direction = (1 if shown > 0 else -1) * (1 if spec.higher_is_better else -1)
        if direction not in signs:
            word = "better" if direction > 0 else "worse"
            sentences.append(
                f"{measure}: significantly {word} ({format_delta(shown)}, adjusted p {format_p(result.p_adjusted)})"
            )
    for name, result in comparisons[primary].tests.items():
        if name == test or result.p_adjusted is None or TESTS[name].needs_margin:
            continue
        if _is_significant(result, alpha) not in {sign != 0 for sign in signs}:
            word = "significant" if _is_significant(result, alpha) else "not significant"
            title = TESTS[name].title
            sentences.append(
                f"{title[0].upper()}{title[1:]} on {primary}: {word} (adjusted p {format_p(result.p_adjusted)})"
            )
    return tuple(sentences)


def _is_significant(result: TestResult, alpha: float) -> bool:
    return result.p_adjusted is not None and result.p_adjusted <= alpha


def numbers_of(declared: MeasureComparison, options: CompareOptions) -> str:
    """The means, and the estimate that the declared test is about with its interval.

    `nDCG@10 0.4120 to 0.4710, +0.0590 (95 % CI +0.0210 to +0.0970, p .0021, n = 50, permutation)`; of another quantity than the
    mean, `nDCG@10 0.4120 to 0.4710, mean difference +0.0590, Hodges-Lehmann estimate +0.0500 (95 % CI +0.0100 to +0.0900,
    p .0021, 31 of 50 queries differ, wilcoxon)`.
    """
    test, alpha = options.test, options.alpha
    if declared.delta is None:
        return f"{declared.measure} has no query that both sides have a value for"
    bounds = (declared.ci_low, declared.ci_high)
    interval = "unbounded" if bounds == (None, None) else format_delta_interval(bounds)
    result = declared.tests.get(test)
    p_value = f"p {format_p(result.p_two_sided)}, " if result is not None and result.p_two_sided is not None else ""
    means = f"{declared.measure} {format_value(declared.baseline.mean)} to {format_value(declared.candidate.mean)}"
    if TESTS[test].is_of_mean:
        numbers = f"{format_level(alpha)} CI {interval}, {p_value}n = {declared.n}, {test}"
        return f"{means}, {format_delta(declared.delta)} ({numbers})"
    counts = f"{declared.n_nonzero} of {declared.n} queries differ, {test}"
    mean = f"mean difference {format_delta(declared.delta)}"
    if declared.estimate is None:
        return f"{means}, {mean} ({counts})"
    estimate = f"{TESTS[test].estimate} {format_delta(declared.estimate)}"
    return f"{means}, {mean}, {estimate} ({format_level(alpha)} CI {interval}, {p_value}{counts})"


def mean_note(declared: MeasureComparison, test: str) -> tuple[str, ...]:
    """Where interval and mean difference say different things: why they can."""
    spec = TESTS[test]
    if declared.delta is None or declared.estimate is None or spec.is_of_mean:
        return ()
    mean = f"the mean difference is {format_delta(declared.delta)}"
    why = (
        f"the CI is of the {spec.estimates}; the mean counts queries that do not differ, and large differences in full"
    )
    if declared.delta * declared.estimate < 0:
        return (f"{mean}, the other way than the {spec.estimate}: {why}",)
    return (f"{mean}, outside the CI: {why}",) if declared.mean_is_outside else ()


def _notes_of_test(declared: MeasureComparison, test: str) -> tuple[str, ...]:
    """Why the declared test gives no p-value, or where another tool prints another one."""
    result = declared.tests.get(test)
    if result is None or not result.note:
        return ()
    if result.p_two_sided is None:
        return (f"the {TESTS[test].title} was not made: {result.note}",)
    return (Caveat(result.note, CaveatKind.FINDING),) if result.is_other_elsewhere else ()


def too_few_draws(declared: MeasureComparison, options: CompareOptions) -> tuple[str, ...]:
    """Why so few random draws could not have found any difference; empty where they could, or where none were used."""
    result = declared.tests.get(options.test)
    if result is None or result.p_two_sided is None or result.extra.get("exact") == "yes":
        return ()
    smallest = TESTS[options.test].smallest_p(declared.n, options.n_draws)
    if options.test not in {"permutation", "bootstrap"} or smallest <= options.alpha:
        return ()
    needed = format_count(math.ceil(2 / options.alpha))
    return (
        f"{format_count(options.n_draws)} draws give no p under {smallest:.2g}, above alpha {options.alpha:g}: use {needed} draws",
    )


def _detectable_difference(declared: MeasureComparison) -> tuple[str, ...]:
    if declared.n < 2:
        return ("fewer than two queries have a value on both sides: nothing can be tested",)
    if not declared.n_nonzero:
        return ("no query differs: the two systems score the same on every query",)
    if declared.ci_low is None or declared.ci_high is None:
        differ = f"{declared.n} queries, of which {declared.n_nonzero} differ,"
        return (f"{differ} are too few for a bounded interval at this alpha",)
    if declared.mde is None:
        return ()
    return (
        f"with {declared.n} queries of this spread, a true difference of {format_value(declared.mde)} would be found with 80 % power",
    )


def _direction(delta: float | None, sign: int) -> str:
    if not delta:
        return ""
    return ", leaning better" if delta * sign > 0 else ", leaning worse"
