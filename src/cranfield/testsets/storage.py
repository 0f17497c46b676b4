"""Test sets as files: saving a changed one in the place of its file, or as another file.

What the format of the file has no room for is never dropped silently: saving is refused.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

from cranfield.errors import CranfieldError, InputError, TestSetError, UsageError
from cranfield.formats.convert import fitted, format_after, write_testset
from cranfield.formats.io.files import GZIP_MAGIC, STDIN, ZSTD_MAGIC, folder_lock, refusal, write_text
from cranfield.formats.registry import Format
from cranfield.formats.sniff import FORMATS, read_testset
from cranfield.formats.testsets.meta_file import format_of, holds_meta, keys_lost, write_again
from cranfield.model import Meta, NoteKind, TestSet
from cranfield.words import noun

_COMMENT = re.compile(rb"(?:^|\s)#")
NOT_CARRIED = "the file says more than is carried over"
NO_ROOM = "the format cannot hold what the set holds now"


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
    with folder_lock(folder) if folder.is_dir() else nullcontext():  # reading the file reports that it is not there
        yield


def save(
    changed: TestSet,
    path: Path,
    out: Path | None = None,
    *,
    query_id: str | None = None,
    format: str | None = None,  # noqa: A002  as above
) -> Saved:
    """Save a changed test set in the place of its file, or as another file, in the format of the old one.

    Another suffix of `out` is another format. Comments of the unchanged parts of a YAML file are kept.

    Args:
        changed: the test set to write.
        path: the file that it was read from.
        out: another file to write instead.
        query_id: the query that was changed, where one was.
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
    lost = [str(note) for note in changed.notes if note.kind is NoteKind.NOT_CARRIED]
    if entry is source:
        _refuse(lost, target, NOT_CARRIED)
        lost = []
    if entry is FORMATS["yaml"]:
        return Saved((target,), (*lost, *_save_yaml(changed, path, target, query_id)))
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
            hint="{out=NEW.yaml} writes the changed set as YAML, and says what that has no room for",
            parameters=("out",),
        )


def _fitted(changed: TestSet, entry: Format, path: Path) -> TestSet:
    """The set as a format holds it; refused where it has no room for something except metadata."""
    kept_set, losses = fitted(changed if holds_meta(entry) else replace(changed, meta=Meta()), entry, path)
    _refuse(losses, path, NO_ROOM)
    return replace(kept_set, meta=changed.meta)


def _save_yaml(changed: TestSet, path: Path, target: Path, query_id: str | None) -> list[str]:
    """Write YAML or JSON; returns notes on comments that are gone."""
    can_read_again = path.is_file()  # a stream gives its bytes once
    with tempfile.TemporaryDirectory(prefix="cranfield-") as folder:
        draft = Path(folder) / ("draft.json" if target.suffix.lower() == ".json" else "draft.yaml")
        _write_draft(changed, draft, target)
        text = draft.read_text(encoding="utf-8")
        kept = _with_comments(path, text, changed, query_id, draft) if can_read_again else None
    notes = []
    if kept is None and can_read_again and _has_comments(path):
        notes.append(_comments_lost(path, target))
    elif kept is not None and (lost := _comments_not_kept(path, kept)):
        lines = f"{noun(len(lost), 'lines')} {', '.join(map(str, lost))}"
        notes.append(f"comments in what was changed are not in {target}: {lines} of the old text")
    try:
        write_text(target, [text if kept is None else kept])
    except OSError as error:
        raise UsageError(refusal(target, error)) from error
    return notes


def _write_draft(changed: TestSet, draft: Path, target: Path) -> None:
    try:
        losses = write_testset(changed, draft, "yaml")
    except InputError as error:  # it names the draft, which is not the user's
        raise type(error)([replace(problem, path=str(target)) for problem in error.problems]) from None
    _refuse(losses, target, NO_ROOM)


def _with_comments(path: Path, text: str, changed: TestSet, query_id: str | None, draft: Path) -> str | None:
    """The old text with the change in it, where it is YAML and reads back as the changed set."""
    from cranfield.testsets.splicing import splice_query

    try:
        old = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:  # a packed file
        return None
    together = None if draft.suffix == ".json" else splice_query(old.replace("\r\n", "\n"), text, query_id)
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
        return stream.read(len(ZSTD_MAGIC)).startswith((GZIP_MAGIC, ZSTD_MAGIC))


def _has_comments(path: Path) -> bool:
    with path.open("rb") as stream:
        return any(_COMMENT.search(line) for line in stream)


def _comments_lost(path: Path, target: Path) -> str:
    return f"the comments of {path} are not in {target}"


def _comments_not_kept(path: Path, kept: str) -> list[int]:
    """Lines of a file with a comment, as far as a line alone shows it, that are not in a text made of it."""
    there = Counter(line.strip() for line in kept.encode().splitlines())
    lost = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        there[line.strip()] -= 1
        if there[line.strip()] < 0 and _COMMENT.search(line):
            lost.append(number)
    return lost
