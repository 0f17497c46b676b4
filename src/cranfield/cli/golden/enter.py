"""`cranfield golden enter`: an existing set becomes the records of a run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.golden.options import AtOption, RepoOption, read_plan
from cranfield.cli.shared import Format, FormatOption, HtmlOption, deliver
from cranfield.cli.testset.common import SetArgument, SetFormatOption, note


class EnterAt(StrEnum):
    """The step that the records go on from."""

    GATE = "gate"
    ADVERSARY = "adversary"
    PEOPLE = "people"


def enter_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    step: Annotated[
        EnterAt, typer.Option("--step", help="Step that the records go on from: what comes before is taken as done.")
    ] = EnterAt.GATE,
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
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder of all runs.")] = Path("runs"),
    output: FormatOption = Format.TEXT,
    html: HtmlOption = None,
    testset_format: SetFormatOption = None,
) -> None:
    """Make a run of an existing test set, which goes on at the gate, at the adversary, or with people.

    What a record lacks (facts, a narrative, evidence) is missing, which is no failure of the gate. `golden run --resume`
    goes on with the run.
    """
    from cranfield.golden.existing import Defaults, EntryPlan, enter, gate_reports
    from cranfield.golden.run import source_snapshot
    from cranfield.golden.states import EntryStep
    from cranfield.project.loading import read_stored
    from cranfield.reporting.documents.golden import gate_document
    from cranfield.words import n_of

    judged, snapshot = read_stored(testset, testset_format), source_snapshot(repo, at)
    given = EntryPlan(*read_plan(plan))
    entered = enter(judged, snapshot, out, EntryStep(step.value), given, Defaults(task_type, difficulty))
    if step is EnterAt.GATE:
        reports = gate_reports(entered.imported, snapshot, given.plan.bounds)
        deliver(gate_document(judged.name, snapshot.commit, reports, entered.imported.notes), output, html)
    note(f"{n_of(len(entered.imported.candidates), 'records')} entered; they go on at the step {step.value}")
    note(f"wrote {entered.folder}")
