"""The command that carries files over to the ids that a test set has now."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli.option_groups import option_groups
from cranfield.cli.testset.common import SetArgument, SetFormatOption, note

if TYPE_CHECKING:
    from cranfield.project.loading import TestSetOptions


@option_groups
def migrate_ids_command(
    testset: SetArgument,
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE",
            help="Runs, baselines, histories, journals, metadata of a set; in a folder, all of them.",
        ),
    ],
    *,
    old: Annotated[
        Path | None,
        typer.Option(
            "--old", metavar="FILE", help="Version of the test set that the files were made with; default: SET."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report what would be written, and write nothing.")
    ] = False,
    testset_format: SetFormatOption = None,
    options: TestSetOptions,
) -> None:
    """Replace query ids of another rule in files by those of a test set. All files are written, or none.

    A file that has the ids of the set is unchanged. The options on the test set must be those that the files were made with.
    """
    from cranfield.project.id_renaming import renaming
    from cranfield.project.loading import load
    from cranfield.project.migrate_ids import migrate_ids

    loaded = load(testset, format=testset_format, options=options)
    before = None if old is None else load(old, format=testset_format, options=options)
    rows = migrate_ids(renaming(loaded, before), files, dry_run=dry_run)
    for row in rows:
        note(row.sentence)
    n = sum(row.state == "carried over" for row in rows)
    note(f"{'would write' if dry_run else 'wrote'} {n} of {len(rows)} files, rule {loaded.meta.ids}")
