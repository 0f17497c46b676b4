"""From scored cells to estimates and verdicts of every stratum."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cranfield.benefit.analysis.estimates import TaskEstimator, advise, mcnemar_of, p_of_loss
from cranfield.benefit.analysis.values import (
    AnalysedTask,
    Analysis,
    CellObservation,
    Quantity,
    arm_means,
    losses_of,
    tasks_of,
    tokens,
    weighted_tokens,
)
from cranfield.benefit.analysis.verdict import StratumDecision, VerdictEvidence, decide
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.result import Estimate, StratumKind, StratumResult
from cranfield.stats.describe import describe
from cranfield.stats.result import holm

NOT_LABELLED = "not labelled"
"""Value of a stratum that a task does not name."""

_ESTIMATES: Mapping[str, Callable[[TaskEstimator], Estimate]] = {
    "success_lift": TaskEstimator.lift,
    "token_ratio": lambda of: of.ratio(Quantity.TOKENS),
    "net_tokens": lambda of: of.saved(Quantity.TOKENS),
    "net_tokens_weighted": lambda of: of.saved(Quantity.WEIGHTED_TOKENS),
    "net_tokens_per_success": TaskEstimator.saved_per_success,
    "net_tokens_both": lambda of: of.saved(Quantity.TOKENS_OF_SUCCESSES),
    "tool_calls": lambda of: of.more(Quantity.TOOL_CALLS),
    "turns": lambda of: of.more(Quantity.TURNS),
    "latency_ratio": lambda of: of.ratio(Quantity.WALL_S),
}
_WORST = (Quantity.LOWEST_SUCCESS, Quantity.HIGHEST_SUCCESS)
"""What treatment and control are if every undecided cell counts against the treatment."""
_SCENARIOS = {"against": _WORST, "for": (_WORST[1], _WORST[0])}


def analyse(observations: Sequence[CellObservation], plan: BenefitPlan) -> Analysis:
    """Estimate what the treatment changes, in every stratum, and give the verdicts.

    Args:
        observations: every planned cell, whether it was run or not; strata and their values keep this order.
        plan: its rule, weights, strata and seed.
    """
    tasks = tasks_of(observations, plan)
    strata: list[StratumResult] = []
    for family in families(tasks, plan.strata):
        strata += _family_results(family, plan)
    by_id = _by_id(tasks)
    return Analysis(tuple(strata), advise(by_id), losses_of(by_id))


@dataclass(frozen=True, slots=True)
class TaskStratum:
    """Tasks that share a value, or several."""

    kind: StratumKind
    values: Mapping[str, str]
    tasks: Sequence[AnalysedTask]


def families(tasks: Sequence[AnalysedTask], names: Sequence[str]) -> Iterator[list[TaskStratum]]:
    """The strata of each family, whose tests are adjusted together: all cells of the matrix, the values of one stratum, the values of
    `baseline_answerable`, and all tasks.

    A stratum that no task names is left out. Where there is one only, its values are the cells of the matrix.
    """
    used = [name for name in names if any(name in task.strata for task in tasks)]
    if used:
        yield _grouped(StratumKind.CELL, used, tasks, lambda task, name: task.strata.get(name, NOT_LABELLED))
    if len(used) > 1:
        for name in used:
            yield _grouped(StratumKind.MARGIN, [name], tasks, lambda task, name: task.strata.get(name, NOT_LABELLED))
    if any(task.baseline_answerable is not None for task in tasks):
        yield _grouped(StratumKind.BASELINE, [str(StratumKind.BASELINE)], tasks, _answerable)
    if tasks:
        yield [TaskStratum(StratumKind.ALL, {}, _by_id(tasks))]


def _grouped(
    kind: StratumKind, names: Sequence[str], tasks: Sequence[AnalysedTask], value: Callable[[AnalysedTask, str], str]
) -> list[TaskStratum]:
    groups: dict[tuple[str, ...], list[AnalysedTask]] = {}
    for task in tasks:
        groups.setdefault(tuple(value(task, name) for name in names), []).append(task)
    return [
        TaskStratum(kind, dict(zip(names, values, strict=True)), _by_id(members)) for values, members in groups.items()
    ]


def _by_id(tasks: Sequence[AnalysedTask]) -> list[AnalysedTask]:
    """In one order, whatever that of the cells: a sum of floats and a resample depend on it."""
    return sorted(tasks, key=lambda task: task.task_id)


def _answerable(task: AnalysedTask, _: str) -> str:
    return NOT_LABELLED if task.baseline_answerable is None else str(task.baseline_answerable).lower()


def _family_results(family: Sequence[TaskStratum], plan: BenefitPlan) -> list[StratumResult]:
    estimators = [TaskEstimator(each.tasks, plan.rule.alpha, plan.seed) for each in family]
    rows = [{name: estimate(of) for name, estimate in _ESTIMATES.items()} for of in estimators]
    saved = "net_tokens" if plan.rule.tokens == "raw" else "net_tokens_weighted"
    evidence = [_evidence(of, row["success_lift"], row[saved], plan) for of, row in zip(estimators, rows, strict=True)]
    decisions = decide(evidence, plan.rule)
    reasons = _reasons(family, estimators, evidence, decisions, plan)
    for name in _ESTIMATES:
        adjusted = holm([row[name].p if row[name].n >= plan.rule.min_tasks else None for row in rows])
        for row, p, decision in zip(rows, adjusted, decisions, strict=True):
            in_rule = {"success_lift": decision.p_lift, saved: decision.p_saved}
            row[name] = row[name].model_copy(update={"p_adjusted": in_rule.get(name, p)})
    exact = [mcnemar_of(each.tasks) for each in family]
    adjusted = holm([each.p if each.n >= plan.rule.min_tasks else None for each in exact])
    return [
        StratumResult(
            kind=stratum.kind,
            stratum=stratum.values,
            n_tasks=len(stratum.tasks),
            n_seeds=max(len(task.cells[role]) for task in stratum.tasks for role in ArmRole),
            arms={role: arm_means(stratum.tasks, role) for role in ArmRole},
            **row,
            per_protocol_lift=_per_protocol(of),
            mcnemar=test.model_copy(update={"p_adjusted": p}),
            minimal_detectable_lift=decision.detectable,
            verdict=decision.verdict,
            success=decision.success,
            cost=decision.cost,
            reason=reason,
        )
        for stratum, of, row, test, p, decision, reason in zip(
            family, estimators, rows, exact, adjusted, decisions, reasons, strict=True
        )
    ]


def _evidence(
    of: TaskEstimator, lift: Estimate, saved: Estimate, plan: BenefitPlan, quantities: tuple[Quantity, ...] = ()
) -> VerdictEvidence:
    deltas = of.deltas(*quantities or (Quantity.SUCCESS,))
    p_loss = p_of_loss(deltas, plan.rule.lift_margin, plan.rule.alpha)
    # Share of the scored runs without the tokens of the rule, of the arm with more of them.
    shares = []
    for role in ArmRole:
        scored = [each for task in of.tasks for each in task.cells[role] if each.is_scored]
        known = [
            tokens(each) if plan.rule.tokens == "raw" else weighted_tokens(each.usage, plan.weights) for each in scored
        ]
        shares.append(known.count(None) / len(known) if known else 0.0)
    return VerdictEvidence(lift, saved, p_loss, describe(deltas).std, max(shares))


def _per_protocol(of: TaskEstimator) -> Estimate | None:
    has_tool = any(each.delivery is not None for task in of.tasks for cells in task.cells.values() for each in cells)
    return of.lift(Quantity.SUCCESS_WHERE_CALLED, Quantity.SUCCESS_WHERE_CALLED) if has_tool else None


def _reasons(
    family: Sequence[TaskStratum],
    estimators: Sequence[TaskEstimator],
    evidence: Sequence[VerdictEvidence],
    decisions: Sequence[StratumDecision],
    plan: BenefitPlan,
) -> list[str]:
    """The reason of each verdict, with what it would be if all undecided cells counted against the treatment, or for it."""
    undecided = [
        sum(
            cell.is_scored and cell.success is None
            for task in each.tasks
            for cells in task.cells.values()
            for cell in cells
        )
        for each in family
    ]
    reasons = [each.reason for each in decisions]
    if not any(undecided):
        return reasons
    for side, quantities in _SCENARIOS.items():
        changed = [
            _evidence(of, of.lift(*quantities), each.saved, plan, quantities)
            for of, each in zip(estimators, evidence, strict=True)
        ]
        for place, other in enumerate(decide(changed, plan.rule)):
            if undecided[place] and other.verdict is not decisions[place].verdict:
                cells = f"{undecided[place]} undecided cell{'s' if undecided[place] > 1 else ''}"
                reasons[place] += f" With the {cells} counted {side} the treatment: {other.verdict}."
    return reasons
