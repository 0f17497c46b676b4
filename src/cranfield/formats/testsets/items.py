"""Where the queries of a golden file stand in its data: in a list, under a key, in suites, or by id or text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cranfield.formats.testsets.field_mapping import EXPECTED_VALUE, FieldMapping
from cranfield.formats.testsets.names import LISTS, QUERY_LISTS, TEXTS, is_graded, plain, quoted


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
