"""`cranfield golden gate`: an existing set through the mechanical gate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cranfield.app.command import Report, Status
from cranfield.app.commands.golden.options import AtOption, RepoOption
from cranfield.app.commands.shared import AllowDirtyOption
from cranfield.options.declaration import Argument, Option

SetArgument = Annotated[Path, Argument("Test set whose queries expect places of a repository.", metavar="SET")]
TaskTypeOption = Annotated[
    str, Option("Of queries that have none: locate, explain, debug, ...", flag="--task-type", metavar="NAME")
]
DifficultyOption = Annotated[
    str, Option("Of queries that have none: easy, medium or hard.", flag="--difficulty", metavar="NAME")
]


def gate_command(
    testset: SetArgument,
    *,
    repo: RepoOption = Path(),
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    task_type: TaskTypeOption = "",
    difficulty: DifficultyOption = "",
) -> Report:
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
    return Report(
        document=gate_document(found), status=Status.FAILED if found.n_passed < len(found.records) else Status.OK
    )
