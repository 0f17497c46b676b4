"""`cranfield golden plan`: check a plan and estimate its cost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge

from cranfield.app.command import Exit, Report, Status, note
from cranfield.app.commands.golden.options import RUNS, AtOption, OutOption, PlanArgument, RepoOption, read_plan
from cranfield.app.commands.golden.run import (
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
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.errors import UsageError
from cranfield.options.declaration import Option
from cranfield.words import command_word, n_of

if TYPE_CHECKING:
    from cranfield.golden.measured import DryRun

DEFAULT_PLAN = "phase1"


def plan_command(
    plan: PlanArgument = None,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    measure: Annotated[
        int | None,
        Option(
            "Take N queries, of different cells, through all steps with the models of the plan, and estimate from "
            "what they took. The answers are kept in a run folder.",
            metavar="N",
        ),
        Ge(1),
    ] = None,
    resume: Annotated[Path | None, Option("With --measure: go on in this run folder.", metavar="RUN")] = None,
    out: OutOption = RUNS,
    replay: ReplayOption = None,
    prompts: PromptsOption = None,
) -> Iterator[Report]:
    """Check a plan against itself and a repository, and estimate the tokens and the money that it takes.

    No model is called, except with --measure: `--measure 3` is a dry run of three queries, within the budget of the plan.
    `golden run --resume RUN` then makes the whole set, and pays for none of these answers again. Exit codes: 0 the plan can be
    run; 1 it can, and its typical or measured cost is over the budget; 2 it cannot, with every problem; 3 a query of the dry run
    waits, because a model has no answer for now or the budget is used up.
    """
    source = Source(repo, at, out, resume, (plan_file(plan), prompts, replay), allow_dirty=allow_dirty)
    if measure is not None:
        yield from _measure(measure, plan, source, replay=replay, prompts=prompts)
        return
    given = {"--resume": resume, "--replay": replay, "--prompts": prompts}
    if unused := [name for name, value in given.items() if value is not None]:
        raise UsageError(f"{' and '.join(unused)} without a dry run", expected="--measure N")
    yield from show_plan(plan or DEFAULT_PLAN, source)
    note(f"next: `cranfield golden run {command_word(plan or DEFAULT_PLAN)}{source.options}`")


def _measure(
    n: int, plan: str | None, source: Source, *, replay: Path | None, prompts: Path | None
) -> Iterator[Report]:
    from cranfield.golden.measured import measure, part_of
    from cranfield.golden.plan_cost import estimate
    from cranfield.golden.run import RunOptions

    if source.resume is None:
        part_of(read_plan(plan or DEFAULT_PLAN)[0], n)  # too many are refused before a folder is made
    path, snapshot = source.open_run(plan or (None if source.resume else DEFAULT_PLAN), prompts=prompts)
    note(f"run folder: {path}")
    found = measure(path, snapshot, n, RunOptions(replay=replay, prompts=prompts, on_status=print_status))
    print_usage(found.outcome)
    if found.outcome.result.waiting:
        command = f"cranfield golden plan --measure {n} --resume {command_word(path)}{source.resumed}"
        print_waiting(found.outcome, command)
        raise Exit(Status.VOID)
    _print_kept(found, f"cranfield golden run --resume {command_word(path)}{source.resumed}")
    try:
        yield from show_cost(estimate(found.whole, snapshot, found.uses))
    finally:  # also where the cost is over the budget
        source.refuse_changed(path, snapshot)


def _print_kept(found: DryRun, command: str) -> None:
    cells = ", ".join(f"{cell.n} of {cell.task_type} {cell.difficulty}" for cell in found.part.cells)
    note(f"dry run of {n_of(found.part.total, 'queries')}: {cells}")
    silent = {role: use.n_unreported for role, use in found.uses.items() if use.n_unreported}
    if silent:
        text = ", ".join(f"{n} of {role}" for role, n in silent.items())
        note(f"records without a report of their tokens, which are left out: {text}")
    note(f"next: `{command}` makes the set, and asks for none of this again")
