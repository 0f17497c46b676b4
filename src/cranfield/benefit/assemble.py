"""The result of an experiment: arms are joined to scores, analysed, and checked for what makes the comparison invalid."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cranfield.agents.answers.rows import AnswerCost
from cranfield.base.numbers import format_p
from cranfield.base.version import __version__
from cranfield.base.words import count_noun
from cranfield.benefit.analysis.analyse import analyse
from cranfield.benefit.analysis.values import CellObservation
from cranfield.benefit.plan import ArmRole, BenefitPlan, SuccessBy
from cranfield.benefit.reading import CellReading, arm_reading
from cranfield.benefit.records import CellEnd, CellKey, CellRecord, ScoreRecord
from cranfield.benefit.result import (
    BenefitResult,
    CellRow,
    Reading,
    StratumKind,
    StratumResult,
    StratumVerdict,
    TaskRow,
    Validity,
)
from cranfield.benefit.score import reading_of
from cranfield.benefit.tasks import Task, TaskSet
from cranfield.benefit.tool_check import competence
from cranfield.benefit.validity import ExperimentRecords, validity

VOID_REASON = "The comparison is invalid."
_MECHANICAL = frozenset({"compiles"})
_SETTINGS = {"tools", "results", "result_tokens", "results_parameter"}
"""Settings of a tool that a result repeats."""
_PRIVATE = {"base_url", "api_key_env"}
"""Settings of a model that a result leaves out: an address may hold a secret."""
_PRIVATE_OF_SUCCESS: dict[str, Any] = {"judge": _PRIVATE, "checkers": {"__all__": {"env"}}}
_OF_A_RUN = {"schema_version", "arm"}
"""Fields of a preflight that it does not."""
_RATE: Mapping[SuccessBy, str] = {
    SuccessBy.FACTS: "the rate of answers with correct facts",
    SuccessBy.STRUCTURE: "the rate of complete answers",
    SuccessBy.CODE: "the rate of code that passes every check",
}


def assemble(evidence: ExperimentRecords, tasks: TaskSet, *, run: str) -> BenefitResult:
    """The result of an experiment whose cells are scored.

    Args:
        evidence: its records; at least one cell has ended.
        tasks: with their strata and labels.
        run: name of its folder.
    """
    plan = evidence.plan
    analysis = analyse(_observations(evidence, tasks), plan)
    found = sorted(
        [*competence(evidence, tasks), *validity(evidence)],
        key=lambda each: (not each.is_void, not each.leads),
    )
    strata = analysis.strata
    if any(each.is_void for each in found):
        strata = tuple(row.model_copy(update={"verdict": StratumVerdict.VOID, "reason": VOID_REASON}) for row in strata)
    return BenefitResult(
        tree=evidence.tree,
        run=run,
        made_at=max(cell.started_at for cell in evidence.cells.values()),
        name=plan.name,
        plan_digest=plan.digest,
        labels_digest=tasks.labels_digest,
        task_set=tasks.source,
        commit=evidence.read_commit or evidence.commit,
        cranfield_version=__version__,
        agent=_agent(evidence),
        arms={role: arm.name for role, arm in plan.arms.items()},
        tools=_tools(evidence),
        rule={
            **plan.rule.model_dump(mode="json"),
            "success": plan.success.model_dump(mode="json", exclude=_PRIVATE_OF_SUCCESS),
            **{name: getattr(plan, name).model_dump(mode="json") for name in ("weights", "competence", "delivery")},
        },
        sentence=sentence(plan, strata, found),
        validity=tuple(found),
        strata=strata,
        variance=analysis.variance,
        delivered=evidence.delivered,
        reading={role: _reading(evidence, tasks, role) for role in ArmRole},
        losses=analysis.losses,
        tasks=tuple(_task_row(task, evidence) for task in tasks.tasks),
        errors=dict(sorted(Counter(each.error for each in evidence.runs if each.error).items())),
    )


def sentence(plan: BenefitPlan, strata: Sequence[StratumResult], found: Sequence[Validity]) -> str:
    """`knowcode raised the compile rate from 61.0 % to 78.0 % on 30 tasks, McNemar p .0410.`; a void comparison has none.

    What must be known before it is read stands before it.

    Rates are the means over tasks of the means over seeds, as in every table; the test compares one success a task.
    """
    void = [each.message for each in found if each.is_void]
    if void:
        return f"No verdict: {'; '.join(void)}."
    row = next((each for each in strata if each.kind is StratumKind.ALL), None)
    if row is None or not row.mcnemar.n:
        return "No verdict: no task has a decided success in both arms."
    test = row.mcnemar
    arms = (row.arms[role].success for role in (ArmRole.CONTROL, ArmRole.TREATMENT))
    before, after = (round(100 * (share or 0.0), 1) for share in arms)
    change = after - before
    values = f"at {after:.1f} %" if not change else f"from {before:.1f} % to {after:.1f} %"
    verb = "left" if not change else "raised" if change > 0 else "lowered"
    name, rate = plan.arms[ArmRole.TREATMENT].name, _rate(plan)
    p = "" if test.p is None else f", McNemar p {format_p(test.p)}"
    if test.p is None or test.p > plan.rule.alpha:
        p += ": no significant difference"
    tasks = count_noun(test.n, "tasks") if test.n == row.n_tasks else f"{test.n} of {count_noun(row.n_tasks, 'tasks')}"
    first = "".join(f"Caution: {each.message}. " for each in found if each.leads)
    return f"{first}{name} {verb} {rate} {values} on {tasks}{p}."


def _rate(plan: BenefitPlan) -> str:
    is_compile = plan.success.by is SuccessBy.CODE and set(plan.success.checks) == _MECHANICAL
    return "the compile rate" if is_compile else _RATE[plan.success.by]


def _observations(evidence: ExperimentRecords, tasks: TaskSet) -> list[CellObservation]:
    """Every planned cell in the order of the tasks, with its scored run or its last one."""
    last = {run.key: run for run in evidence.runs} | dict(evidence.cells)
    place = {task.id: number for number, task in enumerate(tasks.tasks)}
    found = []
    for key in sorted(evidence.planned, key=lambda each: place[each.task_id]):
        task, run, score = tasks.by_id[key.task_id], last.get(key), evidence.scores.get(key)
        more: dict[str, Any] = {}
        if run is not None:
            more = {"end": run.end, "usage": run.usage, "delivery": run.delivery, "transcript": run.transcript}
        success = score.success if score is not None else None
        found.append(CellObservation(key, task.strata, task.baseline_answerable, success=success, **more))
    return found


def _reading(evidence: ExperimentRecords, tasks: TaskSet, role: ArmRole) -> Reading:
    cells = defaultdict[str, list[CellReading]](list)
    for cell in evidence.by_arm[role]:
        cells[cell.key.task_id].append(reading_of(cell, tasks))
    n_unread, n_successes = evidence.unread(role)
    return arm_reading(cells).model_copy(update={"n_unread": n_unread, "n_successes": n_successes})


def _task_row(task: Task, evidence: ExperimentRecords) -> TaskRow:
    cells = [cell for cell in evidence.cells.values() if cell.key.task_id == task.id and cell.key in evidence.scores]
    cells.sort(key=lambda each: each.key.seed)
    arms = {
        role: tuple(cell_row(cell, evidence.scores[cell.key]) for cell in cells if cell.key.arm is role)
        for role in ArmRole
    }
    return TaskRow(task_id=task.id, strata=task.strata, baseline_answerable=task.baseline_answerable, arms=arms)


def cost_of(cell: CellRecord) -> AnswerCost:
    """What a cell cost, in the fields of a single-arm harness."""
    usage = cell.usage
    return AnswerCost(
        total_tokens=usage.total,
        tool_calls=usage.n_tool_calls,
        turns=usage.turns,
        wall_clock_s=usage.wall_s,
        money=usage.money,
    )


def cell_row(cell: CellRecord, score: ScoreRecord) -> CellRow:
    """The row of a scored cell."""
    return CellRow(
        query_id=cell.key.task_id,
        answered=cell.end is CellEnd.ANSWERED,
        **score.model_dump(include={"structure_correct", "structure_score", "facts_correct", "facts_score", "facts"}),
        **cost_of(cell).model_dump(),
        seed=cell.key.seed,
        end=cell.end,
        **score.model_dump(include={"success", "why", "checks", "findings", "gold_recall", "gold_used"}),
        usage=cell.usage,
        delivery=cell.delivery,
        transcript=cell.transcript,
    )


def _agent(evidence: ExperimentRecords) -> dict[str, Any]:
    """Kind and model as configured, what was reported, versions. Not its variables, which may hold secrets."""
    plan, cells = evidence.plan, evidence.by_arm
    model = plan.agent.model
    return {
        "kind": plan.agent.kind,
        "model": None if model is None else model.model_dump(mode="json", exclude=_PRIVATE),
        "system": plan.agent.system,
        "network": plan.agent.network,
        "limits": plan.limits.model_dump(mode="json"),
        "seeds": plan.seeds,
        "reported_models": {
            role.value: sorted({name for cell in cells[role] for name in cell.models}) for role in cells
        },
        "versions": {role.value: _versions(cells[role]) for role in cells},
    }


def _versions(cells: Iterable[CellRecord]) -> dict[str, list[str]]:
    found = defaultdict[str, set[str]](set)
    for cell in cells:
        for name, version in cell.versions.items():
            found[name].add(version)
    return {name: sorted(versions) for name, versions in sorted(found.items())}


def _tools(evidence: ExperimentRecords) -> dict[str, Any]:
    """What was under test: settings of the plan, and what each reported of itself last; where it was ok once, when it was."""
    records = sorted(evidence.preflights, key=lambda record: record.ok)
    last = {record.tool: record.model_dump(mode="json", exclude=_OF_A_RUN) for record in records}
    return {
        name: {
            "arms": [role.value for role, arm in evidence.plan.arms.items() if name in arm.tools],
            "settings": server.model_dump(mode="json", include=_SETTINGS),
            "preflight": last.get(name),
        }
        for name, server in evidence.plan.tools.items()
    }


def last_scores(scores: Iterable[ScoreRecord]) -> dict[CellKey, ScoreRecord]:
    """The last score of each cell: one that was decided later replaces one that was not."""
    return {score.key: score for score in scores}
