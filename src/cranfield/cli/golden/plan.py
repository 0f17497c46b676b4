"""`cranfield golden plan`: check a plan and estimate its cost."""

from __future__ import annotations

from pathlib import Path

from cranfield.cli.golden.options import AtOption, PlanArgument, RepoOption, read_plan
from cranfield.cli.shared import Format, FormatOption, HtmlOption, deliver


def plan_command(
    plan: PlanArgument = "phase1",
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
) -> None:
    """Check a plan against itself and a repository, and estimate the tokens and the money that it takes.

    No model is called. Exit codes: 0 the plan can be run; 2 it cannot, with every problem.
    """
    from cranfield.golden.plan_check import estimate
    from cranfield.golden.run import require_valid
    from cranfield.repo.snapshot import source_snapshot
    from cranfield.reporting.documents.golden import plan_document

    found, _ = read_plan(plan)
    snapshot = source_snapshot(repo, at)
    require_valid(found, snapshot)
    deliver(plan_document(found, estimate(found, snapshot), snapshot.commit), output, html)
