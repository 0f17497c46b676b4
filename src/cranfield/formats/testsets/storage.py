"""Test sets as files: saving a changed one in the place of its file, or as another file.

What the format of the file has no room for is never dropped silently: saving is refused.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from cranfield.formats.io.validation import load_model
from cranfield.formats.registry import Format
from cranfield.formats.sniff import FORMATS, detect_format, read_testset
from cranfield.formats.splice.files import spliced, spliced_meta
from cranfield.formats.testsets.native import plain
from cranfield.model import Meta, NoteKind, TestSet

if TYPE_CHECKING:
    from cranfield.formats.testsets.field_mapping import FieldMapping


def read_meta(path: Path) -> Meta:
    """Read such a file.

    Raises:
        TestSetError: with every problem of the file, each at its line and column.
    """
    return load_model(path, Meta, TestSetError)


def write_meta(testset: TestSet, path: Path) -> None:
    """Write what is known about a test set to a file of its own: all of it, or nothing.

    Raises:
        TestSetError: the file cannot be written.
    """
    entry = plain(testset.meta)
    try:
        write_text(path, [json.dumps(entry, ensure_ascii=False, indent=2), "\n"])
    except OSError as cause:
        raise TestSetError(refusal(path, cause)) from cause


def with_meta(testset: TestSet, path: Path) -> TestSet:
    """A test set read from `path` with what the file beside it says, where there is one: it was written later."""
    meta_file = meta_path(path)
    if str(path) == STDIN or not meta_file.is_file():
        return testset
    return replace(testset, meta=read_meta(meta_file))


def format_of(path: Path, named: str | None = None) -> Format:
    """The format of a test set, named or detected from the content."""
    return detect_format(path, "testset", named, TestSetError)


def holds_meta(entry: Format) -> bool:
    """Whether a format has room for what is known about a test set, and can be written."""
    return bool(entry.writer) and "meta" in entry.holds


def write_again(testset: TestSet, path: Path, entry: Format) -> tuple[Path, ...]:
    """Write a test set in the format it was read in, and what is known about it beside it where that has no room.

    Returns:
        The files that were written.

    Raises:
        TestSetError: the format is only read, or a file cannot be written.
    """
    write = entry.write
    if write is None:
        raise TestSetError("not written: this format is only read", path=str(path), got=entry.name)
    if holds_meta(entry):
        write(testset, path)
        return (path,)
    write(replace(testset, meta=Meta()), path)
    write_meta(testset, meta_path(path))
    return path, meta_path(path)


def keys_lost(path: Path, testset: TestSet, entry: Format) -> list[str]:
    """Keys that say something in a JSON or JSONL file, and nowhere in what a format makes of a test set.

    Args:
        path: the file that is there; of one that is no JSON, no key is lost.
        testset: what is to be written in its place.
        entry: the format of both.
    """
    before = _keys_of(path)
    if not before or entry.write is None:
        return []
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        draft = Path(folder) / path.name
        entry.write(testset, draft)
        return sorted(before - _keys_of(draft))


def _keys_of(path: Path) -> set[str]:
    if not path.is_file():
        return set()
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    try:
        return set(_filled_keys(json.loads(text)))
    except (ValueError, RecursionError):
        pass
    try:
        return {key for line in text.splitlines() if line.strip() for key in _filled_keys(json.loads(line))}
    except (ValueError, RecursionError):
        return set()


def _filled_keys(value: Any) -> Iterator[str]:
    """Every key with a value that is not empty."""
    if isinstance(value, dict):
        yield from (key for key, inner in value.items() if inner not in (None, "", [], {}))
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _filled_keys(inner)


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
    # Refuse to replace a stream, a packed file, or what is neither a file nor a folder.
    in_place = out is None and path.exists()
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
    source = format_of(path, format)
    if target.is_dir() and not source.is_folder:
        raise UsageError("this is a folder", path=str(target), expected="a file")
    entry = source if out is None else format_after(source, path, out)
    if entry is source and (saved := save_spliced(changed, path, target, entry)) is not None:
        return saved
    return _save_whole(changed, path, target, source, entry)


def save_spliced(
    changed: TestSet, path: Path, target: Path, entry: Format, mapping: FieldMapping | None = None
) -> Saved | None:
    """Save by changing the text that is there.

    Args:
        changed: the test set to write.
        path: the file that it was read from.
        target: `path`, or another file.
        entry: the format of both.
        mapping: of a golden file; None: proposed from its data.

    Returns:
        The files; None where the names end in different syntaxes, or the text has no room for the change.

    Raises:
        TestSetError: the format cannot hold the set.
    """
    if entry.name == "mapped":
        from cranfield.formats.testsets.mapping_back import write_back

        write_back(changed, path, target, mapping)
        return Saved((target,), ())
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
        # Write YAML or JSON; returns notes on comments that are gone.
        with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
            draft = Path(folder) / ("draft.json" if target.suffix.lower() == ".json" else "draft.yaml")
            _write_draft(changed, draft, target)
            text = draft.read_text(encoding="utf-8")
        notes = [_comments_lost(path, target)] if path.is_file() and _has_comments(path) else []
        try:
            write_text(target, [text])
        except OSError as error:
            raise UsageError(refusal(target, error)) from error
        return Saved((target,), (*lost, *notes))
    kept_set = _fitted(changed, entry, target)
    if entry is source:
        _refuse([f"not carried over: the key {key!r}" for key in keys_lost(path, kept_set, entry)], target, NOT_CARRIED)
        if path.is_file() and any(line.startswith(b"#") for line in path.read_bytes().splitlines()):
            lost = [_comments_lost(path, target)]
    return Saved(write_again(kept_set, target, entry), tuple(lost))


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
