"""What the commands on test sets share: the set as an argument, reading it, and changing its file."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cranfield.cli import registries
from cranfield.cli.shared import today

if TYPE_CHECKING:
    from cranfield.model import TestSet
    from cranfield.options.testset import TestSetOptions

SetArgument = Annotated[Path, typer.Argument(metavar="SET", help="Test set, in any supported format.")]
SetFormatOption = Annotated[
    str | None,
    typer.Option(
        "--testset-format",
        metavar="FORMAT",
        help="Format of the test set; default: detected from the content.",
        autocompletion=registries.testset_formats,
    ),
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the changed test set to this file; default: SET.")
]
OutArgument = Annotated[Path, typer.Argument(metavar="OUT", help="Output file; its extension selects the format.")]
ToOption = Annotated[
    str | None, typer.Option("--to", metavar="FORMAT", help="Format of OUT; default: from its extension.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace an existing file or split.")]
TodayOption = Annotated[
    str | None, typer.Option("--today", metavar="DATE", help="Use this date instead of today, such as 2026-11-21.")
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


def note(sentence: str) -> None:
    """Say something on stderr, made safe to print."""
    from cranfield.words import printable

    typer.echo(printable(sentence), err=True)


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
