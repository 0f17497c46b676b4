"""Tasks of an experiment: the labelled queries of a golden set, or coding tasks, under one type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cranfield.agents.answers.rows import expected_places
from cranfield.base.errors import ConfigError, Problem, unknown_name
from cranfield.base.words import and_list, count_noun
from cranfield.benefit.plan import BenefitPlan, SuccessBy, TaskSource
from cranfield.formats.io.files import shown
from cranfield.model.judging import Label, Lines
from cranfield.model.query import query_strata

if TYPE_CHECKING:
    from cranfield.benefit.coding import CodingTask
    from cranfield.model import Query, TestSet

_BY_ID = "id"
"""Key of `tasks.only` that names tasks."""


@dataclass(frozen=True, slots=True)
class Task:
    """A task that both arms are given."""

    id: str
    prompt: str
    """What a developer asks; the same in both arms."""
    strata: Mapping[str, str] = field(default_factory=dict)
    baseline_answerable: bool | None = None
    """Whether an agent without the tool under test can plausibly do it; None: not known."""
    gold: tuple[Lines, ...] = ()
    """Lines that the answer lies in."""
    query: Query | None = None
    """Query of a golden set."""
    coding: CodingTask | None = None
    """Task of a file of coding tasks."""


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of a plan."""

    tasks: tuple[Task, ...]
    testset: TestSet | None = None
    """With the labels by which answers are scored."""
    commit: str = ""
    """Commit of the repository, as the golden set has it."""
    labels_digest: str = ""
    """Digest of the labels that answers are scored by."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Task to why it is not in the experiment, besides those that `tasks.only` leaves out."""

    @property
    def source(self) -> str:
        """Name and version of the golden set, and who reviewed it; empty where there is none."""
        if self.testset is None:
            return ""
        name = f"{self.testset.name} {self.testset.version}".strip()
        return f"{name}: {self.testset.meta.review or 'no review is recorded'}"

    @property
    def by_id(self) -> Mapping[str, Task]:
        """Tasks by id."""
        return {task.id: task for task in self.tasks}


def load_tasks(plan: BenefitPlan, folder: Path) -> TaskSet:
    """Read the tasks of a plan.

    Args:
        plan: with the source of its tasks.
        folder: that paths of the plan are relative to.

    Raises:
        InputError: the file of the tasks cannot be read, with every problem.
        ConfigError: the plan wants strata, values or tasks that the file does not have; with every problem.
    """
    found = _coding_tasks(plan, folder) if plan.tasks.coding else _golden_tasks(plan, folder)
    tasks = found.tasks
    problems = [*_only_problems(plan.tasks, tasks), *_strata_problems(plan, tasks)]
    kept = tuple(task for task in tasks if _is_kept(plan.tasks, task))
    if not kept and not problems:
        reasons = and_list(sorted(set(found.left_out.values()))) or "no task matches `only`"
        problems = [Problem(f"no tasks: {reasons}", path=shown(_path(plan, folder)))]
    if problems:
        raise ConfigError(problems)
    return TaskSet(kept, found.testset, found.commit, found.labels_digest, found.left_out)


def _path(plan: BenefitPlan, folder: Path) -> Path:
    return folder / (plan.tasks.testset or plan.tasks.coding or "")


def _golden_tasks(plan: BenefitPlan, folder: Path) -> TaskSet:
    from cranfield.formats.sniff import read_testset

    testset = read_testset(_path(plan, folder))
    tasks, left_out = [], {}
    for query in testset.queries:
        label, expected = testset.labels.get(query.id, Label()), expected_places(testset, query.id)
        if why := _not_scored(plan.success.by, has_places=bool(expected), label=label):
            left_out[query.id] = why
            continue
        strata = {name: str(value) for name, value in query_strata(query).items()}
        gold = expected.spans or label.line_ranges
        tasks.append(Task(query.id, query.text, strata, label.baseline_answerable, tuple(gold), query))
    return TaskSet(tuple(tasks), testset, testset.meta.commit, testset.labels_digest or testset.digest, left_out)


def _coding_tasks(plan: BenefitPlan, folder: Path) -> TaskSet:
    from cranfield.benefit.coding import load_coding_tasks

    file = load_coding_tasks(plan.tasks.coding or "", folder)
    tasks = [Task(task.id, task.full_prompt, task.strata, task.baseline_answerable, coding=task) for task in file.tasks]
    return TaskSet(tuple(tasks), labels_digest=file.digest)


def _not_scored(by: SuccessBy, *, has_places: bool, label: Label) -> str:
    """Why no answer to a query can be scored; empty where it can."""
    if by is SuccessBy.FACTS and not (label.must_mention or label.must_not_mention):
        return "it has no facts"
    if by is SuccessBy.STRUCTURE and not has_places:
        return "it expects no entity, file or lines"
    return ""


def _only_problems(source: TaskSource, tasks: Sequence[Task]) -> list[Problem]:
    problems = []
    for name, wanted in source.only.items():
        known = {task.id if name == _BY_ID else task.strata.get(name, "") for task in tasks} - {""}
        if not known:
            problems.append(unknown_name("stratum", name, _strata_of(tasks) | {_BY_ID}))
        problems += [unknown_name(name, value, known) for value in wanted if known and value not in known]
    return problems


def _strata_problems(plan: BenefitPlan, tasks: Sequence[Task]) -> list[Problem]:
    problems = []
    for name in plan.strata:
        without = [task.id for task in tasks if name not in task.strata]
        if without and len(without) == len(tasks):
            problems.append(unknown_name("stratum", name, _strata_of(tasks)))
        elif without:
            message = f"{count_noun(len(without), 'tasks')} without the stratum {name}"
            problems.append(Problem(message, path="strata", got=and_list(without[:5])))
    return problems


def _strata_of(tasks: Sequence[Task]) -> set[str]:
    return {name for task in tasks for name in task.strata}


def _is_kept(source: TaskSource, task: Task) -> bool:
    return all((task.id if name == _BY_ID else task.strata.get(name)) in wanted for name, wanted in source.only.items())
