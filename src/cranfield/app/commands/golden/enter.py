"""`cranfield golden enter`: an existing set becomes the records of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from cranfield.app.command import Report, note
from cranfield.app.commands.golden.options import RUNS, AtOption, OutOption, RepoOption, read_plan
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.app.commands.testset.common import SetArgument, SetFormatOption
from cranfield.golden.states import EntryStep
from cranfield.options.declaration import Option


def enter_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    step: Annotated[
        EntryStep, Option("Step that the records go on from: what comes before is taken as done.")
    ] = EntryStep.GATE,
    plan: Annotated[
        str,
        Option("Plan whose models go on with the set; its cells are not used.", metavar="PLAN"),
    ] = "phase1",
    task_type: Annotated[str, Option("Task type of all queries without one.", metavar="NAME")] = "",
    difficulty: Annotated[str, Option("Difficulty of all queries without one.", metavar="NAME")] = "",
    out: OutOption = RUNS,
    testset_format: SetFormatOption = None,
) -> Iterator[Report]:
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
        yield Report(document=gate_document(gate_set(judged, entered.imported, snapshot, given.plan.bounds)))
    note(f"{n_of(len(entered.imported.candidates), 'records')} entered; they go on at the step {step.value}")
    note(f"wrote {entered.folder}")
    statuses = RunIndex(RunFolder.open(entered.folder)).statuses()
    note(f"next: {after_run(entered.folder, statuses, repo)}")
