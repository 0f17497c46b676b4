"""What must hold between the fields of a test set in YAML or JSON: ids used once, one kind of truth a query, classes that exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cranfield.errors import Problem, shorten
from cranfield.formats.io.located import Located
from cranfield.formats.testsets.native_form import GRADED, TARGETS
from cranfield.formats.testsets.trec import TestSetBuilder
from cranfield.model import LETTERS, QUERY_CLASSES, Query
from cranfield.model.kinds import source_text
from cranfield.model.query import CLASS_NAMES
from cranfield.words import first_of


def cross_problems(located: Located) -> Iterator[Problem]:
    """Every problem that no single field tells."""
    data = located.sourced
    listed = data.get("queries")
    queries = {
        i: query for i, query in enumerate(listed if isinstance(listed, list) else []) if isinstance(query, dict)
    }
    ids = TestSetBuilder(located.path, located.mark)
    for index, query in queries.items():
        query_id = source_text(query.get("id"))
        if isinstance(query_id, str) and not ids.new_query(Query(query_id), ("queries", index, "id")):
            yield ids.problems.problems[-1]
        yield from _truth_problems(located, index, query)
        yield from _count_problems(located, index, query)
        yield from _lines_problems(located, index, query)
        yield from _twice_problems(located, index, query)
        yield from _class_problems(located, index, query, data.get("classes"))
    yield from _grouping_problems(located, data, queries)


def _truth_problems(located: Located, index: int, query: Mapping[str, Any]) -> Iterator[Problem]:
    """One kind of truth a query."""
    name = f"queries[{index}]"
    graded = [key for key in GRADED if query.get(key)]
    targets = [key for key in TARGETS if query.get(key)]
    files = ["files"] if query.get("files") else []
    if query.get("negative") not in (None, False):
        for key in (*graded, *targets, *files):
            yield located.problem(
                f"{name} is negative and has {key}",
                ("queries", index, key),
                key=True,
                expected="nothing that is expected",
                hint="a negative query is right when nothing comes back",
            )
        return
    if graded and targets:
        yield located.problem(
            f"{name} has both {graded[0]} and {targets[0]}",
            ("queries", index, targets[0]),
            key=True,
            expected="one of them",
            hint="a pattern with ^ and $ stands for one id" if targets[0] == "patterns" else None,
        )
    if len(graded) > 1 and "groups" in graded:
        yield located.problem(
            f"{name} has both {graded[0]} and groups",
            ("queries", index, "groups"),
            key=True,
            expected="one of them",
            hint="a document's grade is the highest that any group gave it",
        )
    empty = [key for key in (*GRADED, *TARGETS, "files") if key in query and query[key] not in (None, {}, [])]
    if not (graded or targets or files or empty):
        yield located.problem(
            f"{name} has no judgments",
            ("queries", index),
            hint="add `judgments: {document id: grade}`, `patterns` on the id, spans, entities or files; "
            "or `negative: true` where nothing should be found",
        )


def _count_problems(located: Located, index: int, query: Mapping[str, Any]) -> Iterator[Problem]:
    """A pattern that is credited once is one item."""
    patterns = query.get("patterns")
    for position, pattern in enumerate(patterns if isinstance(patterns, list) else []):
        if not isinstance(pattern, dict) or pattern.get("credit", "once") != "once":
            continue
        count = pattern.get("expected_count")
        if isinstance(count, int) and not isinstance(count, bool) and count > 1:
            yield located.problem(
                f"queries[{index}].patterns[{position}] is credited once and expects {count}",
                ("queries", index, "patterns", position, "expected_count"),
                expected="an expected_count of 1, or none",
                hint="`credit: every` credits each match",
            )


def _lines_problems(located: Located, index: int, query: Mapping[str, Any]) -> Iterator[Problem]:
    """Lines are those of an expected symbol."""
    lines, entities = query.get("entity_lines"), query.get("entities")
    for entity in lines if isinstance(lines, Mapping) else ():
        if entity not in (entities if isinstance(entities, Mapping | list) else ()):
            yield located.problem(
                f"queries[{index}].entity_lines has a symbol that is not in entities",
                ("queries", index, "entity_lines", entity),
                key=True,
                expected="a symbol of entities",
                got=shorten(entity),
            )


def _twice_problems(located: Located, index: int, query: Mapping[str, Any]) -> Iterator[Problem]:
    """Lists whose entries are each there once."""
    for key in ("entities", "files"):
        entries = query.get(key)
        first: dict[Any, int] = {}
        for position, entry in enumerate(entries if isinstance(entries, list) else []):
            text = source_text(entry)
            if isinstance(text, str) and first.setdefault(text, position) != position:
                line, _ = located.mark(("queries", index, key, first[text]))
                yield located.problem(
                    f"queries[{index}].{key} names {shorten(text)} twice; it also stands on line {line}",
                    ("queries", index, key, position),
                )


def joined_classes(located: Located, problems: Sequence[Problem]) -> Iterator[Problem]:
    """The problems, with all classes that are none as one: a set that calls its strata classes has one in each query."""
    data = located.sourced if isinstance(located.sourced, dict) else {}
    listed = data.get("queries")
    queries = listed if isinstance(listed, list) else []
    classes = [source_text(each.get("class")) if isinstance(each, dict) else None for each in queries]
    marks = {
        located.mark(("queries", index, "class"))
        for index, name in enumerate(classes)
        if isinstance(name, str) and name not in QUERY_CLASSES and name not in LETTERS
    }
    unknown = [problem for problem in problems if (problem.line, problem.column) in marks]
    for problem in problems:
        if problem not in unknown:
            yield problem
        elif problem is unknown[0]:
            n, got = len(unknown), first_of(dict.fromkeys(each.got or "" for each in unknown))
            message = problem.message if n == 1 else f"the classes of {n} queries are no query classes"
            strata = "other kinds of queries are strata: `strata: {kind: NAME}`"
            hint = f"{problem.hint} {strata[:1].upper()}{strata[1:]}" if problem.hint else strata
            yield replace(problem, message=message, got=got, hint=hint)


def _class_problems(located: Located, index: int, query: Mapping[str, Any], classes: Any) -> Iterator[Problem]:
    """A stratum that says the class of a question names one."""
    if not isinstance(classes, dict) or classes.get("names") or query.get("class") is not None:
        return
    strata, key = query.get("strata"), source_text(classes.get("stratum"))
    value = source_text(strata.get(key)) if isinstance(strata, dict) and isinstance(key, str) else None
    if isinstance(value, str) and value not in QUERY_CLASSES and value not in LETTERS:
        yield located.problem(
            f"queries[{index}].strata.{key} is no query class",
            ("queries", index, "strata", key),
            expected=CLASS_NAMES,
            got=shorten(value),
            hint=f"`classes: {{stratum: {key}, names: {{{value}: canonical}}}}` says what it stands for",
        )


def _grouping_problems(
    located: Located, data: Mapping[str, Any], queries: Mapping[int, Mapping[str, Any]]
) -> Iterator[Problem]:
    """Groups are of one kind, which the set names."""
    grouped = [index for index, query in queries.items() if query.get("groups")]
    if grouped and data.get("grouping") is None:
        yield located.problem(
            f"queries[{grouped[0]}] has groups, and the set does not say what they are",
            ("queries", grouped[0], "groups"),
            key=True,
            expected="`grouping: subtopic`, `judge` or `preference` above the queries",
        )
    if data.get("grouping") is not None and not grouped:
        yield located.problem("grouping is named, and no query has groups", ("grouping",), key=True)
