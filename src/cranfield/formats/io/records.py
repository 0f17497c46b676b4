"""Files of records, one a query, in YAML or JSON: a list at the top, or a mapping with the list under a key.

What `graded_yaml` and `golden_json` share; the shape of a record is theirs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from cranfield.errors import TestSetError
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import suffix_of
from cranfield.formats.io.located import Located, load_any, located_text
from cranfield.formats.io.tree import Node, Unreadable, describe
from cranfield.formats.io.yaml_write import yaml_text
from cranfield.model import TestSet


class OpenModel(BaseModel):
    """Accepts keys that it does not know, which are reported."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True)


RECORDS = "queries"
"""Key of the list; a list at the top stands as if it were under it."""


def load_records(path: Path) -> Located:
    """Read a file of records, its list under `RECORDS`.

    Raises:
        TestSetError: with every duplicate key; or with the first syntax error; or it is neither list nor mapping.
    """
    return with_records_key(load_any(path, TestSetError))


def with_records_key(located: Located) -> Located:
    """The data with their list under `RECORDS`."""
    if isinstance(located.top, list):
        return Located(located.path, lambda: _wrapped(located.root), {RECORDS: located.top})
    if not isinstance(located.top, dict):
        expected = f"a list of records, or keys with one of them `{RECORDS}`"
        raise TestSetError(located.problem(f"{describe(located.top)} at the top of the file", (), expected=expected))
    return located


def _wrapped(root: Node) -> Node:
    place = (root.line, root.column)
    return Node(*place, {RECORDS: root}, {RECORDS: place}, root.size + 1, root.height + 1)


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
    is_json = suffix_of(path) == ".json" or isinstance(document, list)
    text = yaml_text(document) if isinstance(document, dict) and not is_json else _json(document)
    read_back(text, path, lambda located: read(with_records_key(located)), is_json=is_json)
    write_unicode(path, [text])


def read_back(text: str, path: Path, read: Callable[[Located], TestSet], *, is_json: bool) -> TestSet:
    """The test set that a text gives when it is read again.

    Raises:
        TestSetError: what reading would complain of, as problems of writing: without lines of a file that is not there.
    """
    try:
        return read(located_text(text, path, is_json=is_json))
    except (Unreadable, TestSetError) as error:
        raise TestSetError(
            [
                replace(problem, message=f"not written: {problem.message}", path=str(path), line=None, column=None)
                for problem in error.problems
            ]
        ) from None
