"""Contribution of each component: alone, and as the difference between all components and all but it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cranfield.errors import UsageError
from cranfield.evaluation.columns import with_columns
from cranfield.evaluation.compare import compare, unseen_of_pair
from cranfield.evaluation.unseen import Unseen
from cranfield.evaluation.values import Comparison, Evaluation, MeasureComparison, Summary
from cranfield.evaluation.verdict import sign_of
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.measures import Measure, parse
from cranfield.options.compare import CompareOptions
from cranfield.stats.result import holm


@dataclass(frozen=True, slots=True)
class Contribution:
    """One component. Differences are all components minus all but this one, query by query."""

    component: str
    alone: Evaluation
    without: Evaluation
    """All components but this one; of two components, the other alone."""
    comparison: Comparison
    """All but this one against all, on the primary measure."""
    p: float | None
    p_adjusted: float | None
    """After Holm, over the components."""
    verdict: VerdictCode
    """`helps`, `hurts`, `equivalent`, `not_significant` or `invalid`."""
    n_gained: int
    """Queries that are worse without it."""
    n_lost: int
    """Queries that are better without it."""
    n_only: int
    """Queries that are worse without it, and without no other component."""

    @property
    def unseen(self) -> Unseen | None:
        """Queries of a kind that is not among these, and what would turn the verdict; None from 50 queries on."""
        codes = {VerdictCode.HELPS: VerdictCode.BETTER, VerdictCode.HURTS: VerdictCode.WORSE}
        unseen = unseen_of_pair(self.comparison, codes.get(self.verdict, self.verdict))
        return None if unseen is None else replace(unseen, of=self.component)

    @property
    def effect(self) -> MeasureComparison:
        """The difference on the primary measure."""
        return self.comparison.measures[self.comparison.primary]

    @property
    def alone_summary(self) -> Summary:
        """The primary measure of the system with this component and no other."""
        return self.alone.summaries[self.comparison.primary]

    @property
    def without_summary(self) -> Summary:
        """The primary measure of the system with all components but this one."""
        return self.without.summaries[self.comparison.primary]


@dataclass(frozen=True)
class Contributions:
    """A system and what each of its components brings to it."""

    name: str
    whole: Evaluation
    """All components on."""
    primary: Measure
    options: CompareOptions
    rows: tuple[Contribution, ...]

    @property
    def variants(self) -> tuple[Evaluation, ...]:
        """Every variant once: the whole, each component alone, all but each."""
        found = [self.whole, *(row.alone for row in self.rows), *(row.without for row in self.rows)]
        return tuple({evaluation.name: evaluation for evaluation in found}.values())

    @property
    def pilot(self) -> bool:
        """True when any variant is not for the record."""
        return any(evaluation.pilot for evaluation in self.variants)


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
        rows.append(
            Contribution(
                component=component,
                alone=alone[component],
                without=without[component],
                comparison=comparison,
                p=p_values[component],
                p_adjusted=adjusted[component],
                verdict=_verdict(comparison, adjusted[component]),
                n_gained=len(worse_without[component]),
                n_lost=sum(delta * sign < 0 for delta in differences.values()),
                n_only=len(worse_without[component] - others),
            )
        )
    return Contributions(name, whole, primary, options, tuple(rows))


def on_primary(evaluation: Evaluation, primary: Measure) -> Evaluation:
    """The same evaluation with one measure: nothing else is tested.

    Raises:
        UsageError: it was not evaluated on that measure.
    """
    if primary not in evaluation.values:
        raise UsageError(f"{primary} was not evaluated", expected=", ".join(map(str, evaluation.measures)))
    return with_columns(evaluation, {primary: evaluation})


def _p(comparison: Comparison) -> float | None:
    declared = comparison.measures[comparison.primary].tests.get(comparison.test)
    return declared.p_two_sided if declared else None


def _verdict(comparison: Comparison, p_adjusted: float | None) -> VerdictCode:
    code = comparison.verdict.code
    if code not in {VerdictCode.BETTER, VerdictCode.WORSE}:
        return code
    if p_adjusted is not None and p_adjusted > comparison.alpha:
        return VerdictCode.NOT_SIGNIFICANT
    return VerdictCode.HELPS if code is VerdictCode.BETTER else VerdictCode.HURTS
