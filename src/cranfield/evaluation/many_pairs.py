"""All pairs of many systems: the test of each pair, adjusted over them all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from cranfield.evaluation.many_values import PairComparison
from cranfield.evaluation.pairing import PairedValues
from cranfield.evaluation.procedure import procedure_of
from cranfield.evaluation.unseen import Found, Unseen, unseen_queries
from cranfield.evaluation.verdict import sign_of, verdict_of_p
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.options.compare import CompareOptions
from cranfield.ranking.value import FloatQ
from cranfield.stats.permutation import permutations
from cranfield.stats.result import TestResult, holm, untested
from cranfield.stats.simultaneous import max_t, tukey_hsd
from cranfield.stats.table import TESTS, Paired
from cranfield.stats.vectors import differences

Places = Sequence[tuple[int, int]]
"""Places of the first and the second system of each pair."""
Progress = Callable[[int, int], None]
"""Called with the number of pairs that are done, and of all."""

AT_ONCE = 64
"""Pairs whose sign patterns are processed together: 50,000 patterns of so many pairs are 26 MB."""


def all_pairs(n: int) -> list[tuple[int, int]]:
    """Every pair of n systems once, in their order."""
    return list(combinations(range(n), 2))


def tukey_of_pairs(paired: PairedValues) -> dict[frozenset[int], float]:
    """Tukey's p of every two systems; of one query or none there is none."""
    places = all_pairs(paired.values.shape[1])
    if len(paired.query_ids) < 2:
        return {}
    return dict(zip(map(frozenset, places), tukey_hsd(paired.values, places).tolist(), strict=True))


def compare_pairs(
    paired: PairedValues,
    places: Places,
    names: Sequence[str],
    options: CompareOptions,
    tukey: Mapping[frozenset[int], float],
    progress: Progress | None = None,
    largest: float | None = None,
) -> tuple[PairComparison, ...]:
    """The declared test on each pair, adjusted over them all; without a p-value where none could be significant.

    Args:
        paired: values of one measure, queries by systems.
        places: of the two systems of each pair.
        names: of all systems.
        options: the test and its adjustment.
        tukey: as `tukey_of_pairs` gives it.
        progress: called as pairs are done.
        largest: difference of the measure, if it is bounded.
    """
    if not paired.query_ids or not places:
        return ()
    procedure = procedure_of(paired.values, len(places), options)
    if not procedure.can_find:
        results = [untested("no pair of this family could be significant")] * len(places)
        code: VerdictCode | None = VerdictCode.INVALID
    else:
        results, code = _tested(paired, places, options, progress), None
    sign = sign_of(paired.measure)
    rows = []
    for (first, second), result in zip(places, results, strict=True):
        delta = _difference(paired, first, second)
        wins, losses = int((delta * sign > 0).sum()), int((delta * sign < 0).sum())
        pair = PairComparison(
            first=names[first],
            second=names[second],
            delta=float(delta.mean()),
            result=result,
            wins=wins,
            ties=len(delta) - wins - losses,
            losses=losses,
            verdict=code or verdict_of_p(result.p_adjusted, result.direction * sign, options.alpha),
            p_tukey=tukey.get(frozenset((first, second))),
        )
        rows.append(
            replace(pair, unseen=_unseen(pair, Found(len(delta), pair.delta, None, None, sign, largest), options))
        )
    return tuple(rows)


def _unseen(pair: PairComparison, found: Found, options: CompareOptions) -> Unseen | None:
    """What stands beside the verdict of a pair on few queries."""
    if TESTS[options.test].is_of_mean:
        found = replace(found, low=pair.result.ci_low, high=pair.result.ci_high)
    unseen = unseen_queries(pair.verdict, found, options.alpha)
    return unseen and replace(unseen, of=f"{pair.second} against {pair.first}", turned="the verdict on this pair")


def _tested(
    paired: PairedValues, places: Places, options: CompareOptions, progress: Progress | None
) -> list[TestResult]:
    if options.adjustment == "max-t":
        return max_t(paired.values, places, alpha=options.alpha, seed=options.seed, n_draws=options.draws)
    results: list[TestResult] = []
    for start in range(0, len(places), AT_ONCE):
        results += _each_alone(paired, places[start : start + AT_ONCE], options)
        if progress is not None:
            progress(len(results), len(places))
    adjusted = holm([result.p_two_sided for result in results])
    return [replace(result, p_adjusted=p) for result, p in zip(results, adjusted, strict=True)]


def _each_alone(paired: PairedValues, places: Places, options: CompareOptions) -> list[TestResult]:
    deltas = [_difference(paired, *place) for place in places]
    drawn = (options.alpha, options.seed, options.draws)
    if options.test == "permutation":
        alpha, seed, n_draws = drawn
        return permutations(np.column_stack(deltas), alpha=alpha, seed=seed, n_draws=n_draws)
    run = TESTS[options.test].run
    return [
        run(Paired(paired.values[:, first], paired.values[:, second], delta, *drawn))
        for (first, second), delta in zip(places, deltas, strict=True)
    ]


def _difference(paired: PairedValues, first: int, second: int) -> FloatQ:
    return differences(paired.values[:, first], paired.values[:, second])
