"""Which keys of a JSON file would be gone if it were written again: no reader carries every key that people add."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cranfield.formats.registry import Format
from cranfield.model import TestSet


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
