"""What the commands on test sets share: the set as an argument, reading it, and changing its file."""

from __future__ import annotations

import os
import re
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cranfield.formats.registry import Format
    from cranfield.model import TestSet

SetArgument = Annotated[Path, typer.Argument(metavar="SET", help="A test set, in any of its formats.")]
SetFormatOption = Annotated[
    str | None, typer.Option("--testset-format", metavar="FORMAT", help="Say so instead of telling by content.")
]
OutOption = Annotated[
    Path | None, typer.Option("--out", metavar="FILE", help="Write the changed set here; default SET itself.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
TodayOption = Annotated[
    str | None, typer.Option("--today", metavar="DATE", help="Another day than today, such as 2026-11-21.")
]
_COMMENT = re.compile(rb"(?:^|\s)#")
NOT_CARRIED = "the file says more than is carried over"
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How gzip and Zstandard files begin."""


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Have other commands that change test sets in the same folder wait, so that no change is lost."""
    import fcntl

    folder = path.resolve().parent
    if not folder.is_dir():  # whoever reads says so
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def day_of(text: str | None) -> date:
    """Today, or the day that was named.

    Raises:
        UsageError: it is no day.
    """
    from cranfield.errors import UsageError, shorten

    if text is None:
        return date.today()  # noqa: DTZ011  the user's own day
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--today is {shorten(text)}", expected="a date such as 2026-11-21") from None


def read_set(path: Path, format: str | None = None) -> TestSet:  # noqa: A002  the option's own name
    """A test set as its file has it, with what the file beside it says.

    Raises:
        TestSetError: the file cannot be read as one.
    """
    from cranfield.formats.sniff import read_testset
    from cranfield.formats.testsets.meta_file import with_meta

    return with_meta(read_testset(path, format), path)


def opened_set(path: Path, format: str | None = None, *, ask: bool = False) -> TestSet:  # noqa: A002  as above
    """A test set as it is used: ratings become grades.

    Args:
        path: its file.
        format: name of its format, where the content does not tell.
        ask: whether the databases of its predicates are asked; runs cannot be scored otherwise.

    Raises:
        TestSetError: the file cannot be read as one, or a database does not answer.
    """
    from cranfield.project.testset_options import apply_options, target_needs_database

    testset = read_set(path, format)
    return apply_options(testset, folder=path.parent) if ask or not target_needs_database(testset) else testset


def note(sentence: str) -> None:
    """Say something on stderr, made safe to print."""
    from cranfield.words import printable

    typer.echo(printable(sentence), err=True)


def refuse_existing(path: Path, *, force: bool) -> None:
    """Refuse to replace a file that nobody allowed to be replaced, and what can never be one.

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


def rewrite(
    path: Path, out: Path | None, changed: TestSet, query_id: str | None = None, named: str | None = None
) -> tuple[Path, ...]:
    """Put a changed test set in the place of its file, or beside it, in the format of that file.

    Another ending of `out` says another format. Comments of the rest of a YAML file stay.

    Args:
        path: the file that the set was read from.
        out: another file to write instead.
        changed: what it should hold.
        query_id: the query that was changed, where one was.
        named: the format of `path`, where its content does not tell.

    Returns:
        The files that were written.

    Raises:
        UsageError: the file is a stream, or packed, and no other was named.
        TestSetError: its format cannot hold what the set holds now, or what the file holds.
    """
    from cranfield.errors import UsageError
    from cranfield.formats.convert import format_after
    from cranfield.formats.io.keys_kept import keys_lost
    from cranfield.formats.sniff import FORMATS
    from cranfield.formats.testsets.meta_file import format_of, write_again

    target = path if out is None else out
    in_place = out is None and path.exists()
    if (
        str(target) == "-"
        or target.suffix in {".gz", ".zst"}
        or (in_place and (_is_packed(path) or not (path.is_file() or path.is_dir())))
    ):
        raise UsageError(
            "cannot be changed in place", path=str(path), hint="--out FILE writes the changed set to a file"
        )
    source = format_of(path, named)
    if target.is_dir() and not source.is_folder:
        raise UsageError("this is a folder", path=str(target), expected="a file")
    entry = source if out is None else format_after(source, path, out)
    if entry is source:
        _refuse(_not_read(changed), target, NOT_CARRIED)
    else:
        for sentence in _not_read(changed):
            note(f"note: {sentence}")
    if entry is FORMATS["yaml"]:
        _rewrite_yaml(path, target, changed, query_id)
        return (target,)
    held = _held(changed, entry, target)
    if entry is source:
        keys = [f"not carried over: the key {key!r}" for key in keys_lost(path, held, entry)]
        _refuse(keys, target, NOT_CARRIED)
        if path.is_file() and any(line.startswith(b"#") for line in path.read_bytes().splitlines()):
            note(f"note: the comments of {path} are not in {target}")
    return write_again(held, target, entry)


def _not_read(changed: TestSet) -> list[str]:
    """What the file of a set says that its reader did not carry: it would be gone with the file."""
    from cranfield.model import NoteKind

    return [str(note) for note in changed.notes if note.kind is NoteKind.NOT_CARRIED]


def _rewrite_yaml(path: Path, target: Path, changed: TestSet, query_id: str | None) -> None:
    from cranfield.errors import UsageError
    from cranfield.formats.io.files import refusal, write_text

    read_twice = path.is_file()  # a stream gives its bytes once
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        draft = Path(folder) / ("draft.json" if target.suffix.lower() == ".json" else "draft.yaml")
        _write_whole(changed, draft, target)
        text = draft.read_text(encoding="utf-8")
        kept = _with_comments(path, text, changed, query_id, draft) if read_twice else None
    if kept is None and read_twice and _has_comments(path):
        note(f"note: the comments of {path} are not in {target}")
    elif kept is not None and (lost := _written_anew(path, kept)):
        lines = f"line {lost[0]}" if len(lost) == 1 else f"lines {', '.join(map(str, lost))}"
        note(f"note: comments in what was changed are not in {target}: {lines} of the old text")
    try:
        write_text(target, [text if kept is None else kept])
    except OSError as error:
        raise UsageError(refusal(target, error)) from error


def _write_whole(changed: TestSet, draft: Path, target: Path) -> None:
    from cranfield.errors import InputError
    from cranfield.formats.convert import write_testset

    try:
        losses = write_testset(changed, draft, "yaml")
    except InputError as error:  # it names the draft, which nobody knows
        raise type(error)([replace(problem, path=str(target)) for problem in error.problems]) from None
    _refuse(losses, target)


def _held(changed: TestSet, entry: Format, path: Path) -> TestSet:
    """The set as a format holds it; refused where it has no room for something but what stands in the file beside it."""
    from cranfield.formats.convert import fitted
    from cranfield.formats.testsets.meta_file import holds_meta

    bare = changed if holds_meta(entry) else replace(changed, meta=type(changed.meta)())
    held, losses = fitted(bare, entry, path)
    _refuse(losses, path)
    return replace(held, meta=changed.meta)


def _refuse(losses: Sequence[str], target: Path, why: str = "the format cannot hold what the set holds now") -> None:
    from cranfield.errors import TestSetError

    if losses:
        raise TestSetError(
            f"not written: {why}",
            path=str(target),
            got="; ".join(losses),
            hint="--out NEW.yaml writes the changed set as YAML, and says what that has no room for",
        )


def _with_comments(path: Path, text: str, changed: TestSet, query_id: str | None, draft: Path) -> str | None:
    """The old text with the change in it, where it is YAML and reads back as the changed set."""
    from cranfield.errors import CranfieldError
    from cranfield.formats.sniff import read_testset
    from cranfield.testsets.textual import woven

    try:
        old = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:  # a packed file
        return None
    together = None if draft.suffix == ".json" else woven(old.replace("\r\n", "\n"), text, query_id)
    if together is None:
        return None
    try:
        draft.write_text(together, encoding="utf-8")
        again = read_testset(draft)
    except CranfieldError:
        return None
    names = ("digest", "meta", "name", "version", "description")
    if any(getattr(again, name) != getattr(changed, name) for name in names):
        return None
    return together.replace("\n", "\r\n") if "\r\n" in old else together


def _is_packed(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(4).startswith(PACKED)


def _has_comments(path: Path) -> bool:
    with path.open("rb") as stream:
        return any(_COMMENT.search(line) for line in stream)


def _written_anew(path: Path, kept: str) -> list[int]:
    """Lines with a comment, as far as a line alone shows it, that a text made of the old one no longer has."""
    there = Counter(line.strip() for line in kept.encode().splitlines())
    lost = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        there[line.strip()] -= 1
        if there[line.strip()] < 0 and _COMMENT.search(line):
            lost.append(number)
    return lost
