"""`cranfield golden plan`: check a plan and estimate its cost."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cranfield.cli.golden.options import AtOption, PlanArgument, RepoOption, read_plan
from cranfield.cli.option_groups import AllowDirtyOption, option_groups
from cranfield.cli.shared import Output, deliver


@option_groups
def plan_command(
    plan: PlanArgument = "phase1",
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    output: Output,
) -> None:
    """Check a plan against itself and a repository, and estimate the tokens and the money that it takes.

    No model is called. Exit codes: 0 the plan can be run; 2 it cannot, with every problem.
    """
    show_plan(plan, repo, at, output, allow_dirty=allow_dirty)


def show_plan(
    plan: str, repo: Path, at: str | None, output: Output, *, allow_dirty: bool, without: Collection[Path] = ()
) -> None:
    """Check a plan and print what it takes."""
    from cranfield.golden.outcomes import ReadSource
    from cranfield.golden.plan_check import estimate
    from cranfield.golden.run import require_valid
    from cranfield.repo.source import source_snapshot
    from cranfield.reporting.documents.golden import plan_document

    found, _ = read_plan(plan)
    snapshot = source_snapshot(repo, at, allow_dirty=allow_dirty, without=without)
    require_valid(found, snapshot)
    deliver(plan_document(found, estimate(found, snapshot), ReadSource.of(snapshot)), output)
