"""JSON lines: an object a line, with the number of its line; anything else is a problem."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from cranfield.errors import ProblemList
from cranfield.formats.io.files import MAX_PROBLEMS
from cranfield.formats.io.tree import describe


def json_objects(
    lines: Iterable[str | bytes],
    path: str,
    problems: ProblemList,
    *,
    expected: str = "an object a line",
    unique_keys: bool = False,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that is not blank, until there are too many problems.

    Args:
        lines: text, or bytes that should be UTF-8.
        path: what problems call the file.
        problems: gets every line that is not an object.
        expected: what a line should be, in problems.
        unique_keys: whether a key that a line has twice is a problem.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            if unique_keys and isinstance(record, dict) and line.count('":') != len(record):  # type: ignore[arg-type]  # text
                record = json.loads(line, object_pairs_hook=_with_unique_keys)
        except (ValueError, RecursionError) as error:  # bytes that are not UTF-8 are a ValueError too
            message = f"not valid JSON: {getattr(error, 'msg', error)}"
            column = getattr(error, "colno", None)
            problems.add(message, path=path, line=number, column=column, expected=expected)
        else:
            if isinstance(record, dict):
                yield number, record
            else:
                problems.add("no object", path=path, line=number, expected=expected, got=describe(record))
        if len(problems.problems) >= MAX_PROBLEMS:
            return


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        twice = next(key for key, n in Counter(key for key, _ in pairs).items() if n > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return record
