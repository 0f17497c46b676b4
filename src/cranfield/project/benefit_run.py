"""An experiment before its cells are run: its plan is checked, and every task is one that can be scored."""

from __future__ import annotations

from pathlib import Path

from cranfield.benefit.experiment import write_experiment
from cranfield.benefit.gold_check import check_scoring, scoring_problems
from cranfield.benefit.plan import load_plan
from cranfield.benefit.plan_check import CheckedPlan, check_plan, machine_problems
from cranfield.benefit.records import PreflightRecord
from cranfield.benefit.tool_check import try_tools
from cranfield.concurrency.loop import event_loop
from cranfield.errors import ConfigError
from cranfield.project.benefit_score import configured_checkers


def checked_plan(path: Path, experiments: Path, *, allow_dirty: bool = False) -> CheckedPlan:
    """A plan that can be run, over tasks that can be scored. No model is called, and no tool under test.

    Args:
        path: of the plan.
        experiments: folder of all experiments, which is not looked at where it lies in the repository.
        allow_dirty: accept a repository with uncommitted changes.

    Raises:
        ConfigError: with every problem of the plan, and all that this machine lacks; else with every task that cannot be scored.
    """
    plan = load_plan(path)
    problems = machine_problems(plan)
    try:
        checked = check_plan(plan, path.parent, allow_dirty=allow_dirty, without=(path, experiments))
    except ConfigError as error:
        raise ConfigError([*error.problems, *problems]) from None
    if problems:
        raise ConfigError(problems)
    faults = event_loop().run(check_scoring(plan, checked.tasks, configured_checkers(plan)))
    if faults:
        raise ConfigError(scoring_problems(faults))
    return checked


def tried_tools(checked: CheckedPlan) -> list[PreflightRecord]:
    """What the tools under test of a plan serve now, each started and ended.

    Raises:
        PreflightError: with every tool that is not as the plan wants it.
        CranfieldError: this machine lacks what its tools need.
    """
    return event_loop().run(try_tools(checked.plan, checked.commit))


def begin_experiment(path: Path, experiments: Path, *, allow_dirty: bool = False) -> Path:
    """Check a plan, and make the folder of an experiment of it.

    Raises:
        ConfigError: as `checked_plan`.
    """
    return write_experiment(checked_plan(path, experiments, allow_dirty=allow_dirty), path.parent, experiments)
