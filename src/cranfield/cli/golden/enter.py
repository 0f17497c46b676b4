"""`cranfield golden enter`: an existing set becomes the records of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.golden.options import RUNS, AtOption, OutOption, RepoOption, read_plan
from cranfield.cli.option_groups import AllowDirtyOption, option_groups
from cranfield.cli.shared import Output, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, note
from cranfield.golden.states import EntryStep


@option_groups
def enter_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    step: Annotated[
        EntryStep, typer.Option("--step", help="Step that the records go on from: what comes before is taken as done.")
    ] = EntryStep.GATE,
    plan: Annotated[
        str,
        typer.Option("--plan", metavar="PLAN", help="Plan whose models go on with the set; its cells are not used."),
    ] = "phase1",
    task_type: Annotated[
        str, typer.Option("--task-type", metavar="NAME", help="Task type of all queries without one.")
    ] = "",
    difficulty: Annotated[
        str, typer.Option("--difficulty", metavar="NAME", help="Difficulty of all queries without one.")
    ] = "",
    out: OutOption = RUNS,
    output: Output,
    testset_format: SetFormatOption = None,
) -> None:
    """Make a run of an existing test set, which goes on at the gate, at the adversary, or with people.

    What a record lacks (facts, a narrative, evidence) is missing, which is no failure of the gate. `golden run --resume`
    goes on with the run.
    """
    from cranfield.app.golden_review import after_run
    from cranfield.app.loading import read_stored
    from cranfield.golden.existing import Defaults, EntryPlan, enter, gate_set
    from cranfield.golden.folder import RunFolder
    from cranfield.golden.index import RunIndex
    from cranfield.repo.source import source_snapshot
    from cranfield.reporting.documents.golden import gate_document
    from cranfield.words import n_of

    snapshot = source_snapshot(repo, at, allow_dirty=allow_dirty, without=(testset, Path(plan)))
    judged = read_stored(testset, testset_format)
    given = EntryPlan(*read_plan(plan))
    entered = enter(judged, snapshot, out, step, given, Defaults(task_type, difficulty))
    if step is EntryStep.GATE:
        deliver(gate_document(gate_set(judged, entered.imported, snapshot, given.plan.bounds)), output)
    note(f"{n_of(len(entered.imported.candidates), 'records')} entered; they go on at the step {step.value}")
    note(f"wrote {entered.folder}")
    statuses = RunIndex(RunFolder.open(entered.folder)).statuses()
    note(f"next: {after_run(entered.folder, statuses, repo)}")
