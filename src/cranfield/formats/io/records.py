"""Files of records: a list of queries in YAML or JSON, and JSON files of other tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from cranfield.base.errors import CranfieldError, ProblemList, TestSetError
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import decode, read_bytes, shown, suffix_of, write_text
from cranfield.formats.io.json_text import json_objects, json_values
from cranfield.formats.io.located import Located, load_any, located_text
from cranfield.formats.io.tree import Node, Unreadable, describe
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
    from cranfield.formats.io.yaml_text import yaml_text

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


class StrictRecord(BaseModel):
    """Accepts no key that it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


class Loose(BaseModel):
    """What another tool's file holds; it may hold more."""

    model_config = ConfigDict(extra="ignore", strict=True)


def load_json(path: Path) -> Located:
    """Read a JSON file whose top is an object.

    Raises:
        TestSetError: it cannot be read, or is no such file; with its first syntax error, or every duplicate key.
    """
    located = load_any(path, TestSetError, is_json=True)
    if not isinstance(located.top, dict):
        raise TestSetError("no object at the top of the file", path=shown(path), line=1, expected="`{…}`")
    return located


def load_json_values(path: Path, error: type[CranfieldError]) -> Any:
    """The values of a JSON file, whatever is at its top.

    Raises:
        CranfieldError: of type `error`: it cannot be read; with its first syntax error, or every duplicate key.
    """
    return load_any(path, error, is_json=True).top


def json_records(path: Path, problems: ProblemList) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and object of each record of JSON Lines, of a JSON list, or of the one object of a JSON file.

    Raises:
        CranfieldError: of the type of `problems`: it cannot be read, or a JSON list with a syntax error.
    """
    text = decode(read_bytes(path, problems.error), path, problems.error)
    first, _, rest = text.lstrip().partition("\n")
    if rest.strip() and isinstance(json_values(first), dict):
        yield from json_objects(text.split("\n"), shown(path), problems)
        return
    located = load_any(path, problems.error, is_json=True)
    is_list = isinstance(located.top, list)
    for index, value in enumerate(located.top if is_list else [located.top]):
        line = located.mark((index,) if is_list else ())[0]
        if isinstance(value, dict):
            yield line, value
        else:
            problems.add("not an object", path=shown(path), line=line, expected="`{…}`", got=describe(value))


def first_of_keys(record: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some keys that a record has with a value; None where it has none."""
    return next((name for name in names if record.get(name) is not None), None)


def write_json(path: Path, document: object) -> None:
    """Write JSON, indented by two blanks."""
    write_text(path, [json.dumps(document, indent=2) + "\n"])


def indexed_objects(value: object) -> list[tuple[int, Mapping[str, Any]]]:
    """Position and content of the objects of a list; the model reports the rest."""
    return (
        [(i, entry) for i, entry in enumerate(value) if isinstance(entry, Mapping)] if isinstance(value, list) else []
    )
