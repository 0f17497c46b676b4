"""A plan with its cost, printed: of `golden plan`, and of `golden run --dry-run`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cranfield.cli.ending import EXIT_VERDICT
from cranfield.cli.golden.options import read_plan, source_options
from cranfield.cli.shared import Output, deliver
from cranfield.words import command_word

if TYPE_CHECKING:
    from cranfield.golden.plan import Plan
    from cranfield.golden.plan_cost import Estimate
    from cranfield.repo.snapshot import Snapshot


def show_plan(
    plan: str,
    repo: Path,
    at: str | None,
    output: Output,
    *,
    allow_dirty: bool,
    out: Path,
    without: Collection[Path | None] = (),
) -> None:
    """Check a plan and print what it takes."""
    from cranfield.golden.plan_cost import estimate
    from cranfield.golden.run import require_valid
    from cranfield.repo.source import source_snapshot

    found, _ = read_plan(plan)
    snapshot = source_snapshot(repo, at, allow_dirty=allow_dirty, without=without)
    require_valid(found, snapshot)
    options = source_options(repo, at, out, allow_dirty=allow_dirty)
    measure = f"`cranfield golden plan {command_word(plan)} --measure 3{options}`"
    show_cost(found, estimate(found, snapshot), snapshot, output, measure)


def show_cost(plan: Plan, estimate: Estimate, snapshot: Snapshot, output: Output, measure: str = "") -> None:
    """Print what a plan takes, and the command that measures it where it is named.

    Raises:
        typer.Exit: with 1, where that is over the budget.
    """
    from cranfield.golden.outcomes import ReadSource
    from cranfield.reporting.documents.golden_plan import plan_document

    deliver(plan_document(plan, estimate, ReadSource.of(snapshot)), output)
    if any(each.is_likely for each in estimate.over_budget):
        if measure and not estimate.is_measured:
            typer.echo(f"Hint: {measure} measures the cost on three queries.", err=True)
        raise typer.Exit(EXIT_VERDICT)
