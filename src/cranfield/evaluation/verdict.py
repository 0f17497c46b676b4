"""The verdict of a pair, and the procedure that was declared for it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cranfield.base.numbers import (
    format_count,
    format_delta,
    format_delta_interval,
    format_level,
    format_p,
    format_plain,
    format_value,
)
from cranfield.base.words import count_noun
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.unseen import Caveat, CaveatKind
from cranfield.evaluation.values import MeasureComparison
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import CATALOGUE, Measure
from cranfield.measures.catalogue import sign_of
from cranfield.stats.permutation import is_enumerated
from cranfield.stats.result import TestResult
from cranfield.stats.simultaneous import max_t_patterns, moving_queries
from cranfield.stats.table import ADJUSTMENTS, TESTS


@dataclass(frozen=True, slots=True)
class Procedure:
    """Test and adjustment of a family of pairs."""

    options: CompareOptions
    n_queries: int
    n_moving: int
    """Queries on which any two systems differ."""
    n_pairs: int

    @property
    def n_draws(self) -> int:
        """Random sign patterns; 0 where all are counted, or none are used."""
        if self.options.test != "permutation":
            return 0
        if self.options.adjustment == "max-t":
            n_patterns, is_exact = max_t_patterns(self.n_moving, self.n_pairs, self.options.draws)
            return 0 if is_exact else n_patterns
        return 0 if is_enumerated(self.n_queries, self.n_queries) else self.options.draws

    @property
    def smallest_p(self) -> float:
        """The smallest adjusted p-value that so many queries, pairs and draws can give."""
        options = self.options
        if options.adjustment == "max-t":
            return min(1.0, 2 / max_t_patterns(self.n_queries, self.n_pairs, options.draws)[0])
        factor = self.n_pairs if ADJUSTMENTS[options.adjustment].counts_pairs else 1
        return min(1.0, factor * TESTS[options.test].smallest_p(self.n_queries, options.draws))

    @property
    def can_find(self) -> bool:
        """Whether any pair could be significant."""
        return self.n_queries > 1 and self.smallest_p <= self.options.alpha

    @property
    def adjusted(self) -> str:
        """`max-T`: how tables name the adjustment."""
        return ADJUSTMENTS[self.options.adjustment].short

    @property
    def text(self) -> str:
        """`permutation, 10,153 pairs, max-T, 100,000 draws`."""
        drawn = (f"{format_count(self.n_draws)} draws",) if self.n_draws else ()
        return ", ".join((self.options.test, count_noun(self.n_pairs, "pairs", format_count), self.adjusted, *drawn))

    @property
    def why_not(self) -> str:
        """Why no pair could be significant, and what to do."""
        if self.n_queries < 2:
            return "fewer than two queries have a value for every system: nothing can be tested"
        drawn = f" and {format_count(self.options.draws)} draws" if self._is_drawn else ""
        return (
            f"{count_noun(self.n_queries, 'queries', format_count)}{drawn} cannot make any of "
            f"{count_noun(self.n_pairs, 'pairs', format_count)} significant at alpha {format_plain(self.options.alpha)}: the smallest "
            f"p that {self.options.test} with {ADJUSTMENTS[self.options.adjustment].title} can reach is "
            f"{format_plain(self.smallest_p)}; use {' or '.join(self._ways_out())}"
        )

    @property
    def _is_drawn(self) -> bool:
        """Whether so many queries need random draws."""
        if self.options.adjustment == "max-t":
            return not max_t_patterns(self.n_queries, self.n_pairs, self.options.draws)[1]
        return self.options.test in {"permutation", "bootstrap"} and not is_enumerated(self.n_queries, self.n_queries)

    def _ways_out(self) -> list[str]:
        options = self.options
        ways = []
        if self._is_drawn and options.test == "permutation":
            factor = self.n_pairs if ADJUSTMENTS[options.adjustment].counts_pairs else 1
            ways.append(f"{format_count(math.ceil(2 * factor / options.alpha))} draws")
        joint = replace(self, options=replace(options, test="permutation", adjust="max-t"))
        if options.adjustment != "max-t" and joint.can_find:
            ways.append("the test permutation with the adjustment max-t")
        if options.test != "t":
            ways.append("the test t (for differences that are close to normal)")
        return ways or ["more queries"]


def procedure_of(values: NDArray[np.float64], n_pairs: int, options: CompareOptions) -> Procedure:
    """The declared procedure for so many pairs of systems.

    Args:
        values: float64[Q, S], queries by systems.
        n_pairs: pairs that are adjusted together.
        options: what was declared.
    """
    return Procedure(options, len(values), moving_queries(values), n_pairs)


NONINFERIORITY = "noninferiority"
"""Name of the non-inferiority test; it runs where a margin is declared, and does not decide."""


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
        return f"{declared.measure} has no query with a value on both sides"
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
    why = f"the CI is of the {spec.estimates}; the mean includes queries that do not differ, and is sensitive to large differences"
    if declared.delta * declared.estimate < 0:
        return (f"{mean}, of the opposite sign to the {spec.estimate}: {why}",)
    return (f"{mean}, outside the CI: {why}",) if declared.mean_is_outside else ()


def _notes_of_test(declared: MeasureComparison, test: str) -> tuple[str, ...]:
    """Why the declared test gives no p-value, or where another tool prints another one."""
    result = declared.tests.get(test)
    if result is None or not result.note:
        return ()
    if result.p_two_sided is None:
        return (f"the {TESTS[test].title} was not computed: {result.note}",)
    return (Caveat(result.note, CaveatKind.FINDING),) if result.is_other_elsewhere else ()


def too_few_draws(declared: MeasureComparison, options: CompareOptions) -> tuple[str, ...]:
    """Why so few random draws could not have found any difference; empty where they could, or where none were used."""
    result = declared.tests.get(options.test)
    if result is None or result.p_two_sided is None or result.extra.get("exact") == "yes":
        return ()
    smallest = TESTS[options.test].smallest_p(declared.n, options.draws)
    if options.test not in {"permutation", "bootstrap"} or smallest <= options.alpha:
        return ()
    needed = format_count(math.ceil(2 / options.alpha))
    return (
        f"{format_count(options.draws)} draws cannot give a p below {smallest:.2g}, which is above alpha {options.alpha:g}: use {needed} draws",
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
