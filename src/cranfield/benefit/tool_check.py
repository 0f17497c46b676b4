"""The preflight of an experiment: every tool under test serves what the plan wants, and the same as before."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from cranfield.agents.answers.rows import Answered, expected_places
from cranfield.base.errors import PreflightError, Problem
from cranfield.base.words import and_list, count_noun
from cranfield.benefit.agent import ArmAgent
from cranfield.benefit.codecheck.report import CodeCheck
from cranfield.benefit.coding import CodingTask
from cranfield.benefit.delivery import tool_preflight
from cranfield.benefit.folder import ExperimentFile, ExperimentFolder
from cranfield.benefit.mcp_tools import McpTools
from cranfield.benefit.plan import ArmRole, BenefitPlan
from cranfield.benefit.records import CellRecord, PreflightRecord, ScoreReason
from cranfield.benefit.redaction import redaction_of
from cranfield.benefit.result import Validity, ValidityKind
from cranfield.benefit.score import Checkers, Scorer, SealedAnswer, SealedScore, required_checks
from cranfield.benefit.tasks import Task, TaskSet
from cranfield.benefit.validity import CALLS_HINT, ExperimentRecords
from cranfield.model.judging import Label

_SAME = ("server", "found", "tools", "schema_digest", "instructions_digest")
"""Fields of a preflight that may not change within an experiment."""


async def check_tools(folder: ExperimentFolder, agents: Mapping[ArmRole, ArmAgent]) -> None:
    """Ask the tools of both arms what they serve, and write down the answers; one that ends the call is not ok.

    Raises:
        PreflightError: with every tool that is not as the plan wants it, or other than when the experiment began.
    """
    plan = folder.plan
    first = {(record.arm, record.tool): record for record in reversed(folder.preflights()) if record.ok}
    problems = []
    for role in ArmRole:
        records = await agents[role].preflight()
        for record in records:
            found = _problems(record, first.get((role, record.tool)))
            refused = {"ok": False, "message": "; ".join(each.message for each in found)}
            folder.append(ExperimentFile.PREFLIGHT, record.model_copy(update=refused) if found else record)
            problems += found
        missing = sorted(set(plan.servers(role)) - {record.tool for record in records})
        problems += [Problem("no preflight of a tool", path=f"{role}.{name}") for name in missing]
    if problems:
        raise PreflightError(problems)


async def try_tools(plan: BenefitPlan, commit: str) -> list[PreflightRecord]:
    """Start every tool under test of a plan, ask it what it serves, and end it.

    Args:
        plan: with its tools.
        commit: of the repository that the tasks are about; empty: not compared.

    Raises:
        PreflightError: with every tool that is not as the plan wants it.
        MissingExtraError: the library for MCP is not installed.
        ConfigError: a variable of the environment is missing.
    """
    records = []
    for role in ArmRole:
        for name, server in plan.servers(role).items():
            tools = McpTools(name, server)
            try:
                records.append(await tool_preflight(role, tools, commit))
            finally:
                await tools.aclose()
    if problems := [problem for record in records for problem in _problems(record, None)]:
        raise PreflightError(problems)
    return records


async def ask_again(folder: ExperimentFolder, agents: Mapping[ArmRole, ArmAgent]) -> None:
    """Ask the tools once more after cells were run, and write down the answers: whether they are still what they were."""
    for role in ArmRole:
        for record in await agents[role].preflight():
            folder.append(ExperimentFile.PREFLIGHT, record.model_copy(update={"after_run": True}))


def has_last_answers(folder: ExperimentFolder) -> bool:
    """Whether the tools were asked after the last cell; a call that was killed did not come to it."""
    records = folder.preflights()
    return not records or records[-1].after_run


def tool_changes(record: PreflightRecord, earlier: PreflightRecord) -> list[str]:
    """What a tool says of itself that it did not say earlier."""
    return [name for name in _SAME if getattr(record, name) != getattr(earlier, name)]


def _problems(record: PreflightRecord, first: PreflightRecord | None) -> list[Problem]:
    where = f"{record.arm}.{record.tool}"
    if not record.ok:
        return [Problem(record.message or "the tool is not ready", path=where)]
    changed = [] if first is None else tool_changes(record, first)
    if not changed:
        return []
    hint = "start a new experiment: cells of two versions of a tool cannot be compared"
    return [Problem(f"the tool has changed since the experiment began: {', '.join(changed)}", path=where, hint=hint)]


_MAX_REASONS = 3


def competence(evidence: ExperimentRecords, tasks: TaskSet) -> tuple[Validity, ...]:
    """What the control arm lacks of what the plan demands; none where it is competent.

    Its success counts on tasks whose label says that they can be done without the tool: the mean over tasks of the mean over
    their decided cells. Where there is no such task, nothing shows that it is competent, and that is a caveat.
    """
    cells = evidence.by_arm[ArmRole.CONTROL]
    if not cells:
        return ()
    return (*_success(evidence, tasks), *_search_use(evidence, cells))


def _success(evidence: ExperimentRecords, tasks: TaskSet) -> tuple[Validity, ...]:
    by_task = defaultdict[str, list[bool]](list)
    for score in evidence.scores_of(ArmRole.CONTROL):
        if tasks.by_id[score.key.task_id].baseline_answerable and score.success is not None:
            by_task[score.key.task_id].append(score.success)
    floor, arm = evidence.plan.competence.success, evidence.name(ArmRole.CONTROL)
    if not by_task:
        message = (
            f"no scored task is labelled as answerable without the tool: so the competence of {arm} cannot be checked"
        )
        return (Validity(kind=ValidityKind.COMPETENCE_UNKNOWN, is_void=False, message=message),)
    success = fmean(fmean(found) for found in by_task.values())
    if success >= floor:
        return ()
    where = f"{count_noun(len(by_task), 'tasks')} that can be done without the tool"
    message = f"{arm} succeeds at {success:.0%} on {where}; the plan requires {floor:.0%}{_why(evidence, tasks)}"
    if not _can_search(evidence):
        message = f"{arm}, which has no tools in the plan, succeeds at {success:.0%} on {where}: this describes only the model"
    return (Validity(kind=ValidityKind.CONTROL_INCOMPETENT, is_void=_can_search(evidence), message=message),)


def _why(evidence: ExperimentRecords, tasks: TaskSet) -> str:
    """How it fails, and whether the other arm fails there too: then it is not the control that is wrong."""
    treatment, control = (
        [score for score in evidence.scores_of(role) if tasks.by_id[score.key.task_id].baseline_answerable]
        for role in ArmRole
    )
    failed = [score for score in control if score.success is False]
    whys = Counter(evidence.cells[score.key].error or (score.why.value if score.why else "") for score in failed)
    reasons = and_list([f"{n} {why}" for why, n in whys.most_common(_MAX_REASONS) if why])
    text = f" ({len(failed)} failed: {reasons})" if reasons else ""
    others = [score.success for score in treatment if score.success is not None]
    if others and fmean(others) < evidence.plan.competence.success:
        text += f"; {evidence.name(ArmRole.TREATMENT)} succeeds at {fmean(others):.0%} there: check the replies, the judge and the facts first"
    return text


def _can_search(evidence: ExperimentRecords) -> bool:
    """Whether the plan gives the control a tool. Without one, how little it can do is what the tool is compared with."""
    control = evidence.plan.arms[ArmRole.CONTROL]
    return bool(control.tools or (evidence.plan.repo and control.native))


def _search_use(evidence: ExperimentRecords, cells: Sequence[CellRecord]) -> tuple[Validity, ...]:
    """Share of the cells in which a tool gave a result, of those whose calls are known.

    Of a control with another index, its tool is how it searches.
    """
    plan, arm = evidence.plan, evidence.name(ArmRole.CONTROL)
    if not _can_search(evidence):
        return ()
    known, floor = [used for cell in cells if (used := cell.usage.has_result) is not None], plan.competence.search_use
    share = sum(known) / len(known) if known else floor
    if share >= floor:
        if len(known) == len(cells) or not floor:
            return ()
        message = f"tool calls are unknown for {len(cells) - len(known)} of {count_noun(len(cells), 'cells')} of {arm}, so it is unknown whether it used its search tools there ({CALLS_HINT})"
        return (Validity(kind=ValidityKind.COMPETENCE_UNKNOWN, is_void=False, message=message),)
    message = f"{arm} used its search tools in {share:.0%} of {count_noun(len(known), 'cells')}; the plan requires {floor:.0%}"
    return (Validity(kind=ValidityKind.CONTROL_INCOMPETENT, is_void=True, message=message),)


class ScoringFault(StrEnum):
    """What is wrong with how a task is scored."""

    GOLD_FAILS = "gold_fails"
    EMPTY_PASSES = "empty_passes"
    TRAP_PASSES = "trap_passes"
    NO_REFERENCE = "no_reference"
    NOT_CHECKED = "not_checked"
    """A check required by the plan cannot run here."""
    SYMBOLS_UNKNOWN = "symbols_unknown"
    """No test runs the gold answer, and symbols of it could not be looked up."""


_SENTENCES: Mapping[ScoringFault, str] = {
    ScoringFault.GOLD_FAILS: "the gold answer is not a success",
    ScoringFault.EMPTY_PASSES: "an empty answer is a success",
    ScoringFault.TRAP_PASSES: "a wrong answer of the task is a success",
    ScoringFault.NO_REFERENCE: "it has no reference solution, so its checks cannot be verified",
    ScoringFault.NOT_CHECKED: "a check required by the plan cannot run here",
    ScoringFault.SYMBOLS_UNKNOWN: "no test runs its reference, and some of its symbols could not be looked up (add `tests`, or annotations)",
}
_OPEN: Mapping[ScoreReason | None, ScoringFault] = {
    ScoreReason.CHECK_MISSING: ScoringFault.NOT_CHECKED,
    ScoreReason.SYMBOLS_UNKNOWN: ScoringFault.SYMBOLS_UNKNOWN,
}
"""Fault of a gold answer that is not decided, by the reason."""
_IDLE = "pass\n"
"""Code that does nothing: tests must fail it."""


@dataclass(frozen=True, slots=True)
class TaskFault:
    """A task that cannot be scored."""

    task_id: str
    kind: ScoringFault
    why: ScoreReason | None = None
    detail: str = ""
    notes: tuple[str, ...] = ()
    """Why a check cannot run."""

    @property
    def sentence(self) -> str:
        """What is wrong, without the task."""
        if self.notes:
            return f"{_SENTENCES[self.kind]}: {'; '.join(self.notes)}"
        return " ".join([_SENTENCES[self.kind], *([f"({self.why})"] if self.why else [])])


def scoring_problems(faults: Iterable[TaskFault]) -> list[Problem]:
    """Faults as errors report them: what this machine lacks is one problem for all tasks that need it."""
    found = defaultdict[tuple[str, ...], list[TaskFault]](list)
    for place, fault in enumerate(faults):
        alone = () if fault.notes else (str(place),)
        found[fault.sentence, fault.detail, *alone].append(fault)
    return [
        Problem(f"{_tasks_text([each.task_id for each in same])}: {same[0].sentence}", got=same[0].detail)
        for same in found.values()
    ]


def _tasks_text(ids: Sequence[str]) -> str:
    return f"task {ids[0]}" if len(ids) == 1 else f"task {ids[0]} and {len(ids) - 1} more"


async def check_scoring(plan: BenefitPlan, tasks: TaskSet, checkers: Checkers | None = None) -> tuple[TaskFault, ...]:
    """The tasks that cannot be scored, in their order. No model is called: rules decide gold and empty answers.

    Args:
        plan: with its rule of success, and the names that are redacted, of the labels too.
        tasks: of the plan.
        checkers: target of code to its checker.
    """
    scorer = Scorer(tasks, plan.success, redact=redaction_of(plan), checkers=checkers)
    found = await asyncio.gather(*(_check(plan, tasks, task, scorer) for task in tasks.tasks))
    return tuple(fault for faults in found for fault in faults)


async def _check(plan: BenefitPlan, tasks: TaskSet, task: Task, scorer: Scorer) -> list[TaskFault]:
    coding: CodingTask | None = task.coding
    required = required_checks(plan.success, coding) if coding is not None else ()
    faults = []
    if coding is not None and not coding.reference:
        faults.append(TaskFault(task.id, ScoringFault.NO_REFERENCE))
    else:
        gold = await scorer.score(gold_answer(tasks, task))
        if gold.why in _OPEN:
            return [TaskFault(task.id, _OPEN[gold.why], gold.why, _states(gold), gold.notes)]
        if gold.success is not True:
            faults.append(TaskFault(task.id, ScoringFault.GOLD_FAILS, gold.why, _states(gold)))
    idle = dict.fromkeys(coding.writes, _IDLE) if coding is not None and CodeCheck.TESTS in required else {}
    empty = await scorer.score(SealedAnswer("empty", task.id, Answered(), idle))
    if empty.success is not False:
        faults.append(TaskFault(task.id, ScoringFault.EMPTY_PASSES, empty.why))
    for trap in coding.traps if coding is not None else ():
        if trap.fails in required:
            score = await scorer.score(SealedAnswer("trap", task.id, Answered(), trap.files))
            if score.success is not False:
                faults.append(TaskFault(task.id, ScoringFault.TRAP_PASSES, score.why, trap.symbol))
    return faults


def gold_answer(tasks: TaskSet, task: Task) -> SealedAnswer:
    """The answer that the label, or the reference solution, calls right."""
    if task.coding is not None:
        return SealedAnswer("gold", task.id, Answered(), task.coding.reference)
    if tasks.testset is None:
        raise ValueError("questions require a test set")
    label, expected = tasks.testset.labels.get(task.id, Label()), expected_places(tasks.testset, task.id)
    text = "\n".join(f"- {fact.text}" for fact in label.must_mention)
    return SealedAnswer("gold", task.id, Answered(text, expected.entities, expected.files, expected.spans))


def _states(score: SealedScore) -> str:
    """Checks that did not pass, and the first finding."""
    open_checks = [f"{check} {state}" for check, state in score.checks.items() if state != "passed"]
    findings = [str(each.get("message", "")) for each in score.findings[:1]]
    return "; ".join([", ".join(open_checks), *findings]).strip("; ")
