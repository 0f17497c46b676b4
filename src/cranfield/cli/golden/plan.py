"""`cranfield golden plan`: check a plan and estimate its cost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.ending import EXIT_SYSTEM
from cranfield.cli.golden.options import RUNS, AtOption, OutOption, PlanArgument, RepoOption, read_plan
from cranfield.cli.golden.run import (
    PromptsOption,
    ReplayOption,
    Source,
    plan_file,
    print_status,
    print_usage,
    print_waiting,
    show_cost,
    show_plan,
)
from cranfield.cli.option_groups import AllowDirtyOption, option_groups
from cranfield.cli.shared import Output
from cranfield.errors import UsageError
from cranfield.words import command_word, n_of

if TYPE_CHECKING:
    from cranfield.golden.measured import DryRun

DEFAULT_PLAN = "phase1"


@option_groups
def plan_command(
    plan: PlanArgument = None,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    measure: Annotated[
        int | None,
        typer.Option(
            "--measure",
            metavar="N",
            min=1,
            help="Take N queries, of different cells, through all steps with the models of the plan, and estimate from "
            "what they took. The answers are kept in a run folder.",
        ),
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="RUN", help="With --measure: go on in this run folder.")
    ] = None,
    out: OutOption = RUNS,
    replay: ReplayOption = None,
    prompts: PromptsOption = None,
    output: Output,
) -> None:
    """Check a plan against itself and a repository, and estimate the tokens and the money that it takes.

    No model is called, except with --measure: `--measure 3` is a dry run of three queries, within the budget of the plan.
    `golden run --resume RUN` then makes the whole set, and pays for none of these answers again. Exit codes: 0 the plan can be
    run; 1 it can, and its typical or measured cost is over the budget; 2 it cannot, with every problem; 3 a query of the dry run
    waits, because a model has no answer for now or the budget is used up.
    """
    source = Source(repo, at, out, resume, (plan_file(plan), prompts, replay), allow_dirty=allow_dirty)
    if measure is not None:
        _measure(measure, plan, source, output, replay=replay, prompts=prompts)
        return
    given = {"--resume": resume, "--replay": replay, "--prompts": prompts}
    if unused := [name for name, value in given.items() if value is not None]:
        raise UsageError(f"{' and '.join(unused)} without a dry run", expected="--measure N")
    show_plan(plan or DEFAULT_PLAN, source, output)
    typer.echo(f"next: `cranfield golden run {command_word(plan or DEFAULT_PLAN)}{source.options}`", err=True)


def _measure(
    n: int, plan: str | None, source: Source, output: Output, *, replay: Path | None, prompts: Path | None
) -> None:
    from cranfield.golden.measured import measure, part_of
    from cranfield.golden.plan_cost import estimate
    from cranfield.golden.run import RunOptions

    if source.resume is None:
        part_of(read_plan(plan or DEFAULT_PLAN)[0], n)  # too many are refused before a folder is made
    path, snapshot = source.open_run(plan or (None if source.resume else DEFAULT_PLAN), prompts=prompts)
    typer.echo(f"run folder: {path}", err=True)
    found = measure(path, snapshot, n, RunOptions(replay=replay, prompts=prompts, on_status=print_status))
    print_usage(found.outcome)
    if found.outcome.result.waiting:
        command = f"cranfield golden plan --measure {n} --resume {command_word(path)}{source.resumed}"
        print_waiting(found.outcome, command)
        raise typer.Exit(EXIT_SYSTEM)
    _print_kept(found, f"cranfield golden run --resume {command_word(path)}{source.resumed}")
    try:
        show_cost(estimate(found.whole, snapshot, found.uses), output)
    finally:  # also where the cost is over the budget
        source.refuse_changed(path, snapshot)


def _print_kept(found: DryRun, command: str) -> None:
    cells = ", ".join(f"{cell.n} of {cell.task_type} {cell.difficulty}" for cell in found.part.cells)
    typer.echo(f"dry run of {n_of(found.part.total, 'queries')}: {cells}", err=True)
    silent = {role: use.n_unreported for role, use in found.uses.items() if use.n_unreported}
    if silent:
        text = ", ".join(f"{n} of {role}" for role, n in silent.items())
        typer.echo(f"records without a report of their tokens, which are left out: {text}", err=True)
    typer.echo(f"next: `{command}` makes the set, and asks for none of this again", err=True)
