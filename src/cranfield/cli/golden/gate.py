"""`cranfield golden gate`: an existing set through the mechanical gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cranfield.cli.ending import EXIT_VERDICT
from cranfield.cli.golden.options import AtOption, RepoOption
from cranfield.cli.option_groups import AllowDirtyOption, option_groups
from cranfield.cli.shared import Output, deliver

SetArgument = Annotated[
    Path, typer.Argument(metavar="SET", help="Test set whose queries expect places of a repository.")
]
TaskTypeOption = Annotated[
    str, typer.Option("--task-type", metavar="NAME", help="Of queries that have none: locate, explain, debug, ...")
]
DifficultyOption = Annotated[
    str, typer.Option("--difficulty", metavar="NAME", help="Of queries that have none: easy, medium or hard.")
]


@option_groups
def gate_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    task_type: TaskTypeOption = "",
    difficulty: DifficultyOption = "",
    output: Output,
) -> None:
    """Check the records of an existing set against a repository: no model is called, and nothing is written.

    What a set does not have, such as facts or a narrative, is missing, not failed: the report says on how many records each
    check could run. Exit codes: 0 no record failed; 1 a record failed; 2 the set or the repository cannot be read.
    """
    from cranfield.agents.record_folder import now
    from cranfield.app.loading import load
    from cranfield.golden.existing import Defaults, gate_set, import_set
    from cranfield.repo.source import source_snapshot
    from cranfield.reporting.documents.golden import gate_document

    snapshot = source_snapshot(repo, at, allow_dirty=allow_dirty, without=(testset,))
    loaded = load(testset)
    imported = import_set(loaded, commit=snapshot.commit, at=now(), defaults=Defaults(task_type, difficulty))
    found = gate_set(loaded, imported, snapshot)
    deliver(gate_document(found), output)
    if found.n_passed < len(found.records):
        raise typer.Exit(EXIT_VERDICT)
