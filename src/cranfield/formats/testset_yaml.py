"""Test sets in YAML or JSON: read with every problem at its line, written so that reading gives the same again.

The schema is in `testset_models`; here is what one field alone cannot tell, and the way to and from `model.TestSet`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cranfield.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.formats.files import write_text
from cranfield.formats.json_tree import parse_json
from cranfield.formats.located import Located, load_located, source_text, validate
from cranfield.formats.testset_models import PatternModel, TestSetModel
from cranfield.formats.tree import Unreadable
from cranfield.formats.yaml_tree import parse_yaml
from cranfield.formats.yaml_write import yaml_text
from cranfield.model import Pattern, Query, TestSet

SCHEMA_VERSION = 1
_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_SHORT = 1e15
"""Above it, a whole number written without its exponent is longer than with it."""


def read_testset_yaml(path: Path | str) -> TestSet:
    """Read a test set in YAML or JSON.

    Numbers used as ids or text keep their spelling (`007`); grades are floats.

    Raises:
        TestSetError: with everything that is wrong, in the order of the lines.
    """
    return _testset(load_located(Path(path), TestSetError))


def _testset(located: Located) -> TestSet:
    problems = ProblemList(TestSetError)
    model = validate(located, TestSetModel, problems)
    problems.problems += _query_problems(located)
    problems.raise_if_any()
    if model is None:
        raise TestSetError("not a test set", path=str(located.path))
    return TestSet(
        name=model.name,
        queries=tuple(Query(q.id, q.text, dict(q.strata), dict(q.params), q.weight + 0.0) for q in model.queries),
        grades={
            q.id: {doc_id: grade + 0.0 for doc_id, grade in q.judgments.items()} for q in model.queries if q.judgments
        },
        targets={q.id: tuple(_pattern(p) for p in q.patterns) for q in model.queries if q.patterns},
        version=model.version,
        description=model.description,
    )


def _pattern(model: PatternModel) -> Pattern:
    return Pattern(model.regex, model.grade + 0.0, model.credit, model.expected_count)


def _query_problems(located: Located) -> Iterator[Problem]:
    """What holds between fields. Works on the data, so that it is told even where single fields are wrong too."""
    queries = located.sourced.get("queries")
    first: dict[str, int] = {}
    for index, query in enumerate(queries if isinstance(queries, list) else []):
        if not isinstance(query, dict):
            continue
        query_id = source_text(query.get("id"))
        if isinstance(query_id, str) and first.setdefault(query_id, index) != index:
            line, _ = located.mark(("queries", first[query_id], "id"))
            message = f"query id {shorten(query_id)} is used twice; it also stands on line {line}"
            yield located.problem(message, ("queries", index, "id"))
        yield from _judgment_problems(located, index, query)


def _judgment_problems(located: Located, index: int, query: Mapping[str, Any]) -> Iterator[Problem]:
    name = f"queries[{index}]"
    judgments, patterns = query.get("judgments"), query.get("patterns")
    if judgments and patterns:
        yield located.problem(
            f"{name} has both judgments and patterns",
            ("queries", index, "patterns"),
            key=True,
            expected="one of them",
            hint="a pattern with ^ and $ stands for one id",
        )
    if judgments in (None, {}) and patterns in (None, []):
        yield located.problem(
            f"{name} has no judgments",
            ("queries", index),
            hint="add `judgments: {document id: grade}`, or `patterns` on the id",
        )
    for position, pattern in enumerate(patterns if isinstance(patterns, list) else []):
        if not isinstance(pattern, dict) or pattern.get("credit", "once") != "once":
            continue
        count = pattern.get("expected_count")
        if isinstance(count, int) and not isinstance(count, bool) and count > 1:
            yield located.problem(
                f"{name}.patterns[{position}] is credited once and expects {count}",
                ("queries", index, "patterns", position, "expected_count"),
                expected="an expected_count of 1, or none",
                hint="`credit: every` credits each match",
            )


def write_testset_yaml(testset: TestSet, path: Path | str) -> None:
    """Write a test set as YAML, or as JSON where the file name ends in `.json`.

    Raises:
        TestSetError: when it holds what could not be read back: a query without judgments or text, two queries with
            one id, characters that are no Unicode (JSON takes those).
    """
    path = Path(path)
    is_json = path.suffix.lower() == ".json"
    document = _document(testset)
    if not is_json and _SURROGATE.search(json.dumps(document, ensure_ascii=False)):
        raise TestSetError(
            "not written: text that is no Unicode",
            path=str(path),
            expected="Unicode",
            hint="a file name that ends in .json takes it",
        )
    text = json.dumps(document, indent=2) + "\n" if is_json else yaml_text(document)
    try:
        _testset(Located(path, parse_json(text) if is_json else parse_yaml(text)))
    except Unreadable as unreadable:
        raise TestSetError([_unwritable(problem, path) for problem in unreadable.problems]) from None
    except TestSetError as error:
        raise TestSetError([_unwritable(problem, path) for problem in error.problems]) from None
    write_text(path, [text])


def _unwritable(problem: Problem, path: Path) -> Problem:
    """The problem that reading would have, without its line in a file that is not there."""
    return replace(problem, message=f"not written: {problem.message}", path=str(path), line=None, column=None)


def _document(testset: TestSet) -> dict[str, Any]:
    document: dict[str, Any] = {"cranfield_testset": SCHEMA_VERSION, "name": testset.name}
    if testset.version:
        document["version"] = testset.version
    if testset.description:
        document["description"] = testset.description
    document["queries"] = [_query_entry(testset, query) for query in testset.queries]
    return document


def _query_entry(testset: TestSet, query: Query) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": query.id, "text": query.text}
    if query.strata:
        entry["strata"] = dict(query.strata)
    if query.params:
        entry["params"] = dict(query.params)
    if query.weight != 1:
        entry["weight"] = query.weight
    if grades := testset.grades.get(query.id):
        entry["judgments"] = {doc_id: _short(grade) for doc_id, grade in grades.items()}
    if patterns := [t for t in testset.targets.get(query.id, ()) if isinstance(t, Pattern)]:
        entry["patterns"] = [_pattern_entry(pattern) for pattern in patterns]
    return entry


def _pattern_entry(pattern: Pattern) -> dict[str, Any]:
    entry: dict[str, Any] = {"regex": pattern.regex, "grade": _short(pattern.grade), "credit": pattern.credit}
    if pattern.expected_count is not None:
        entry["expected_count"] = pattern.expected_count
    return entry


def _short(grade: float) -> float:
    """A whole grade as an int, as people write it."""
    return int(grade) if math.isfinite(grade) and grade == int(grade) and abs(grade) < MAX_SHORT else grade
