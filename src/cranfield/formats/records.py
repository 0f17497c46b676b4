"""Files of records, one a query, in YAML or JSON: a list at the top, or a mapping with the list under a key.

What `graded_yaml` and `golden_json` share; the shape of a record is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.delimited import unwritten, write_unicode
from cranfield.formats.files import decode, read_bytes, shown
from cranfield.formats.json_tree import parse_json
from cranfield.formats.located import Located
from cranfield.formats.tree import Node, Unreadable
from cranfield.formats.validation import describe
from cranfield.formats.yaml_tree import parse_yaml
from cranfield.formats.yaml_write import yaml_text
from cranfield.model import TestSet

RECORDS = "queries"
"""Key of the list; a list at the top stands as if it were under it."""


def load_records(path: Path) -> Located:
    """Read a file of records, its list under `RECORDS`.

    Raises:
        TestSetError: with every duplicate key; or with the first syntax error; or it is neither list nor mapping.
    """
    text = decode(read_bytes(path, TestSetError), path, TestSetError)
    try:
        return under_one_key(path, _tree(text, path))
    except Unreadable as unreadable:
        raise TestSetError([replace(problem, path=shown(path)) for problem in unreadable.problems]) from None


def _tree(text: str, path: Path) -> Node:
    if not text.strip():
        raise Unreadable([Problem("the file is empty")])
    if path.suffix.lower() == ".json":
        return parse_json(text)
    if text.lstrip()[:1] in {"{", "["}:  # JSON, of which YAML refuses some
        try:
            return parse_json(text)
        except Unreadable as unreadable:
            if not unreadable.is_syntax:
                raise
    return parse_yaml(text)


def under_one_key(path: Path, root: Node) -> Located:
    """The tree with its list under `RECORDS`."""
    if isinstance(root.value, list):
        place = (root.line, root.column)
        root = Node(root.line, root.column, {RECORDS: root}, {RECORDS: place}, root.size + 1, root.height + 1)
    elif not isinstance(root.value, dict):
        raise TestSetError(
            f"{describe(root.value)} at the top of the file",
            path=shown(path),
            line=root.line,
            column=root.column,
            expected=f"a list of records, or keys with one of them `{RECORDS}`",
        )
    return Located(path, root)


def report_repeated_ids(located: Located, problems: ProblemList) -> None:
    """Name both lines of every query id that is used twice."""
    records = located.data.get(RECORDS)
    first: dict[str, int] = {}
    for index, record in enumerate(records if isinstance(records, list) else []):
        query_id = record.get("query_id") if isinstance(record, dict) else None
        if query_id is not None and first.setdefault(str(query_id), index) != index:
            line, _ = located.mark((RECORDS, first[str(query_id)], "query_id"))
            message = f"query id {shorten(query_id)} is used twice; it also stands on line {line}"
            problems.problems.append(located.problem(message, (RECORDS, index, "query_id")))


def _json(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def write_records(
    path: Path, document: dict[str, Any] | list[dict[str, Any]], read: Callable[[Located], TestSet]
) -> None:
    """Write a document as YAML, or as JSON where the file's name ends in `.json`, when it would be read again.

    Args:
        path: replaced.
        document: a mapping; or a list, which is always JSON.
        read: makes a test set of it, and raises where it cannot.

    Raises:
        TestSetError: what reading would complain of.
    """
    is_json = path.suffix.lower() == ".json" or isinstance(document, list)
    text = yaml_text(document) if isinstance(document, dict) and not is_json else _json(document)
    try:
        read(under_one_key(path, parse_json(text) if is_json else parse_yaml(text)))
    except Unreadable as unreadable:
        raise unwritten(TestSetError(list(unreadable.problems)), path) from None
    except TestSetError as error:
        raise unwritten(error, path) from None
    write_unicode(path, [text])
