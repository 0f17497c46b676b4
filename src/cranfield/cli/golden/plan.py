"""`cranfield golden plan`: check a plan and estimate its cost."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer

from cranfield.cli.golden.options import AtOption, PlanArgument, RepoOption, read_plan
from cranfield.cli.option_groups import option_groups
from cranfield.cli.shared import Output, deliver


@option_groups
def plan_command(
    plan: PlanArgument = "phase1",
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    output: Output,
) -> None:
    """Check a plan against itself and a repository, and estimate the tokens and the money that it takes.

    No model is called. Exit codes: 0 the plan can be run; 2 it cannot, with every problem.
    """
    show_plan(plan, repo, at, output)


def show_plan(plan: str, repo: Path, at: str | None, output: Output) -> None:
    """Check a plan and print what it takes."""
    from cranfield.golden.plan_check import estimate
    from cranfield.golden.run import require_valid
    from cranfield.repo.snapshot import source_snapshot
    from cranfield.reporting.documents.golden import plan_document

    found, _ = read_plan(plan)
    snapshot = source_snapshot(repo, at)
    require_valid(found, snapshot)
    deliver(plan_document(found, estimate(found, snapshot), snapshot.commit), output)
    typer.echo(f"next: `cranfield golden run {shlex.quote(plan)} --repo {shlex.quote(str(repo))}`", err=True)
