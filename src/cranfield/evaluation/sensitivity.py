"""Sensitivity analysis: the same pair of systems with one setting changed at a time.

The verdict stays that of the declared settings. The alternatives are fixed in the tables below, so that they cannot be
selected by their results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from cranfield.errors import CranfieldError
from cranfield.evaluation.margins import unjudged_margin
from cranfield.evaluation.scales import NOT_ON_ITS_SCALE, ranking_for
from cranfield.evaluation.strata import strata_of
from cranfield.evaluation.values import Comparison, Evaluation
from cranfield.evaluation.verdict import sign_of, verdict_of_interval
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure, compute, parse_all
from cranfield.ranking.value import FloatQ, Ranking
from cranfield.stats.rounding import differences
from cranfield.stats.table import MEAN_DIFFERENCE, TESTS, Paired

Family = Literal["measure", "cutoff", "test", "consensus rule", "without a stratum", "unjudged documents"]

MEASURES = (
    *("nDCG@5", "nDCG@10", "nDCG@20"),
    *("AP", "AP@10", "RR", "RR@10"),
    *("P@1", "P@5", "P@10"),
    *("R@5", "R@10", "R@20"),
)
"""Alternative measures."""

CUTOFFS = (1, 3, 5, 10, 20, 50, 100)
"""Alternative cutoffs of the primary measure, up to the depth of the lists."""

SENSITIVITY_DRAWS = 10_000
"""Random draws of one variation; fewer than for a verdict, as there are many variations."""

MOST_STRATA = 20
"""Keys with more values are not varied."""

FEWEST_QUERIES = 6
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


@dataclass(frozen=True)
class Sensitivity:
    """The alternative analyses and the declared verdict."""

    verdict: VerdictCode
    """Of the declared comparison."""
    variations: tuple[Variation, ...]
    left_out: tuple[str, ...]
    """Alternatives that are not applicable, with the reason, a sentence each."""
    test: str
    n_draws: int
    """Random draws of each variation, where its test draws."""

    @property
    def disagreeing(self) -> tuple[Variation, ...]:
        """Variations with a different verdict."""
        return tuple(one for one in self.variations if one.verdict is not self.verdict)

    @property
    def n_agree(self) -> int:
        """Number of variations with the same verdict."""
        return len(self.variations) - len(self.disagreeing)

    @property
    def line(self) -> str:
        """`17 of 21 alternative analyses also favour B; 1 not applicable`."""
        if not self.variations:
            return f"No alternative analysis is possible: {self.verdict.text}"
        out = f"; {len(self.left_out)} not applicable" if self.left_out else ""
        return f"{self.n_agree} of {len(self.variations)} alternative analyses also {AGREEMENT[self.verdict]}{out}"


def sensitivity(
    comparison: Comparison,
    *,
    regraded: Mapping[str, Regraded] | None = None,
    n_draws: int = SENSITIVITY_DRAWS,
) -> Sensitivity:
    """Repeat a comparison with one setting changed at a time.

    Measures: those of `MEASURES`. Cutoffs: the primary measure at those of `CUTOFFS`. Tests: the others that give an
    interval. Strata: each left out in turn. Unjudged documents: those of the candidate all relevant and those of the
    baseline none, and the other way round. A document that both return then counts as relevant for one side alone: the
    truth lies between the two. Consensus rules come with `regraded`.

    Args:
        comparison: as it was declared; its limits, alpha, margin and seed hold for every variation. A margin is about the
            mean difference, so a test of something else is analyses without.
        regraded: name of a consensus rule to both sides evaluated on the grades it makes, or to why there are none.
        n_draws: random draws of each variation; never more than the comparison had.

    Returns:
        The variations. None where the comparison does not count: then nothing does.
    """
    declared = comparison.n_draws or n_draws
    n_draws = min(n_draws, declared)
    if comparison.verdict.code is VerdictCode.INVALID:
        return Sensitivity(
            VerdictCode.INVALID, (), ("the comparison does not count, however it is made",), comparison.test, 0
        )
    analyses = _Analyses(comparison, n_draws)
    analyses.with_measure("measure", comparison.primary)  # what gives the same values is no variation
    found: list[Variation | str] = [
        *_measures(analyses),
        *_cutoffs(analyses),
        *_tests(analyses),
        *_rules(analyses, regraded or {}),
        *_strata(analyses),
        *_unjudged(analyses),
    ]
    variations = tuple(one for one in found if isinstance(one, Variation))
    left_out = tuple(dict.fromkeys(one for one in found if isinstance(one, str)))
    return Sensitivity(comparison.verdict.code, variations, left_out, comparison.test, n_draws)


@dataclass(frozen=True, slots=True)
class _Analyses:
    """Runs the alternative analyses of one comparison."""

    comparison: Comparison
    n_draws: int
    measure_of_values: dict[tuple[bytes, bytes], str] = field(default_factory=dict)
    """Values of both sides to the measure that gave them."""

    def pair(
        self, family: Family, name: str, a: FloatQ, b: FloatQ, measure: Measure, test: str = ""
    ) -> Variation | str:
        """The variation of one value per query on each side; why not, where too few are left."""
        comparison = self.comparison
        if len(a) < FEWEST_QUERIES:
            return f"{name}: {len(a)} queries are too few"
        spec = TESTS[test or comparison.test]
        difference = differences(a, b)
        result = spec.run(Paired(a, b, difference, comparison.alpha, comparison.seed, self.n_draws))
        margin = comparison.margin if spec.estimates == MEAN_DIFFERENCE else None
        verdict = verdict_of_interval(result.ci_low, result.ci_high, sign=sign_of(measure), margin=margin)
        return Variation(family, name, float(difference.mean()), result.ci_low, result.ci_high, len(a), verdict)

    def with_measure(self, family: Family, measure: Measure) -> Variation | str:
        """The variation of another measure."""
        sides = []
        for side in (self.comparison.baseline, self.comparison.candidate):
            ranking = ranking_for(side, measure)
            if ranking is None:
                return f"{measure}: {NOT_ON_ITS_SCALE}"
            try:
                sides.append(_scored(measure, ranking))
            except CranfieldError as error:
                return f"{measure}: {error}"
        a, b = sides
        shared = [query_id for query_id in a if query_id in b]
        if not shared:
            return f"{measure}: it has no value for any query"
        values = _values(a, shared), _values(b, shared)
        same = self.measure_of_values.setdefault((values[0].tobytes(), values[1].tobytes()), str(measure))
        if same != str(measure):
            return f"{measure}: the same as {same} on these lists"
        return self.pair(family, str(measure), *values, measure)


def _scored(measure: Measure, ranking: Ranking) -> dict[str, float]:
    values, scored, _ = compute(measure, ranking)
    return {
        query_id: value
        for query_id, value, known in zip(ranking.query_ids, values.tolist(), scored.tolist(), strict=True)
        if known
    }


def _values(values: Mapping[str, float], query_ids: Sequence[str]) -> FloatQ:
    return np.array([values[query_id] for query_id in query_ids], dtype=np.float64)


def _primary_values(comparison: Comparison, query_ids: Sequence[str]) -> tuple[FloatQ, FloatQ]:
    """The primary measure of both sides for some queries."""
    baseline, candidate = comparison.baseline, comparison.candidate
    return tuple(
        np.array([side.values[comparison.primary][side.index[query_id]] for query_id in query_ids], dtype=np.float64)
        for side in (baseline, candidate)
    )  # type: ignore[return-value]  # two sides


def _depth(comparison: Comparison) -> int:
    """How far down the longest list goes."""
    rankings = [side.ranking for side in (comparison.baseline, comparison.candidate)]
    return max(int(ranking.n_returned.max(initial=0)) for ranking in rankings)


def _too_deep(measure: Measure, depth: int) -> bool:
    return measure.depth is not None and measure.depth > depth


def _measures(analyses: _Analyses) -> Iterator[Variation | str]:
    primary, depth = analyses.comparison.primary, _depth(analyses.comparison)
    for measure in parse_all(MEASURES):
        if measure == primary or _differs_by_cutoff(measure, primary):
            continue
        yield (
            f"{measure}: no list goes as deep"
            if _too_deep(measure, depth)
            else analyses.with_measure("measure", measure)
        )


def _cutoffs(analyses: _Analyses) -> Iterator[Variation | str]:
    primary, depth = analyses.comparison.primary, _depth(analyses.comparison)
    if not isinstance(primary.cutoff, int):
        return
    for cutoff in CUTOFFS:
        measure = replace(primary, cutoff=cutoff)
        if measure != primary:
            yield (
                f"{measure}: no list goes as deep"
                if _too_deep(measure, depth)
                else analyses.with_measure("cutoff", measure)
            )


def _differs_by_cutoff(measure: Measure, primary: Measure) -> bool:
    """The primary measure at another cutoff has a family of its own."""
    return isinstance(primary.cutoff, int) and replace(measure, cutoff=primary.cutoff) == primary


def _tests(analyses: _Analyses) -> Iterator[Variation | str]:
    comparison = analyses.comparison
    a, b = _primary_values(comparison, tuple(comparison.measures[comparison.primary].differences))
    for name, spec in TESTS.items():
        if spec.can_declare and name != comparison.test:
            yield analyses.pair("test", name, a, b, comparison.primary, test=name)


def _rules(analyses: _Analyses, regraded: Mapping[str, Regraded]) -> Iterator[Variation | str]:
    primary = analyses.comparison.primary
    for rule, pair in regraded.items():
        if isinstance(pair, str):
            yield f"rule {rule}: {pair}"
            continue
        sides = [
            {query_id: value for query_id in side.query_ids if (value := side.value(primary, query_id)) is not None}
            for side in pair
        ]
        shared = [query_id for query_id in sides[0] if query_id in sides[1]]
        yield analyses.pair("consensus rule", rule, _values(sides[0], shared), _values(sides[1], shared), primary)


def _strata(analyses: _Analyses) -> Iterator[Variation | str]:
    comparison = analyses.comparison
    query_ids = tuple(comparison.measures[comparison.primary].differences)
    groups: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for key, value, members in strata_of(comparison.baseline.testset, query_ids):
        groups.setdefault(key, []).append((value, frozenset(members)))
    for key, found in groups.items():
        if len(found) > MOST_STRATA:
            yield f"{key}: {len(found)} values are more than {MOST_STRATA}, and none is left out"
            continue
        for value, without in found:
            kept = [query_id for query_id in query_ids if query_id not in without]
            name = f"without {key}: {value}"
            yield analyses.pair("without a stratum", name, *_primary_values(comparison, kept), comparison.primary)


def _unjudged(analyses: _Analyses) -> Iterator[Variation | str]:
    comparison = analyses.comparison
    primary = comparison.primary
    margins = []
    for side in (comparison.baseline, comparison.candidate):
        ranking = ranking_for(side, primary)
        if ranking is None:
            yield f"unjudged documents: {NOT_ON_ITS_SCALE}"
            return
        margins.append(unjudged_margin(primary, ranking))
    if any(margin.why for margin in margins):
        yield f"unjudged documents: {next(margin.why for margin in margins if margin.why)}"
        return
    if not any(margin.n_results for margin in margins):
        yield "unjudged documents: all that counts is judged"
        return
    query_ids = tuple(comparison.measures[primary].differences)
    ends = [
        [
            np.array([values[side.index[query_id]] for query_id in query_ids])
            for side, values in ((comparison.baseline, first), (comparison.candidate, second))
        ]
        for first, second in ((margins[0].low, margins[1].high), (margins[0].high, margins[1].low))
    ]
    names = ("only the candidate's relevant", "only the baseline's relevant")
    for name, (a, b) in zip(names, ends, strict=True):
        known = ~(np.isnan(a) | np.isnan(b))
        yield analyses.pair("unjudged documents", name, a[known], b[known], primary)
