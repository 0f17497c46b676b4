"""Any file of queries with the results of a search, whatever its keys are called: the run of a harness that people wrote themselves.

The same names as those of golden files say what the text and the id of a query are; a file with both what is expected and what
was found is a test set and a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cranfield.base.errors import CranfieldError, ProblemList, RunFormatError, TestSetError, shorten
from cranfield.base.words import join_first
from cranfield.formats.io.files import shown, stem
from cranfield.formats.io.json_text import json_values
from cranfield.formats.io.tree import plain_values
from cranfield.formats.runs.table import answer_of
from cranfield.formats.testsets.field_mapping import file_values
from cranfield.formats.testsets.names import IDS, LISTS, RESULT_LISTS, TEXTS, WEAK_TEXTS, plain
from cranfield.model import Answer, Run
from cranfield.model.query_ids import text_ids

_ANSWERS = (
    "response",
    "responses",
    "output",
    "outputs",
    "answer",
    "result",
    "retrieval",
    "search",
    "actual",
    "prediction",
    "run",
)
"""Keys of a mapping within a record, in which the list of results may stand."""
_REQUESTS = ("vars", "input", "inputs", "request", "case", "test", "test_case", "query", "question")
"""The same of the text of the query."""
_TEXTS = (*TEXTS, *WEAK_TEXTS)
_SEPARATORS = ("|", ";", ",")

Record = tuple[str | None, str, Any]
"""Id and text of a query, and its results."""


def read_mapped_run(path: Path | str) -> Run:
    """Read a run of JSON, JSON Lines, YAML, TOML or a table, a record a query.

    Raises:
        RunFormatError: it cannot be read, no key has results, or with every query that is there twice and every result without an id.
    """
    path = Path(path)
    try:
        values = _values(path)
    except TestSetError as error:
        raise RunFormatError(error.problems) from None
    records = list(_records(values))
    if not records:
        expected = f"a query and a list under a key such as {join_first(RESULT_LISTS[:4])}"
        raise RunFormatError("no results of queries in this file", path=shown(path), expected=expected)
    problems = ProblemList(RunFormatError)
    answers: dict[str, Answer] = {}
    for (query_id, _, results), by_text in zip(records, text_ids([text for _, text, _ in records]), strict=True):
        name = by_text if query_id is None else query_id
        place = {"path": shown(path)}
        if name in answers:
            problems.add(f"query {shorten(name)} is there twice", **place, expected="each query once")
            continue
        answers[name] = answer_of(name, plain_values(results), problems, place)
    problems.raise_if_any()
    return Run(stem(path), answers)


def is_mapped_run(path: Path) -> bool:
    """Whether a file has queries with lists of results."""
    try:
        return any(True for _ in _records(_values(path)))
    except (CranfieldError, OSError, ImportError):
        return False


def _values(path: Path) -> Any:
    """The data of a file; of a table, with the lists in its cells."""
    source = file_values(path)
    if not source.is_table:
        return source.values
    return [
        {name: _cell(text) if plain(name) in RESULT_LISTS else text for name, text in row.items()}
        for row in source.values
    ]


def _cell(text: str) -> list[Any]:
    """The results in a cell of a table: JSON, or texts with a separator between them."""
    given = json_values(text) if text[:1] == "[" else None
    if isinstance(given, list):
        return list(plain_values(given))
    separator = next((each for each in _SEPARATORS if each in text), None)
    return [part.strip() for part in (text.split(separator) if separator else [text]) if part.strip()]


def _records(values: Any, *, is_inside: bool = False) -> Iterator[Record]:
    """The queries of a file: records in a list, by id or text, or either of them under a key."""
    if isinstance(values, list):
        yield from (record for value in values if isinstance(value, dict) and (record := _record(value)) is not None)
        return
    if not isinstance(values, dict):
        return
    if (alone := _record(values)) is not None:
        yield alone
        return
    keyed = [(str(key), _results(value)) for key, value in values.items()]
    if keyed and all(results is not None for _, results in keyed):
        yield from ((None, key, results) for key, results in keyed)
        return
    if is_inside:
        if values and all(isinstance(value, list) for value in values.values()):
            yield from ((None, str(key), value) for key, value in values.items())
        return
    for name, value in values.items():
        if plain(name) in (*RESULT_LISTS, *LISTS, *_ANSWERS, "runs", "answers", "predictions") and isinstance(
            value, list | dict
        ):
            found = list(_records(value, is_inside=True))
            if found:
                yield from found
                return


def _record(value: Mapping[str, Any]) -> Record | None:
    """A query and its results; None where the record lacks one of them."""
    results = _results(value)
    if results is None:
        return None
    query_id = _first(value, (*IDS, "question_id", "case_id", "test_id"))
    text = _first(value, _TEXTS)
    if text is None:
        inner = (each for key, each in value.items() if plain(key) in _REQUESTS and isinstance(each, dict))
        text = next((found for each in inner if (found := _first(each, _TEXTS)) is not None), None)
    return None if query_id is None and text is None else (query_id, text or "", results)


def _first(value: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    """The first text or whole number under one of some names."""
    by_name = {plain(key): inner for key, inner in value.items()}
    found = (by_name[name] for name in names if isinstance(by_name.get(name), str | int))
    return next((str(each) for each in found if not isinstance(each, bool) and str(each).strip()), None)


def _results(value: Any) -> Any:
    """The list of results in a record, or in a mapping of it; None where there is none."""
    if not isinstance(value, dict):
        return None
    by_name = {plain(key): inner for key, inner in value.items()}
    for name in RESULT_LISTS:
        if isinstance(by_name.get(name), list):
            return by_name[name]
    inner = (by_name[name] for name in _ANSWERS if isinstance(by_name.get(name), dict))
    return next((found for each in inner if (found := _results(each)) is not None), None)
