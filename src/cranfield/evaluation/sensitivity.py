"""Sensitivity analysis: the same pair of systems with one setting changed at a time.

The verdict stays that of the declared settings. The alternatives are fixed in the tables below, so that they cannot be
selected by their results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from cranfield.base.errors import CranfieldError
from cranfield.evaluation.joint import FEW_LISTS, JointBounds, grades_of, joint_bounds, open_lists
from cranfield.evaluation.margins import unjudged_margin, unjudged_that_count
from cranfield.evaluation.pairing import PairedValues, pair_columns, pair_values
from cranfield.evaluation.values import NOT_ON_ITS_SCALE, Comparison, Evaluation
from cranfield.evaluation.verdict import verdict_of_interval
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure, compute, parse_all
from cranfield.measures.catalogue import sign_of
from cranfield.ranking.value import Ranking
from cranfield.stats.describe import differences
from cranfield.stats.table import MEAN_DIFFERENCE, TESTS, Paired

Family = Literal[
    "measure",
    "cutoff",
    "test",
    "consensus rule",
    "without a stratum",
    "unjudged documents",
    "without a rater",
    "adjudication",
]

MEASURES = (
    "nDCG@5", "nDCG@10", "nDCG@20", "AP", "AP@10", "RR", "RR@10", "P@1", "P@5", "P@10", "R@5", "R@10", "R@20",
)  # fmt: skip
"""Alternative measures."""

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
"""Alternative cutoffs of the primary measure, up to the depth of the lists."""

SENSITIVITY_DRAWS = 10_000
"""Random draws of one variation; fewer than for a verdict, as there are many variations."""

MAX_STRATA = 20
"""Keys with more values are not varied."""

MIN_QUERIES = 6
"""With fewer queries no test rejects at 5 %."""

AGREEMENT = {
    VerdictCode.BETTER: "favour B",
    VerdictCode.WORSE: "favour A",
    VerdictCode.EQUIVALENT: "find A and B equivalent",
    VerdictCode.NOT_SIGNIFICANT: "find no significant difference",
}

Regraded = tuple[Evaluation, Evaluation] | str
"""Both sides on other grades, or the reason why there are none."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One alternative analysis and its verdict."""

    family: Family
    name: str
    """The alternative: `AP`, `wilcoxon`, `without type: paraphrase`."""
    delta: float
    """Mean of candidate minus baseline."""
    ci_low: float | None
    ci_high: float | None
    n: int
    verdict: VerdictCode
    estimate: float | None = None
    """Point estimate of what the interval is about: the mean difference unless the test is about another quantity."""


@dataclass(frozen=True)
class Sensitivity:
    """The alternative analyses and the declared verdict."""

    verdict: VerdictCode
    """Verdict of the declared comparison."""
    variations: tuple[Variation, ...]
    left_out: tuple[str, ...]
    """Alternatives that are not applicable, with the reason, a sentence each."""
    test: str
    n_draws: int
    """Random draws of each variation, where its test draws."""
    n_agree: int = field(init=False, default=0)
    """Number of variations with the same verdict."""
    line: str = field(init=False, default="")
    """`17 of 21 alternative analyses also favour B; 1 not applicable`."""

    def __post_init__(self) -> None:
        n_agree = len(self.variations) - len(self.disagreeing)
        out = f"; {len(self.left_out)} not applicable" if self.left_out else ""
        line = f"{n_agree} of {len(self.variations)} alternative analyses also {AGREEMENT.get(self.verdict)}{out}"
        object.__setattr__(self, "n_agree", n_agree)
        none = f"No alternative analysis is possible: {self.verdict.text}"
        object.__setattr__(self, "line", line if self.variations else none)

    @property
    def disagreeing(self) -> tuple[Variation, ...]:
        """Variations with a different verdict."""
        return tuple(variation for variation in self.variations if variation.verdict is not self.verdict)


def sensitivity(
    comparison: Comparison,
    *,
    regraded: Mapping[str, Regraded] | None = None,
    n_draws: int = SENSITIVITY_DRAWS,
) -> Sensitivity:
    """Repeat a comparison with one setting changed at a time.

    Measures: those of `MEASURES`. Cutoffs: the primary measure at those of `CUTOFFS`. Tests: the others that give an
    interval. Strata: each left out in turn. Unjudged documents: with the grades that are best for one side, a document that
    both return having one grade; where these are not known exactly, those of the candidate all relevant and those of the
    baseline none, and the other way round: the truth lies between the two. Consensus rules come with `regraded`.

    Args:
        comparison: as it was declared; its limits, alpha, margin and seed hold for every variation. A margin is about the
            mean difference, so a test of something else runs without.
        regraded: name of a consensus rule to both sides evaluated on the grades it makes, or to why there are none.
        n_draws: random draws of each variation; never more than the comparison had.

    Returns:
        The variations. None where the comparison does not count: then nothing does.
    """
    declared = comparison.n_draws or n_draws
    n_draws = min(n_draws, declared)
    if comparison.verdict.code is VerdictCode.INVALID:
        return Sensitivity(
            VerdictCode.INVALID, (), ("the comparison does not count, however it is made",), comparison.options.test, 0
        )
    analyses = _Analyses(comparison, n_draws)
    paired = pair_values(analyses.sides, comparison.primary)
    analyses.measure_of_values[paired.values.tobytes()] = str(comparison.primary)  # the same values are no variation
    found: list[Variation | str] = [
        *_measures(analyses),
        *_cutoffs(analyses),
        *_tests(analyses, paired),
        *_rules(analyses, regraded or {}),
        *_strata(analyses, paired),
        *_unjudged(analyses),
    ]
    variations = tuple(item for item in found if isinstance(item, Variation))
    left_out = tuple(dict.fromkeys(item for item in found if isinstance(item, str)))
    return Sensitivity(comparison.pooled_code, variations, left_out, comparison.options.test, n_draws)


@dataclass(frozen=True, slots=True)
class _Analyses:
    """Runs the alternative analyses of one comparison."""

    comparison: Comparison
    n_draws: int
    measure_of_values: dict[bytes, str] = field(default_factory=dict)
    """Values of both sides to the measure that gave them."""

    @property
    def sides(self) -> tuple[Evaluation, Evaluation]:
        return self.comparison.baseline, self.comparison.candidate

    @property
    def depth(self) -> int:
        """Length of the longest list."""
        return max(int(side.ranking.n_returned.max(initial=0)) for side in self.sides)

    def run(self, family: Family, name: str, paired: PairedValues, test: str = "") -> Variation | str:
        """The variation of these values; the reason where too few are left."""
        comparison = self.comparison
        a, b = paired.values.T
        if len(a) < MIN_QUERIES:
            return f"{name}: {len(a)} queries are too few"
        spec = TESTS[test or comparison.options.test]
        difference = differences(a, b)
        result = spec.run(Paired(a, b, difference, comparison.options.alpha, comparison.options.seed, self.n_draws))
        margin = comparison.options.margin if spec.estimates == MEAN_DIFFERENCE else None
        verdict = verdict_of_interval(result.ci_low, result.ci_high, sign=sign_of(paired.measure), margin=margin)
        mean = float(difference.mean())
        return Variation(family, name, mean, result.ci_low, result.ci_high, len(a), verdict, result.estimate)

    def with_measure(self, family: Family, measure: Measure) -> Variation | str:
        """The variation of another measure; the reason where there is none."""
        if measure.depth is not None and measure.depth > self.depth:
            return f"{measure}: no list is that long"
        columns = []
        for side in self.sides:
            ranking = side.ranking_for(measure)
            if ranking is None:
                return f"{measure}: {NOT_ON_ITS_SCALE}"
            try:
                values, scored, _ = compute(measure, ranking)
            except CranfieldError as error:
                return f"{measure}: {error}"
            columns.append((ranking.query_ids, values, scored))
        paired = pair_columns(measure, columns)
        if not paired.query_ids:
            return f"{measure}: it has no value for any query"
        same = self.measure_of_values.setdefault(paired.values.tobytes(), str(measure))
        if same != str(measure):
            return f"{measure}: the same as {same} on these lists"
        return self.run(family, str(measure), paired)


def _measures(analyses: _Analyses) -> Iterator[Variation | str]:
    primary = analyses.comparison.primary
    for measure in parse_all(MEASURES):
        if measure != primary and not _differs_by_cutoff(measure, primary):
            yield analyses.with_measure("measure", measure)


def _cutoffs(analyses: _Analyses) -> Iterator[Variation | str]:
    primary = analyses.comparison.primary
    if isinstance(primary.cutoff, int):
        for measure in (replace(primary, cutoff=cutoff) for cutoff in CUTOFFS if cutoff != primary.cutoff):
            yield analyses.with_measure("cutoff", measure)


def _differs_by_cutoff(measure: Measure, primary: Measure) -> bool:
    """The primary measure at another cutoff has a family of its own."""
    return isinstance(primary.cutoff, int) and replace(measure, cutoff=primary.cutoff) == primary


def _tests(analyses: _Analyses, paired: PairedValues) -> Iterator[Variation | str]:
    for name, spec in TESTS.items():
        if spec.can_declare and name != analyses.comparison.options.test:
            yield analyses.run("test", name, paired, test=name)


def _rules(analyses: _Analyses, regraded: Mapping[str, Regraded]) -> Iterator[Variation | str]:
    for rule, sides in regraded.items():
        if isinstance(sides, str):
            yield f"rule {rule}: {sides}"
        else:
            yield analyses.run("consensus rule", rule, pair_values(sides, analyses.comparison.primary))


def _strata(analyses: _Analyses, paired: PairedValues) -> Iterator[Variation | str]:
    groups: dict[str, dict[str, PairedValues]] = {}
    for key, value, part in paired.strata(analyses.comparison.baseline.testset):
        groups.setdefault(key, {})[value] = part
    for key, parts in groups.items():
        if len(parts) > MAX_STRATA:
            yield f"{key}: {len(parts)} values are more than {MAX_STRATA}, so the variations without one stratum were skipped"
            continue
        for value, part in parts.items():
            yield analyses.run("without a stratum", f"without {key}: {value}", paired.without(part.query_ids))


def _unjudged(analyses: _Analyses) -> Iterator[Variation | str]:
    primary = analyses.comparison.primary
    rankings = [side.ranking_for(primary) for side in analyses.sides]
    if rankings[0] is None or rankings[1] is None:
        yield f"unjudged documents: {NOT_ON_ITS_SCALE}"
        return
    if not any(len(unjudged_that_count(primary, ranking)) for ranking in rankings if ranking is not None):
        yield "unjudged documents: every result that affects the measure is judged"
        return
    joint = None if analyses.sides[0].on_scales else _joint_extremes(analyses, (rankings[0], rankings[1]))
    if joint is not None:
        for whose, paired in zip(("candidate", "baseline"), joint, strict=True):
            yield analyses.run("unjudged documents", f"best case for the {whose}", paired)
        return
    first, second = (unjudged_margin(primary, ranking) for ranking in rankings if ranking is not None)
    if first.why or second.why:
        yield f"unjudged documents: {first.why or second.why}"
    else:
        for whose, bounds in (("candidate", (first.low, second.high)), ("baseline", (first.high, second.low))):
            columns = [
                (side.query_ids, values, side.scored[primary] & ~np.isnan(values))
                for side, values in zip(analyses.sides, bounds, strict=True)
            ]
            name = f"only the {whose}'s relevant"
            yield analyses.run("unjudged documents", name, pair_columns(primary, columns))


def _joint_extremes(analyses: _Analyses, sides: tuple[Ranking, Ranking]) -> tuple[PairedValues, PairedValues] | None:
    """The values best for the candidate, and best for the baseline, with one grade a document; None where they are only bounded."""
    primary = analyses.comparison.primary
    pair = open_lists(primary, sides, grades_of(analyses.sides[0].testset))
    found = pair if isinstance(pair, str) or not pair.query_ids else joint_bounds(pair, most_lists=FEW_LISTS)
    if isinstance(pair, str) or not isinstance(found, JointBounds) or not found.exact.all():
        return None
    low, high = (
        PairedValues(primary, pair.query_ids, pair.judged(grades)) for grades in (found.low_grades, found.high_grades)
    )
    return (high, low) if sign_of(primary) > 0 else (low, high)
