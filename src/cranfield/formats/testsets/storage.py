"""Test sets as files: saving a changed one in the place of its file, or as another file.

What the format of the file has no room for is never dropped silently: saving is refused.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from cranfield.base.errors import InputError, TestSetError, UsageError
from cranfield.formats.convert import chosen_format, fitted, format_after, formula_notes, write_testset
from cranfield.formats.io.files import (
    GZIP_MAGIC,
    STDIN,
    ZSTD_MAGIC,
    meta_path,
    path_lock,
    refusal,
    suffix_of,
    write_bytes,
    write_text,
)
from cranfield.formats.registry import Format
from cranfield.formats.sniff import FORMATS, read_testset
from cranfield.formats.splice.files import spliced, spliced_meta
from cranfield.formats.testsets.meta_file import format_of, holds_meta, keys_lost, with_meta, write_again
from cranfield.model import Meta, NoteKind, TestSet

_COMMENT = re.compile(rb"(?:^|\s)#")
NOT_CARRIED = "the file has content that is not carried over"
NO_ROOM = "the format cannot store all content of the test set"


@dataclass(frozen=True, slots=True)
class Saved:
    """What saving a test set did."""

    files: tuple[Path, ...]
    """The files that were written."""
    notes: tuple[str, ...]
    """What of the old file is not in them."""


@contextmanager
def lock_testset(path: Path) -> Iterator[None]:
    """Wait for other processes that change test sets in the folder of a file, and keep them waiting."""
    folder = path.resolve().parent
    with path_lock(folder) if folder.is_dir() else nullcontext():  # reading the file reports that it is not there
        yield


def save(
    changed: TestSet,
    path: Path,
    out: Path | None = None,
    *,
    format: str | None = None,  # noqa: A002  as above
) -> Saved:
    """Save a changed test set in the place of its file, or as another file, in the format of the old one.

    Only what the change touches is written anew: unknown keys, comments, order, indentation and line ends stay, in every
    format that is text. Another suffix of `out` is another format, which is written as a whole.

    Args:
        changed: the test set to write.
        path: the file that it was read from.
        out: another file to write instead.
        format: the format of `path`, where its content does not tell.

    Raises:
        UsageError: the file is a stream, or packed, and `out` is not given.
        TestSetError: the format cannot hold the set, or the file holds what the set does not.
    """
    target = path if out is None else out
    _check_target(path, target, in_place=out is None and path.exists())
    source = format_of(path, format)
    if target.is_dir() and not source.is_folder:
        raise UsageError("this is a folder", path=str(target), expected="a file")
    entry = source if out is None else format_after(source, path, out)
    if entry is source and (saved := save_spliced(changed, path, target, entry)) is not None:
        return saved
    return _save_whole(changed, path, target, source, entry)


def save_spliced(changed: TestSet, path: Path, target: Path, entry: Format) -> Saved | None:
    """Save by changing the text that is there.

    Args:
        changed: the test set to write.
        path: the file that it was read from.
        target: `path`, or another file.
        entry: the format of both.

    Returns:
        The files; None where the names end in different syntaxes, or the text has no room for the change.

    Raises:
        TestSetError: the format cannot hold the set.
    """
    ends = {".yaml" if (end := suffix_of(name)) == ".yml" else end for name in (path, target)}
    if len(ends) > 1 or not (path.is_dir() or (path.is_file() and not _is_packed(path))):
        return None
    before = read_testset(path, entry.name)
    if not holds_meta(entry):
        before = with_meta(before, path)
    fitting = _fitted(changed, entry, target)
    made = spliced(path, before, fitting, entry, target)
    if made is None:
        return None
    meta_change = None if holds_meta(entry) else spliced_meta(path, target, before.meta, changed.meta)
    try:
        for place, data in made.files.items():
            place.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(place, [data])
        if meta_change is None:
            return Saved(tuple(made.files), ())
        place = meta_path(target)
        if meta_change[1] is None:
            place.unlink(missing_ok=True)
            return Saved(tuple(made.files), ())
        write_bytes(place, [meta_change[1]])
    except OSError as error:
        raise UsageError(refusal(target, error)) from error
    return Saved((*made.files, place), ())


def write_new(testset: TestSet, out: Path) -> tuple[str, ...]:
    """Write a test set to a new file, its metadata beside it where the format has no room for them.

    Returns:
        A sentence for each thing that the file does not hold.

    Raises:
        TestSetError: the format can hold nothing of it, or the file cannot be written.
    """
    entry = chosen_format(out, None)
    bare = testset if holds_meta(entry) else replace(testset, meta=Meta())
    fitting, losses = fitted(bare, entry, out)
    write_again(replace(fitting, meta=testset.meta), out, entry)
    return (*losses, *formula_notes(out))


def _save_whole(changed: TestSet, path: Path, target: Path, source: Format, entry: Format) -> Saved:
    """Write the whole file anew; refused where the old one holds what would be lost."""
    lost = [str(note) for note in changed.notes if note.kind is NoteKind.NOT_CARRIED]
    if entry is source:
        _refuse(lost, target, NOT_CARRIED)
        lost = []
    if entry is FORMATS["yaml"]:
        return Saved((target,), (*lost, *_save_yaml(changed, path, target)))
    kept_set = _fitted(changed, entry, target)
    if entry is source:
        _refuse([f"not carried over: the key {key!r}" for key in keys_lost(path, kept_set, entry)], target, NOT_CARRIED)
        if path.is_file() and any(line.startswith(b"#") for line in path.read_bytes().splitlines()):
            lost = [_comments_lost(path, target)]
    return Saved(write_again(kept_set, target, entry), tuple(lost))


def _check_target(path: Path, target: Path, *, in_place: bool) -> None:
    """Refuse to replace a stream, a packed file, or what is neither a file nor a folder."""
    if (
        str(target) == STDIN
        or target.suffix in {".gz", ".zst"}
        or (in_place and (_is_packed(path) or not (path.is_file() or path.is_dir())))
    ):
        raise UsageError(
            "cannot be changed in place",
            path=str(path),
            hint="{out=FILE} writes the changed set to a file",
            parameters=("out",),
        )


def _refuse(losses: Sequence[str], target: Path, why: str) -> None:
    if losses:
        raise TestSetError(
            f"not written: {why}",
            path=str(target),
            got="; ".join(losses),
            hint="{out=NEW.yaml} writes the changed set as YAML, and lists what YAML cannot store",
            parameters=("out",),
        )


def _fitted(changed: TestSet, entry: Format, path: Path) -> TestSet:
    """The set as a format holds it; refused where it has no room for something except metadata."""
    kept_set, losses = fitted(changed if holds_meta(entry) else replace(changed, meta=Meta()), entry, path)
    _refuse(losses, path, NO_ROOM)
    return replace(kept_set, meta=changed.meta)


def _save_yaml(changed: TestSet, path: Path, target: Path) -> list[str]:
    """Write YAML or JSON; returns notes on comments that are gone."""
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        draft = Path(folder) / ("draft.json" if target.suffix.lower() == ".json" else "draft.yaml")
        _write_draft(changed, draft, target)
        text = draft.read_text(encoding="utf-8")
    notes = [_comments_lost(path, target)] if path.is_file() and _has_comments(path) else []
    try:
        write_text(target, [text])
    except OSError as error:
        raise UsageError(refusal(target, error)) from error
    return notes


def _write_draft(changed: TestSet, draft: Path, target: Path) -> None:
    try:
        losses = write_testset(changed, draft, "yaml")
    except InputError as error:  # it names the draft, which is not the user's
        raise type(error)([replace(problem, path=str(target)) for problem in error.problems]) from None
    _refuse(losses, target, NO_ROOM)


def _is_packed(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as stream:
        return stream.read(len(ZSTD_MAGIC)).startswith((GZIP_MAGIC, ZSTD_MAGIC))


def _has_comments(path: Path) -> bool:
    with path.open("rb") as stream:
        return any(_COMMENT.search(line) for line in stream)


def _comments_lost(path: Path, target: Path) -> str:
    return f"the comments of {path} are not in {target}"
