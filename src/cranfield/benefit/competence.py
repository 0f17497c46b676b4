"""Whether the control arm is a competent agent: a weak one makes every tool look good."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean

from cranfield.base.words import and_list, n_of
from cranfield.benefit.plan import ArmRole
from cranfield.benefit.records import CellRecord
from cranfield.benefit.result import Validity, ValidityKind
from cranfield.benefit.tasks import TaskSet
from cranfield.benefit.validity import CALLS_HINT, ExperimentRecords

_MOST_REASONS = 3


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
        message = f"no scored task is labelled as answerable without the tool: nothing shows that {arm} is competent"
        return (Validity(kind=ValidityKind.COMPETENCE_UNKNOWN, is_void=False, message=message),)
    success = fmean(fmean(found) for found in by_task.values())
    if success >= floor:
        return ()
    where = f"{n_of(len(by_task), 'tasks')} that can be done without the tool"
    message = f"{arm} succeeds at {success:.0%} on {where}; the plan demands {floor:.0%}{_why(evidence, tasks)}"
    if not _can_search(evidence):
        message = (
            f"{arm}, which has no tools by the plan, succeeds at {success:.0%} on {where}: a finding on the model alone"
        )
    return (Validity(kind=ValidityKind.CONTROL_INCOMPETENT, is_void=_can_search(evidence), message=message),)


def _why(evidence: ExperimentRecords, tasks: TaskSet) -> str:
    """How it fails, and whether the other arm fails there too: then it is not the control that is wrong."""
    treatment, control = (
        [score for score in evidence.scores_of(role) if tasks.by_id[score.key.task_id].baseline_answerable]
        for role in ArmRole
    )
    failed = [score for score in control if score.success is False]
    whys = Counter(evidence.cells[score.key].error or (score.why.value if score.why else "") for score in failed)
    reasons = and_list([f"{n} {why}" for why, n in whys.most_common(_MOST_REASONS) if why])
    text = f" ({len(failed)} failed: {reasons})" if reasons else ""
    others = [score.success for score in treatment if score.success is not None]
    if others and fmean(others) < evidence.plan.competence.success:
        text += f"; {evidence.name(ArmRole.TREATMENT)} succeeds at {fmean(others):.0%} there: look at the replies, the judge and the facts first"
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
        message = f"tool calls are not known of {len(cells) - len(known)} of {n_of(len(cells), 'cells')} of {arm}: nothing shows that it used its search tools there ({CALLS_HINT})"
        return (Validity(kind=ValidityKind.COMPETENCE_UNKNOWN, is_void=False, message=message),)
    message = f"{arm} used its search tools in {share:.0%} of {n_of(len(known), 'cells')}; the plan demands {floor:.0%}"
    return (Validity(kind=ValidityKind.CONTROL_INCOMPETENT, is_void=True, message=message),)
