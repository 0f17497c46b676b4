"""Changing one query in the text of a YAML test set, so that the comments of all the others stay.

A whole file is written anew in memory; the block of the query and the blocks beside the queries are then taken from it
into the old text. The caller reads the result back before using it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import yaml

QUERIES = "queries"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C where PyYAML has it: some ten times as fast."""


@dataclass(frozen=True, slots=True)
class _Outline:
    """Where the parts of a test set stand: lines from 0, the end not included."""

    lines: list[str]
    keys: Mapping[str, tuple[int, int]]
    """Top-level key to its lines, without the comments after it."""
    queries: Mapping[str, tuple[int, int]]
    """Query id to the lines of its entry, without the comments after it."""
    indent: int
    """Column of the dash of an entry."""


def _outline(text: str) -> _Outline | None:
    """The outline of a test set in block style; None of any other."""
    node = yaml.compose(text, Loader=_LOADER)
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return None
    lines = text.splitlines(keepends=True)
    starts = [key.start_mark.line for key, _ in node.value] + [len(lines)]
    keys, queries, indent = {}, {}, 0
    for place, (key, value) in enumerate(node.value):
        keys[str(key.value)] = (starts[place], _last(lines, starts[place], starts[place + 1]))
        if key.value != QUERIES:
            continue
        if not isinstance(value, yaml.SequenceNode) or value.flow_style or not value.value:
            return None
        indent = value.start_mark.column
        heads = [item.start_mark.line for item in value.value] + [starts[place + 1]]
        for number, item in enumerate(value.value):
            query_id = _id_of(item)
            first = heads[number]
            if query_id is None or not lines[first][indent:].startswith("-"):
                return None
            queries[query_id] = (first, _last(lines, first, heads[number + 1]))
    return _Outline(lines, keys, queries, indent) if queries else None


def _id_of(item: yaml.Node) -> str | None:
    if not isinstance(item, yaml.MappingNode):
        return None
    return next((str(value.value) for key, value in item.value if key.value == "id"), None)


def _last(lines: list[str], first: int, end: int) -> int:
    """Where a part ends, the blank lines and comments before the next one left out."""
    while end > first + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return end


def splice_query(old: str, new: str, query_id: str | None) -> str | None:
    """The old text with one query, and everything beside the queries, as the new text has it; None where it cannot be.

    Args:
        old: text of the file as it stands.
        new: text of the whole changed test set.
        query_id: the query that was added or changed; None where only what stands beside the queries was.
    """
    try:
        before, after = _outline(old), _outline(new)
    except yaml.YAMLError:
        return None
    if before is None or after is None or (query_id is not None and query_id not in after.queries):
        return None
    edits: list[tuple[int, int, list[str]]] = []
    if query_id is not None:
        shift = before.indent - after.indent
        entry = [_shifted(line, shift) for line in after.lines[slice(*after.queries[query_id])]]
        last = max(end for _, end in before.queries.values())
        edits.append((*before.queries.get(query_id, (last, last)), entry))
    for key, (first, stop) in after.keys.items():
        if key == QUERIES:
            continue
        block = after.lines[first:stop]
        if key not in before.keys:
            edits.append((before.keys[QUERIES][0],) * 2 + (block,))
        elif _content(before.lines[slice(*before.keys[key])]) != _content(block):
            edits.append((*before.keys[key], block))
    lines = [*before.lines]
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    for first, stop, block in sorted(edits, key=lambda edit: edit[:2], reverse=True):
        lines[first:stop] = block
    return "".join(lines)


def _shifted(line: str, columns: int) -> str:
    if not line.strip():
        return line
    return " " * columns + line if columns > 0 else line[-columns:]


def _content(lines: list[str]) -> object:
    """The content of a block, apart from its layout."""
    return yaml.load("".join(lines), Loader=yaml.BaseLoader)  # noqa: S506  strings, lists and mappings alone
