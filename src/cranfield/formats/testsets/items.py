"""Where the queries of a golden file stand in its data: in a list, under a key, in suites, or by id or text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cranfield.formats.testsets.field_mapping import EXPECTED_VALUE, LINES, FieldMapping, is_pair
from cranfield.formats.testsets.names import (
    ANSWERS,
    DESCRIBES,
    EXPECTED_WORDS,
    GRADE_WORDS,
    LISTS,
    NEVER_CONDITIONS,
    NO_EXPECTED_WORDS,
    OF_DOCUMENT,
    OF_FIELD,
    OF_GRADE,
    OF_LINES,
    QUERY_LISTS,
    TEXTS,
    expected_names,
    is_graded,
    plain,
    quoted,
)


def is_by_id(values: Any, path: str) -> bool:
    """Whether the items are a mapping of ids to queries."""
    import jmespath

    return isinstance(values if path == "@" else jmespath.search(path, values), Mapping)


def depth_of(values: Any) -> int:
    """The cutoff that a file names beside its queries: `{k: 10, queries: […]}`, `{defaults: {top_k: 10}}`; else 5."""
    if isinstance(values, Mapping):
        for each in (values, *(inner for inner in values.values() if isinstance(inner, Mapping))):
            for name, value in each.items():
                if plain(name) in {"k", "top_k", "topk"} and isinstance(value, int) and value > 0:
                    return int(value)
    return 5


Items = tuple[str, Sequence[Mapping[str, Any]]]
"""JMESPath and items of a list of queries."""


def items_of(values: Any, path: str = "") -> Items | None:
    """The list of queries in the data; None where there is none."""
    if isinstance(values, dict):
        return _items_inside(values, path)
    if not isinstance(values, list) or not values or not all(isinstance(value, dict) for value in values):
        return None
    nested = _nested(values)
    return (path or "@", values) if nested is None else (f"{path}[].{quoted(nested[0])}[]", nested[1])


def _items_inside(values: dict[str, Any], path: str) -> Items | None:
    """The list of queries under a key, the likeliest first; a mapping of ids to queries, or a single query."""
    if any(plain(name) in TEXTS and isinstance(value, str) for name, value in values.items()):
        return path or "@", [values]
    names = sorted(values, key=lambda name: LISTS.index(plain(name)) if plain(name) in LISTS else len(LISTS))
    lists = [name for name in names if isinstance(values[name], list)]
    mappings = [name for name in names if isinstance(values[name], dict) and plain(name) in LISTS]
    if (suites := _suites(values, path)) is not None:
        return suites
    for name in (*lists, *mappings):
        if (found := items_of(values[name], f"{path}.{quoted(name)}" if path else quoted(name))) is not None:
            return found
    is_by_id = bool(values) and all(isinstance(value, dict) and not is_graded(value) for value in values.values())
    return (path or "@", list(values.values())) if is_by_id else None


def _suites(values: dict[str, Any], path: str) -> Items | None:
    """Lists of queries by name, at the top or under a key: `{suites: {easy: […], hard: […]}}`; None where there are not several."""
    under = [name for name in values if plain(name) in LISTS and isinstance(values[name], dict)]
    for name in (*under, None):
        lists = values if name is None else values[name]
        rows: list[Any] = [row for of in lists.values() for row in (of if isinstance(of, list) and of else [None])]
        if len(lists) < 2 or not all(isinstance(row, dict) for row in rows):
            continue
        if all(any(plain(key) in TEXTS for key in found[0]) for found in lists.values()):
            steps = [part for part in (path, quoted(name) if name else "", "*[]") if part]
            return ".".join(steps), rows
    return None


def by_query(values: Any, path: str = "@") -> FieldMapping | None:
    """The mapping of a file that maps queries to what is expected: `{red shoes: [a, b]}`; None of any other."""
    if not isinstance(values, dict) or not values:
        return None
    for name, value in values.items():
        if path == "@" and plain(name) in LISTS and (found := by_query(value, quoted(str(name)))) is not None:
            return found
    answers = [value for value in values.values() if isinstance(value, list | dict)]
    is_flat = all(
        is_graded(value) if isinstance(value, dict) else all(isinstance(each, str | int) for each in value)
        for value in answers
    )
    is_answered = len(answers) == len(values) or (
        path != "@"
        and plain(path.strip('"')) in QUERY_LISTS
        and all(isinstance(value, str | list) for value in values.values())
    )
    return FieldMapping(items=path, expected=EXPECTED_VALUE) if is_flat and is_answered else None


def _nested(records: Sequence[Mapping[str, Any]]) -> Items | None:
    """Key and items of lists of queries within records that have no query themselves: suites of tests."""
    if any(plain(name) in TEXTS for name in records[0]):
        return None
    for name, value in records[0].items():
        is_list = isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value)
        if is_list and plain(name) in LISTS:
            return name, [item for record in records for item in record.get(name) or () if isinstance(item, dict)]
    return None


URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


FILE_NAME = re.compile(rf"(?:[^\s:]*[^\s:/.][^\s:/]*\.[A-Za-z][A-Za-z0-9]{{0,4}}|[^\s:]+/[^\s:]+)(?:{LINES})?")


_GRADE_WORDS = frozenset(word for table in GRADE_WORDS for word in table)


def is_object(name: str, value: Mapping[str, Any]) -> bool:
    """Whether a mapping is one expected document or place: `expected: {id: a, max_rank: 3}`."""
    is_expected = name in expected_names() or names_expected(name)
    keys = {plain(key) for key, inner in value.items() if not isinstance(inner, list | dict)}
    return is_expected and bool(keys & {*OF_DOCUMENT, *OF_FIELD})


def names_expected(name: str) -> bool:
    """Whether a name has a word as `expected` or `relevant`, and none that makes it something else."""
    words = {*name.split("_")}
    return bool(words & EXPECTED_WORDS) and not words & NO_EXPECTED_WORDS and name not in ANSWERS


def singles(value: Any) -> Iterator[Any]:
    """The single values in lists, pairs of an id and its grade, and mappings of ids to grades; empty text is none."""
    if isinstance(value, list):
        for inner in value:
            yield from [inner[0]] if is_pair(inner) else singles(inner)
    elif isinstance(value, Mapping) and is_graded(value):
        yield from value
    elif value is not None and value != "":
        yield value


def leaves(value: Any) -> Iterator[str]:
    """Every text, number and key in a value, as text."""
    if isinstance(value, list):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, Mapping):
        yield from map(str, value)
        for inner in value.values():
            yield from leaves(inner)
    elif value is not None:
        yield str(value)


def are_scalars(values: list[Any]) -> bool:
    """Whether all are text or whole numbers."""
    return all(isinstance(value, str | int) and not isinstance(value, bool) for value in values)


def are_values(values: list[Any]) -> bool:
    """Whether they may be what is expected: texts, numbers, lists, objects."""
    return all(isinstance(value, str | int | float | list | dict) and not isinstance(value, bool) for value in values)


def are_grades(values: list[Any]) -> bool:
    """Whether they look like grades and not like what is expected: small numbers alone."""
    return all(
        isinstance(value, int | float | str) and re.fullmatch(r"-?\d{1,2}(\.\d+)?", str(value)) for value in values
    )


def are_expected(values: list[Any]) -> bool:
    """Whether they may be what is expected, and are neither grades nor yes and no."""
    is_word = all(isinstance(value, str) and value.lower() in _GRADE_WORDS for value in values)
    return are_values(values) and not are_grades(values) and not is_word


def are_graded(values: list[Any]) -> bool:
    """Whether all are grades: numbers, yes and no, or words of one table."""
    texts = {str(value).lower() for value in values}
    return are_grades(values) or any(texts <= {*table} for table in GRADE_WORDS)


def are_documents(values: list[Any]) -> bool:
    """Whether they may name documents, and are no results with their scores."""
    rows = [row for value in values for row in singles(value) if isinstance(row, Mapping)]
    of_results = {"score", "_score", "similarity", "distance", "page_content"}
    return are_values(values) and not any({plain(key) for key in row} & of_results for row in rows)


def are_places(values: list[Any]) -> bool:
    """Whether all are paths of files or addresses."""
    texts = [value for each in values for value in singles(each)]
    return all(isinstance(text, str) and (URL.fullmatch(text) or FILE_NAME.fullmatch(text)) for text in texts)


def is_there(value: Any) -> bool:
    """Whether there is a value: not nothing, and no empty text."""
    return value is not None and value != ""


def is_word(value: Any) -> bool:
    """Whether it is text that stands in quotes in JMESPath as it is."""
    return isinstance(value, str) and re.fullmatch(r"[\w .:-]+", value) is not None


def says_something(row: Mapping[str, Any]) -> bool:
    """Whether an assertion names a document, a place or a value."""
    return any(
        plain(key) in {*OF_DOCUMENT, *OF_FIELD, "value"} and value not in (None, "") for key, value in row.items()
    )


def are_flags(values: list[Any]) -> bool:
    """Whether all are yes or no."""
    return all(isinstance(value, bool) or str(value).lower() in {"true", "false", "yes", "no"} for value in values)


def are_numbers(values: list[Any]) -> bool:
    """Whether all are numbers, or text of them."""
    try:
        [float(value) for value in values if not isinstance(value, bool)]
    except (TypeError, ValueError):
        return False
    return not any(isinstance(value, bool) for value in values)


def are_lists_of_texts(values: list[Any]) -> bool:
    """Whether all are lists of text."""
    return all(isinstance(value, list) and value and all(isinstance(text, str) for text in value) for value in values)


def are_texts(values: list[Any]) -> bool:
    """Whether they are texts; a number may be among them, as a query for an article is."""
    return are_scalars(values) and any(isinstance(value, str) for value in values)


def object_conditions(objects: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The conditions that the keys of expected objects say."""
    keys = list(dict.fromkeys(str(key) for value in objects for key in value))
    is_place = any(OF_FIELD.get(plain(key), "") in {"url", "path ends"} for key in keys)
    by_name = {plain(key): key for key in reversed(keys)}
    ids = [by_name[name] for name in OF_DOCUMENT if name in by_name]
    where: dict[str, str] = {"id": quoted(ids[0])} if ids else {}
    for key in keys:
        name = plain(key)
        is_scalar = all(not isinstance(value.get(key), list | dict) for value in objects)
        if key in ids or name in OF_GRADE or name in NEVER_CONDITIONS or not is_scalar or (ids and name in DESCRIBES):
            continue
        condition = OF_FIELD.get(name)
        if is_place and (condition == "title" or name == "name"):  # it describes what the place names
            continue
        if condition is None:
            field, _, test = key.rpartition("_")
            condition = f"{field} contains" if test == "contains" and field else key
            if ids:  # what else an object with an id says of its document is no condition
                continue
        if condition not in where:
            where[condition] = quoted(key)
    return where | (lines_condition(objects) if any(name.startswith("path") for name in where) else {})


def lines_condition(objects: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The condition on lines that the keys of expected objects say; none where they have none."""
    by_name = {plain(key): str(key) for value in objects for key in value}
    lines = next(([by_name[name] for name in names] for names in OF_LINES if {*names} <= by_name.keys()), [])
    if not lines:
        return {}
    return {"lines": quoted(lines[0]) if len(lines) == 1 else f"[{', '.join(map(quoted, lines))}]"}
