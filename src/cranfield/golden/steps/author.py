"""Author and screen: candidates of each cell, written one after another; and which of them go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic import ValidationError

from cranfield.agents.recording import now
from cranfield.base.concurrency.loop import run_all
from cranfield.golden.folder import Step
from cranfield.golden.outcomes import RecordFinding
from cranfield.golden.plan import Cell, Plan
from cranfield.golden.records import QueryCandidate
from cranfield.golden.roles import CellBrief, GoldenRole, author_task
from cranfield.golden.screen import Screener, ScreenReason
from cranfield.golden.states import PLANNED, STATES, State
from cranfield.golden.steps.context import NoOutputError, RoleJob, StepContext, WaitingError

NO_ROOM = frozenset({ScreenReason.CELL_FULL, ScreenReason.QUOTA_FULL})
"""Reasons that end where another candidate fails: until then it is a reserve."""


def _drafts_of(plan: Plan, cell: Cell) -> list[str]:
    """Ids of all drafts of a cell, written or not: the same in every run of the plan."""
    name = f"{plan.name}-{cell.task_type}-{cell.difficulty}"
    return [f"{name}-{number:02d}" for number in range(1, plan.emitted(cell) + 1)]


async def author_all(context: StepContext) -> None:
    """Write the candidates of all cells: cells at the same time, the drafts of a cell in turn."""
    await run_all(_author_cell(context, cell) for cell in context.plan.cells)


async def _author_cell(context: StepContext, cell: Cell) -> None:
    others: list[str] = []
    for number, query_id in enumerate(_drafts_of(context.plan, cell), start=1):
        known = context.index.candidates.get(query_id)
        if known is None and context.index.rejections.get(query_id, 1) is None:
            try:
                known = await _draft(context, cell, RoleJob(query_id, GoldenRole.AUTHOR), number, others)
            except WaitingError as error:  # later drafts are to know this one
                context.waiting.append(error.waiting)
                return
        if known is not None:
            others.append(known.query_text)


async def _draft(
    context: StepContext, cell: Cell, job: RoleJob, number: int, others: Sequence[str]
) -> QueryCandidate | None:
    """The candidate; None where the author gave none that can be used, which is written down."""
    focus = cell.focus[(number - 1) % len(cell.focus)] if cell.focus else ""
    scope = context.plan.scope_of(cell)
    brief = CellBrief(
        task_type=cell.task_type,
        difficulty=cell.difficulty,
        target_kind=context.plan.targets_of(cell),
        scope=tuple(scope),
        focus_area=focus,
        others=tuple(others),
        feedback=context.feedback_of(cell.task_type, cell.difficulty),
    )
    task = author_task(context.settings(GoldenRole.AUTHOR), brief, context.prompts)
    # Where a draft failed, the next one has the same prompt: it is another request by its seed.
    task = replace(task, sampling=replace(task.sampling, seed=(task.sampling.seed or context.plan.seed) + number))
    try:
        transcript = await context.ask(job, task, cell.task_type)
        candidate = QueryCandidate(
            **context.made(job, transcript, cell.task_type),
            task_type=cell.task_type,
            difficulty=cell.difficulty,
            scope=", ".join(scope),
            focus_area=focus,
            authored_by=f"agent:author:{task.model}",
            created_at=now(),
        )
    except NoOutputError as error:
        reasons = [error.finding]
    except ValidationError as error:
        reasons = [RecordFinding(kind="invalid_candidate", message=each["msg"]) for each in error.errors()]
    else:
        context.index.add(Step.CANDIDATES, candidate)
        context.report(job.query_id)
        return candidate
    context.reject(job.query_id, State.NOT_AUTHORED, reasons, task_type=cell.task_type, difficulty=cell.difficulty)
    return None


def reopen(context: StepContext) -> None:
    """Once every record has an end, let those go on again of which no reply could be read, where their cells have room.

    A draft without a candidate is written again by `author_all`. A run that was interrupted goes on first, as if it had not been;
    nothing is opened again under a review by people.
    """
    index, folder = context.index, context.index.folder
    statuses = {each.query_id: each for each in index.statuses()}
    is_planned = folder.manifest.source == PLANNED
    lacks_drafts = is_planned and len(statuses) < context.plan.n_drafts
    has_ended = not lacks_drafts and all(STATES[each.state].is_end for each in statuses.values())
    if not has_ended or (folder.path / Step.REVIEW_SAMPLES).is_file():
        return
    unreadable = [name for name, each in statuses.items() if each.is_unreadable]
    if not is_planned:
        for name in unreadable:
            index.reopen(name)
        return
    filling = [each for each in in_order(context) if STATES[statuses[each.query_id].state].fills_cell]
    screener = Screener(context.plan, context.source)
    for candidate in in_order(context):
        if candidate.query_id in unreadable and not screener.judge(candidate, filling):
            index.reopen(candidate.query_id)
            filling.append(candidate)
    for cell in context.plan.cells:
        missing = cell.n - sum((each.task_type, each.difficulty) == cell.key for each in filling)
        unwritten = [
            name for name in _drafts_of(context.plan, cell) if name in unreadable and name not in index.candidates
        ]
        for name in unwritten[: max(0, missing)]:
            index.reopen(name)


def in_order(context: StepContext) -> list[QueryCandidate]:
    """Candidates in the order of the plan, whenever they were written."""
    candidates = context.index.candidates
    names = (name for cell in context.plan.cells for name in _drafts_of(context.plan, cell))
    return [candidates[name] for name in names if name in candidates]


def screen(context: StepContext, accepted: Sequence[QueryCandidate], judged: set[str]) -> list[QueryCandidate]:
    """Candidates that go on now: those that were not judged yet, and the reserves for which there is room.

    Args:
        context: with all candidates.
        accepted: earlier, and not failed since.
        judged: ids of candidates that went on earlier; those that go on now are added.
    """
    screener = Screener(context.plan, context.source)
    chosen: list[QueryCandidate] = []
    for candidate in in_order(context):
        query_id = candidate.query_id
        rejection = context.index.rejections.get(query_id, 1)
        if query_id in judged or (rejection is not None and rejection.state is State.SCREENED_OUT):
            continue
        problems = screener.judge(candidate, [*accepted, *chosen])
        if not problems:
            chosen.append(candidate)
            judged.add(query_id)
        elif not {each.reason for each in problems} <= NO_ROOM:
            reasons = [RecordFinding(kind=each.reason, message=each.message) for each in problems]
            context.reject(query_id, State.SCREENED_OUT, reasons)
    return chosen


def reserve_rest(context: StepContext, judged: set[str]) -> None:
    """Write that the candidates that never went on are not needed."""
    for candidate in in_order(context):
        if candidate.query_id not in judged and context.index.rejections.get(candidate.query_id, 1) is None:
            context.reject(candidate.query_id, State.RESERVE, [])
