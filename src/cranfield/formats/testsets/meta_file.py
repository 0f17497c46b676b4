"""What is known about a test set, as a file beside it, for formats that have no room for it; and writing a set again.

The file of `code.csv` is `code.csv.meta.json`: JSON with the keys of `model.Meta`, those that say something.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import TestSetError
from cranfield.formats.io.files import STDIN, meta_path, refusal, write_text
from cranfield.formats.io.validation import load_model
from cranfield.formats.registry import Format
from cranfield.formats.sniff import detect_format
from cranfield.formats.testsets.native import plain
from cranfield.model import Meta, TestSet


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
