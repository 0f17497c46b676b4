"""What the commands on test sets share: the set as an argument, reading it, and changing its file."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cranfield.app.command import note
from cranfield.app.commands.shared import today
from cranfield.options.declaration import Argument, Option

if TYPE_CHECKING:
    from cranfield.model import TestSet
    from cranfield.options.testset import TestSetOptions

SetArgument = Annotated[Path, Argument("Test set, in any supported format.", metavar="SET")]
SetFormatOption = Annotated[
    str | None,
    Option(
        "Format of the test set; default: detected from the content.",
        flag="--testset-format",
        metavar="FORMAT",
        choices="testset_formats",
    ),
]
OutOption = Annotated[
    Path | None, Option("Write the changed test set to this file; default: SET.", flag="--out", metavar="FILE")
]
OutArgument = Annotated[Path, Argument("Output file; its extension selects the format.", metavar="OUT")]
ToOption = Annotated[str | None, Option("Format of OUT; default: from its extension.", flag="--to", metavar="FORMAT")]
ForceOption = Annotated[bool, Option("Replace an existing file or split.", flag="--force")]
TodayOption = Annotated[
    str | None, Option("Use this date instead of today, such as 2026-11-21.", flag="--today", metavar="DATE")
]


def day_of(text: str | None) -> date:
    """Today, or the day that was named.

    Raises:
        UsageError: it is no day.
    """
    from cranfield.errors import UsageError, shorten

    if text is None:
        return today()
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--today is {shorten(text)}", expected="a date such as 2026-11-21") from None


def load_set(
    path: Path,
    format: str | None = None,  # noqa: A002  as above
    *,
    ask: bool = False,
    options: TestSetOptions | None = None,
) -> TestSet:
    """Read a test set as it is evaluated: with grades made of its ratings.

    Args:
        path: its file.
        format: name of its format, where the content does not tell.
        options: what is done to it; None: nothing.
        ask: whether the databases of its predicates are asked; runs cannot be scored otherwise.

    Raises:
        TestSetError: the file cannot be read as one, or a database does not answer.
    """
    from cranfield.app.loading import apply_options, log_unused, read_stored, target_needs_database
    from cranfield.options.testset import NO_OPTIONS

    given = NO_OPTIONS if options is None else options
    testset = read_stored(path, format)
    if not ask and given == NO_OPTIONS and target_needs_database(testset):
        return testset
    return log_unused(apply_options(testset, given, path.parent, path), str(path))


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse to replace a file without `--force`, or a device or pipe.

    Raises:
        UsageError: it is there; it is a device or a pipe; or its folder is not there.
    """
    from cranfield.errors import UsageError

    if not path.parent.is_dir():
        raise UsageError("no such folder", path=str(path.parent))
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError("a device or a pipe cannot be replaced", path=str(path), expected="a file")
    if path.exists() and not force:
        raise UsageError("the file is there already", path=str(path), hint="--force replaces it")


def save_set(
    changed: TestSet,
    path: Path,
    out: Path | None,
    *,
    format: str | None = None,  # noqa: A002  as above
) -> tuple[Path, ...]:
    """Save a changed set, and print what of the old file is lost; see `testsets.storage.save`. Returns the files."""
    from cranfield.testsets.storage import save

    saved = save(changed, path, out, format=format)
    for sentence in saved.notes:
        note(f"note: {sentence}")
    return saved.files
