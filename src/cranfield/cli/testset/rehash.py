"""`cranfield testset rehash`: tie a test set to a repository as it is now."""

from __future__ import annotations

from typing import Annotated

import typer

from cranfield.cli.testset.common import (
    ForceOption,
    OutOption,
    SetArgument,
    SetFormatOption,
    TodayOption,
    day_of,
    note,
    refuse_existing,
)
from cranfield.cli.testset.verify import AtOption, RepoOption, write_anew


def rehash_command(
    testset: SetArgument,
    *,
    repo: RepoOption,
    at: AtOption = None,
    allow_drift: Annotated[
        bool,
        typer.Option(
            "--allow-drift",
            help="Accept the current content of every place; places that no longer exist get no anchor.",
        ),
    ] = False,
    out: OutOption = None,
    force: ForceOption = False,
    today: TodayOption = None,
    testset_format: SetFormatOption = None,
) -> None:
    """Update commit, hashes, anchors and counts of a test set without changing its queries and judgments.

    They are written to SET if its format can store them, and to SET.meta.json otherwise.
    """
    from cranfield.errors import UsageError
    from cranfield.formats.io.files import STDIN, meta_path
    from cranfield.formats.testsets.meta_file import format_of, holds_meta, write_meta
    from cranfield.project.drift import rehash
    from cranfield.testsets.storage import folder_lock, read_stored

    if out is None and str(testset) == STDIN:
        raise UsageError("standard input cannot be written to", hint="--out FILE writes the set to a file")
    if out is not None:
        refuse_existing(out, force=force)
    with folder_lock(testset):
        judged = read_stored(testset, testset_format)
        rehashed = rehash(judged, repo, at=at, today=day_of(today), allow_drift=allow_drift)
        for sentence in rehashed.notes[len(judged.notes) :]:
            note(f"note: {sentence}")
        if out is None and not holds_meta(format_of(testset, testset_format)):
            write_meta(rehashed, meta_path(testset))
            note(f"wrote {meta_path(testset)}")
        else:
            write_anew(rehashed, testset, out, testset_format)
    typer.echo(rehashed.meta.history[-1])
