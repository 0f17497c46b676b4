"""Keep a test set true: verify and rehash its places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import Report, Status, note, say
from cranfield.app.commands.shared import (
    AllowDirtyOption,
    ForceOption,
    OutOption,
    SetArgument,
    SetFormatOption,
    TodayOption,
    day_of,
    refuse_existing,
    save_set,
)
from cranfield.evaluation.options.declaration import Option

if TYPE_CHECKING:
    from cranfield.model import TestSet


RepoOption = Annotated[Path, Option("Folder of the repository.", flag="--repo", metavar="DIR")]
AtOption = Annotated[
    str | None, Option("Commit of the repository; default: the files on disk.", flag="--at", metavar="COMMIT")
]


def verify_command(
    testset: SetArgument,
    *,
    repo: RepoOption,
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    out: Annotated[
        Path | None,
        Option("Also write the test set with the current lines of moved places.", metavar="FILE"),
    ] = None,
    force: ForceOption = False,
    testset_format: SetFormatOption = None,
) -> Report:
    """Check the expected places of a test set against a repository: unchanged, moved, edited, renamed or gone.

    Read are the tracked files of the folder, or, with --at, of a commit.
    Exits with 1 if any place was edited, renamed or is gone.
    """
    from cranfield.app.loading import read_stored
    from cranfield.repo.drift import reanchored, verify
    from cranfield.repo.tree import tracked_snapshot
    from cranfield.testsets.reports.versions import drift_document

    judged = read_stored(testset, testset_format)
    snapshot = tracked_snapshot(repo, at, allow_dirty=allow_dirty, without=(testset, out))
    report = verify(judged, snapshot)
    if out is not None:
        refuse_existing(out, force=force)
        write_anew(reanchored(judged, report), testset, out, testset_format)
    return Report(document=drift_document(report), status=Status.FAILED if report.drifted else Status.OK)


def write_anew(changed: TestSet, source: Path, out: Path | None, named: str | None) -> None:
    """Write a changed set in the format it was read in, with a file beside it where that has no room for all of it."""
    for path in save_set(changed, source, out, format=named):
        note(f"wrote {path}")


def rehash_command(
    testset: SetArgument,
    *,
    repo: RepoOption,
    at: AtOption = None,
    allow_dirty: AllowDirtyOption = False,
    allow_drift: Annotated[
        bool,
        Option("Accept the current content of every place; places that no longer exist get no anchor."),
    ] = False,
    out: OutOption = None,
    force: ForceOption = False,
    today: TodayOption = None,
    testset_format: SetFormatOption = None,
) -> None:
    """Update commit, hashes, anchors and counts of a test set without changing its queries and judgments.

    They are written to SET if its format can store them, and to SET.meta.json otherwise.
    """
    from cranfield.app.drift import rehash
    from cranfield.app.loading import read_stored
    from cranfield.base.errors import UsageError
    from cranfield.formats.io.files import STDIN, meta_path
    from cranfield.formats.testsets.storage import format_of, holds_meta, lock_testset, write_meta

    if out is None and str(testset) == STDIN:
        raise UsageError("cannot write to standard input", hint="--out FILE writes the set to a file")
    if out is not None:
        refuse_existing(out, force=force)
    with lock_testset(testset):
        judged = read_stored(testset, testset_format)
        rehashed = rehash(
            judged, repo, at=at, today=day_of(today), allow_drift=allow_drift, allow_dirty=allow_dirty, own=testset
        )
        for sentence in rehashed.notes[len(judged.notes) :]:
            note(f"note: {sentence}")
        if out is None and not holds_meta(format_of(testset, testset_format)):
            write_meta(rehashed, meta_path(testset))
            note(f"wrote {meta_path(testset)}")
        else:
            write_anew(rehashed, testset, out, testset_format)
    say(rehashed.meta.history[-1])
