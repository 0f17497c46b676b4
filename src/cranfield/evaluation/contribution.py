"""Contribution of each component: alone, and as the difference between all components and all but it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Literal

from cranfield.base.errors import UsageError
from cranfield.evaluation.compare import compare, unseen_of_pair
from cranfield.evaluation.options.blocks import CompareOptions
from cranfield.evaluation.result import EvaluationResult, result_of
from cranfield.evaluation.unseen import Unseen
from cranfield.evaluation.values import Comparison, Evaluation, MeasureComparison, Summary, with_columns
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure, parse
from cranfield.measures.catalogue import sign_of
from cranfield.stats.result import holm


@dataclass(frozen=True, slots=True)
class Contribution:
    """One component. Differences are all components minus all but this one, query by query."""

    component: str
    alone: str
    """The system with this component and no other."""
    without: str
    """The system with all components but this one; of two components, the other alone."""
    alone_summary: Summary
    """Summary of the primary measure for `alone`, as `without_summary` is for `without`."""
    without_summary: Summary
    effect: MeasureComparison
    """All but this one against all, on the primary measure."""
    p: float | None
    p_adjusted: float | None
    """After Holm, over the components."""
    verdict: VerdictCode
    """`helps`, `hurts`, `equivalent`, `not_significant` or `invalid`."""
    reasons: tuple[str, ...]
    """Why it is invalid."""
    n_gained: int
    """Queries that are worse without it."""
    n_lost: int
    """Queries that are better without it."""
    n_only: int
    """Queries that are worse without it, and without no other component."""
    unseen: Unseen | None
    """Queries of a kind that is not among these, and what would turn the verdict; None from 50 queries on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions(EvaluationResult):
    """Every variant of a system once (the whole, each component alone, all but each), and what each component brings to it."""

    kind: Literal["evaluation"] = "evaluation"
    system: str
    primary: Measure
    test: str
    alpha: float
    margin: float | None
    seed: int
    whole: str
    """The variant with all components."""
    whole_summary: Summary
    """Summary of the primary measure for `whole`."""
    components: tuple[Contribution, ...]


def contributions(
    name: str,
    whole: Evaluation,
    alone: Mapping[str, Evaluation],
    without: Mapping[str, Evaluation],
    options: CompareOptions,
) -> Contributions:
    """Compare each all-but-one variant with the whole, Holm-adjusted over the components.

    A component helps or hurts where the declared test rejects after Holm's adjustment over the components; with a margin it
    is equivalent where the whole interval lies within it. The mean over all queries decides, also where queries have classes.

    Args:
        name: of the system.
        whole: all components.
        alone: component to the variant with nothing else.
        without: component to the variant with all the others.
        options: what was declared beforehand; the primary measure is the whole's first where none is.

    Raises:
        UsageError: the variants do not belong together, or are not of the same components.
    """
    if list(alone) != list(without) or not alone:
        raise UsageError("each component needs a variant alone and one without it", got=", ".join(without) or "none")
    primary = whole.measures[0] if options.primary is None else parse(options.primary)
    options = replace(options, primary=primary.canonical, verdict="pooled", strata=None)
    compared = {
        component: compare(on_primary(evaluation, primary), on_primary(whole, primary), options)
        for component, evaluation in without.items()
    }
    p_values = {component: _p(comparison) for component, comparison in compared.items()}
    adjusted = dict(zip(p_values, holm(list(p_values.values())), strict=True))
    sign = sign_of(primary)
    worse_without = {
        component: {
            query_id for query_id, delta in comparison.measures[primary].differences.items() if delta * sign > 0
        }
        for component, comparison in compared.items()
    }
    rows = []
    for component, comparison in compared.items():
        differences = comparison.measures[primary].differences
        others = set().union(*(ids for other, ids in worse_without.items() if other != component))
        verdict = _verdict(comparison, adjusted[component])
        codes = {VerdictCode.HELPS: VerdictCode.BETTER, VerdictCode.HURTS: VerdictCode.WORSE}
        unseen = unseen_of_pair(comparison, codes.get(verdict, verdict))
        rows.append(
            Contribution(
                component=component,
                alone=alone[component].name,
                without=without[component].name,
                alone_summary=alone[component].summaries[primary],
                without_summary=without[component].summaries[primary],
                effect=comparison.measures[primary],
                p=p_values[component],
                p_adjusted=adjusted[component],
                verdict=verdict,
                reasons=comparison.verdict.reasons,
                n_gained=len(worse_without[component]),
                n_lost=sum(delta * sign < 0 for delta in differences.values()),
                n_only=len(worse_without[component] - others),
                unseen=None if unseen is None else replace(unseen, of=component),
            )
        )
    variants = {evaluation.name: evaluation for evaluation in (whole, *alone.values(), *without.values())}
    figures = result_of(tuple(variants.values()), with_answers=True)
    return Contributions(
        **{each.name: getattr(figures, each.name) for each in fields(figures)},
        system=name,
        primary=primary,
        test=options.test,
        alpha=options.alpha,
        margin=options.margin,
        seed=options.seed,
        whole=whole.name,
        whole_summary=whole.summaries[primary],
        components=tuple(rows),
    )


def on_primary(evaluation: Evaluation, primary: Measure) -> Evaluation:
    """The same evaluation with one measure: nothing else is tested.

    Raises:
        UsageError: it was not evaluated on that measure.
    """
    if primary not in evaluation.values:
        raise UsageError(f"{primary} was not evaluated", expected=", ".join(map(str, evaluation.measures)))
    return with_columns(evaluation, {primary: evaluation})


def _p(comparison: Comparison) -> float | None:
    declared = comparison.measures[comparison.primary].tests.get(comparison.options.test)
    return declared.p_two_sided if declared else None


def _verdict(comparison: Comparison, p_adjusted: float | None) -> VerdictCode:
    code = comparison.verdict.code
    if code not in {VerdictCode.BETTER, VerdictCode.WORSE}:
        return code
    if p_adjusted is not None and p_adjusted > comparison.options.alpha:
        return VerdictCode.NOT_SIGNIFICANT
    return VerdictCode.HELPS if code is VerdictCode.BETTER else VerdictCode.HURTS
