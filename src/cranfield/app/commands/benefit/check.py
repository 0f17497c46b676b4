"""`cranfield benefit check`: check the plan of an experiment, and show what it can cost and find."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import Report
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.options.declaration import Argument

EXPERIMENTS = Path("benefit-runs")
"""Default folder of all experiments."""
PlanArgument = Annotated[Path, Argument("Plan of an experiment, YAML or JSON.", metavar="PLAN")]


def check_command(plan: PlanArgument, *, allow_dirty: AllowDirtyOption = False) -> Report:
    """Check a plan against its tasks and its repository: arms, commit, budget, and that every task can be scored.

    Then every tool under test is started, asked what it serves by its preflight, and ended. Shown are the cells in their order,
    the tokens that they can use, and the smallest lift that the tasks can show. No model is called. Exit codes: 0 the plan
    can be run; 2 it cannot, with every problem; 3 a tool does not start, or serves something else.
    """
    from cranfield.app.benefit import checked_plan, tried_tools
    from cranfield.benefit.experiment import planned_digest
    from cranfield.reporting.documents.benefit_run import experiment_plan_document

    checked = checked_plan(plan, EXPERIMENTS, allow_dirty=allow_dirty)
    found = checked.result(planned_digest(checked, plan.parent), tried_tools(checked))
    return Report(document=experiment_plan_document(found))
