"""Before a run: whether every task can be scored. Its gold answer must succeed, an empty one and a wrong one must not."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cranfield.agents.answers.places import Answered, expected_places
from cranfield.base.errors import Problem
from cranfield.benefit.codecheck.report import CodeCheck
from cranfield.benefit.coding import CodingTask
from cranfield.benefit.plan import BenefitPlan
from cranfield.benefit.records import ScoreReason
from cranfield.benefit.redaction import redaction_of
from cranfield.benefit.score import Checkers, Scorer, SealedAnswer, SealedScore, required_checks
from cranfield.benefit.tasks import Task, TaskSet
from cranfield.model.label import Label


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
