"""A measure within each stratum of one system, and the contrast of two strata: of means, or of a candidate's gains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cranfield.errors import UnknownNameError, UsageError
from cranfield.evaluation.evaluate import summarise
from cranfield.evaluation.values import Comparison, Evaluation, Summary
from cranfield.measures import CATALOGUE, Measure
from cranfield.model import TestSet, is_in_stratum
from cranfield.model.query import CLASS
from cranfield.ranking.value import FloatQ
from cranfield.stats.contrast import GroupContrast

ContrastSpec = tuple[str, str, str]
"""Key of the strata, and two of its values: `("difficulty", "standard", "hard")`."""


@dataclass(frozen=True, slots=True)
class StratumSummary:
    """One measure over the scored queries of one stratum."""

    key: str
    value: str
    summary: Summary


@dataclass(frozen=True, slots=True)
class StrataContrast:
    """One measure in two strata: of one system, or of the difference between candidate and baseline."""

    key: str
    a: str
    b: str
    measure: Measure
    what: str
    """Name of the system, or `difference` of a comparison."""
    groups: GroupContrast
    ceilings: tuple[str, ...] = ()
    """A sentence for each stratum at the ceiling of the measure."""


def strata_of(
    testset: TestSet, query_ids: Sequence[str], always: Collection[str] = ()
) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(key, value, query ids) of every stratum, keys as they are met and values sorted; classes of queries under `class`.

    Keys with a different value for each query are left out, but not those of `always`.
    """
    for key, values in _by_stratum(testset, query_ids).items():
        if key in always or max(len(members) for members in values.values()) > 1:
            yield from ((key, value, tuple(values[value])) for value in sorted(values))


def summaries_by_stratum(
    evaluation: Evaluation, measure: Measure, always: Collection[str] = ()
) -> tuple[StratumSummary, ...]:
    """Mean, interval, median and spread of a measure within each stratum; of which keys: see `strata_of`."""
    values, scored = evaluation.values[measure], evaluation.scored[measure]
    rows = []
    for key, value, query_ids in strata_of(evaluation.testset, evaluation.query_ids, always):
        places = np.array([evaluation.index[query_id] for query_id in query_ids])
        places = places[scored[places]]
        weights = np.array([evaluation.testset.by_id[evaluation.query_ids[i]].weight for i in places.tolist()])
        rows.append(StratumSummary(key, value, summarise(values[places], weights=weights, measure=measure)))
    return tuple(rows)


def contrast_strata(
    evaluation: Evaluation,
    key: str,
    a: str,
    b: str,
    measure: Measure | None = None,
    *,
    alpha: float = 0.05,
    seed: int = 0,
) -> StrataContrast:
    """Contrast the means of one system in two strata.

    Args:
        evaluation: one system.
        key: of the strata.
        a: value of the first stratum.
        b: value of the second; the difference is a minus b.
        measure: one that was evaluated; None is the first.
        alpha: the interval covers 1 - alpha.
        seed: of the random labellings.

    Raises:
        UsageError: no such key, value or measure; or the two values are one.
    """
    from cranfield.stats.contrast import two_groups

    measure = _measure(measure, evaluation.measures)
    rows = dict(zip(evaluation.query_ids, evaluation.scored[measure].tolist(), strict=True))
    values = {q: v for q, v in zip(evaluation.query_ids, evaluation.values[measure].tolist(), strict=True) if rows[q]}
    sides = _sides(evaluation.testset, key, (a, b), values)
    groups = two_groups(*sides, alpha=alpha, seed=seed)
    ceilings = _ceilings(evaluation.name, (a, b), sides, measure)
    return StrataContrast(key, a, b, measure, evaluation.name, groups, ceilings)


def contrast_gain(comparison: Comparison, key: str, a: str, b: str, measure: Measure | None = None) -> StrataContrast:
    """Contrast the candidate's gain (candidate minus baseline, query by query) in two strata.

    Raises:
        UsageError: as in `contrast_strata`.
    """
    from cranfield.stats.contrast import two_groups

    measure = _measure(measure or comparison.primary, tuple(comparison.measures))
    sides = _sides(comparison.baseline.testset, key, (a, b), comparison.measures[measure].differences)
    groups = two_groups(*sides, alpha=comparison.alpha, seed=comparison.seed)
    return StrataContrast(key, a, b, measure, "difference", groups)


def _measure(measure: Measure | None, known: Sequence[Measure]) -> Measure:
    if not known:
        raise UsageError("no measure has a value here, so strata cannot be contrasted")
    if measure is not None and measure not in known:
        raise UsageError(f"{measure} was not evaluated", expected=", ".join(map(str, known)))
    return measure or known[0]


def _sides(testset: TestSet, key: str, names: tuple[str, str], values: Mapping[str, float]) -> tuple[FloatQ, FloatQ]:
    strata = _by_stratum(testset, (query.id for query in testset.queries))
    if not strata:
        hint = "{strata} adds them"
        raise UsageError(f"test set {testset.name!r} has no strata to contrast", hint=hint, parameters=("strata",))
    if key not in strata:
        raise UnknownNameError.among("key of strata", key, strata)
    groups = strata[key] | {
        name: found
        for name in names
        if key == CLASS and (found := [q.id for q in testset.queries if is_in_stratum(q, key, name)])
    }
    for name in names:
        if name not in groups:
            raise UnknownNameError.among(f"value of {key}", name, strata[key])
    if names[0] == names[1]:
        raise UsageError(f"{key} {names[0]!r} cannot be contrasted with itself", expected="two values")
    first, second = (np.array([values[q] for q in groups[name] if q in values], dtype=np.float64) for name in names)
    return first, second


def _ceilings(system: str, names: tuple[str, str], sides: tuple[FloatQ, FloatQ], measure: Measure) -> tuple[str, ...]:
    from cranfield.stats.contrast import at_ceiling

    spec = CATALOGUE[measure.name]
    if not spec.higher_is_better or spec.diagnostic:
        return ()
    found = ((name, at_ceiling(side, spec.range[1])) for name, side in zip(names, sides, strict=True))
    return tuple(f"{system}, {name}: {sentence}" for name, sentence in found if sentence)


def _by_stratum(testset: TestSet, query_ids: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Key to value to query ids."""
    groups: dict[str, dict[str, list[str]]] = {}
    if not testset.strata:
        return groups
    wanted = set(query_ids)
    for query_id, strata in testset.strata.items():
        for key, value in strata.items() if query_id in wanted else ():
            groups.setdefault(key, {}).setdefault(value, []).append(query_id)
    return groups
