"""Where a file says something of a query: for messages about a test set that was read already."""

from __future__ import annotations

import csv
from pathlib import Path

from cranfield.formats.io.delimited import separator_of
from cranfield.formats.splice.parts import SplicePart, UnspliceableError, json_lines_part, json_part, yaml_part

_NAMES = ("id", "query_id", "_id", "query", "query_text", "text", "qid")


def place_of_item(path: Path, names: tuple[str, ...], item: str) -> tuple[int | None, int | None]:
    """Line and column at which a text file says an item of a query; None where it is not found.

    Args:
        path: of the test set.
        names: id and text of the query.
        item: what is judged, or the value of a stratum.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None, None
    found = _in_tree(text, path, names, item)
    if found is None:
        return _in_rows(text, names, item), None
    first = text.rfind("\n", 0, found) + 1
    return text.count("\n", 0, found) + 1, found - first + 1


def _in_tree(text: str, path: Path, names: tuple[str, ...], item: str) -> int | None:
    begins = text.lstrip()[:1] in {"{", "["}
    readers = (json_part, json_lines_part) if begins else (yaml_part,) if path.suffix in {".yaml", ".yml"} else ()
    for read in readers:
        try:
            root = read(text)
            found = _in_part(root, names, item)
            return found if found is not None else _in_part(root, names, None)
        except (UnspliceableError, RecursionError):
            continue
    return None


def _in_part(part: SplicePart, names: tuple[str, ...], item: str | None) -> int | None:
    """The item in an entry of the query; without an item, the entry."""
    if part.kind == "map" and any(
        member.key in _NAMES and str(member.part.value) in names
        for member in part.members
        if member.part.kind == "scalar"
    ):
        return part.start if item is None else _of_item(part, item)
    for member in part.members:
        if (found := _in_part(member.part, names, item)) is not None:
            return found
    return None


def _of_item(part: SplicePart, item: str) -> int | None:
    for member in part.members:
        if member.key == item or (member.part.kind == "scalar" and str(member.part.value) == item):
            return member.start
        if (found := _of_item(member.part, item)) is not None:
            return found
    return None


def _in_rows(text: str, names: tuple[str, ...], item: str) -> int | None:
    lines = text.splitlines()
    head = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    separator = separator_of(head.encode("utf-8", "replace"))
    for number, line in enumerate(lines, start=1):
        if item in line and any(name in line for name in names):
            try:
                cells = next(csv.reader([line], delimiter=separator), [])
            except csv.Error:
                cells = []
            words = {*(cell.strip() for cell in cells), *line.split()}
            if words & set(names) and any(word == item or word.startswith(f"{item}:") for word in words):
                return number
    return None
