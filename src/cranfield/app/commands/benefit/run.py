"""`cranfield benefit run`: run the cells of an experiment, or go on with them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Exit, Report, Status, note
from cranfield.app.commands.benefit.check import EXPERIMENTS
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.errors import UsageError
from cranfield.options.declaration import Argument, Option
from cranfield.words import command_word, n_of, printable

if TYPE_CHECKING:
    from cranfield.benefit.records import CellRecord
    from cranfield.benefit.runner import RunOutcome

PlanOption = Annotated[
    Path | None,
    Argument(
        "Plan of the experiment. With --resume: only where budget, attempts or addresses differ.",
        metavar="[PLAN]",
        shows_default=False,
    ),
]
ResumeOption = Annotated[
    Path | None,
    Option("Go on with this experiment; what ended is not run again.", flag="--resume", metavar="RUN"),
]
OutOption = Annotated[Path, Option("Folder of all experiments.", flag="--out", metavar="DIR", refuses_link=True)]


def run_command(
    plan: PlanOption = None,
    *,
    resume: ResumeOption = None,
    out: OutOption = EXPERIMENTS,
    allow_dirty: AllowDirtyOption = False,
) -> Iterator[Report]:
    """Run each task in both arms, as often as the plan says, in random order within a budget.

    Every run of a cell is written as it ends; an experiment that was interrupted goes on with --resume. A run whose
    infrastructure failed is repeated and never scored; a run that reached a limit is a failure of its arm. Exit codes: 0
    every cell ended; 2 invalid plan or folder; 3 cells wait, because a server, a tool or an agent failed, or the model was
    down in five runs in a row; 4 the budget is used up; 130 interrupted.
    """
    from cranfield.app.benefit import begin_experiment
    from cranfield.benefit.experiment import RunOptions, execute, replace_plan
    from cranfield.benefit.folder import ExperimentFolder, Step
    from cranfield.benefit.plan import load_plan
    from cranfield.benefit.source import TreeCheck
    from cranfield.benefit.status import status_of
    from cranfield.concurrency.signals import sigterm_interrupts
    from cranfield.reporting.documents.benefit_run import experiment_status_document

    if resume is not None:
        path = resume
        if plan is not None:
            replace_plan(path, load_plan(plan), plan.parent)
    elif plan is not None:
        path = begin_experiment(plan, out, allow_dirty=allow_dirty)
    else:
        raise UsageError("neither a plan nor an experiment", expected="PLAN, or --resume RUN")
    note(f"experiment folder: {path}")
    try:
        with sigterm_interrupts():
            outcome = execute(path, RunOptions(on_cell=_print_cell, allow_dirty=allow_dirty))
    except KeyboardInterrupt:
        note(f"Hint: `cranfield benefit run --resume {command_word(path)}` goes on")
        raise
    folder = ExperimentFolder.open(path)
    yield Report(document=experiment_status_document(status_of(folder)))
    for check in folder.read(Step.TREES, TreeCheck):
        if check.is_void:
            note(printable(f"the comparison is invalid: {check.sentence}"))
    _end(outcome, path)


def _print_cell(cell: CellRecord) -> None:
    tokens = "tokens not known" if cell.usage.total is None else f"{cell.usage.total:,} tokens"
    error = f" ({cell.error})" if cell.error else ""
    note(printable(f"{cell.key} {cell.end.value}{error}, {tokens}, {cell.usage.wall_s:.1f} s"))


def _end(outcome: RunOutcome, path: Path) -> None:
    from cranfield.benefit.errors import BY_NAME, OUTAGES_IN_A_ROW, CellError

    if outcome.is_complete:
        return
    n_left = outcome.n_cells - outcome.n_scored
    note(f"not finished: {n_of(n_left, 'cells')} of {outcome.n_cells} have no end")
    known = BY_NAME[CellError(outcome.stopped)] if outcome.stopped else None
    is_down = known is not None and known.is_outage
    if known is not None:
        often = f" ({OUTAGES_IN_A_ROW} runs in a row)" if is_down else ""
        note(f"stopped: {known.name}: {known.meaning}{often}")
    if outcome.waiting:
        first = outcome.waiting[0]
        note(printable(f"first: {first.key}, {first.error}: {first.message}"))
    if outcome.stopped == CellError.BUDGET:
        note(
            f"Hint: with a larger budget, `cranfield benefit run PLAN --resume {command_word(path)}` goes on with them."
        )
        raise Exit(Status.INCONCLUSIVE)
    if outcome.stopped == CellError.MODEL_MISSING:
        hint = (
            f"with the right `base_url`, `cranfield benefit run PLAN --resume {command_word(path)}` goes on with them"
        )
        note(f"Hint: {hint}; with another model, begin another experiment.")
        raise Exit(Status.VOID)
    start = "start the server of the model, then " if is_down else ""
    note(f"Hint: {start}`cranfield benefit run --resume {command_word(path)}` goes on with them.")
    raise Exit(Status.VOID)
