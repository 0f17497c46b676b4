"""Test sets in the native form: read, checked, written.

The form of the file is in `native_form`. What must hold between fields is checked here, on the data as they stand in the file, so
that these problems are reported together with those of single fields.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from cranfield.base.errors import Problem, ProblemList, TestSetError, shorten
from cranfield.base.words import join_first
from cranfield.formats.io.files import shown, suffix_of, write_text
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.records import read_back
from cranfield.formats.io.validation import adapter_of, validate
from cranfield.formats.io.yaml_text import yaml_text
from cranfield.formats.testsets.golden_record import label_of
from cranfield.formats.testsets.native_form import GRADED, TARGETS, QueryEntry, SpanEntry, TestSetFile, lines_of
from cranfield.formats.testsets.preferences import preference_problems
from cranfield.formats.testsets.trec import TestSetBuilder, group_order, highest
from cranfield.model import (
    LETTERS,
    QUERY_CLASSES,
    Criteria,
    Entity,
    File,
    GroupedJudgment,
    Negative,
    Passage,
    Pattern,
    Predicate,
    Query,
    Rating,
    Span,
    Target,
    TestSet,
    TestSetHead,
)
from cranfield.model.kinds import source_text, whole
from cranfield.model.query import CLASS_NAMES


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
                hint="a negative query is answered correctly by an empty result",
            )
        return
    if graded and targets:
        yield located.problem(
            f"{name} has both {graded[0]} and {targets[0]}",
            ("queries", index, targets[0]),
            key=True,
            expected="one of them",
            hint="a pattern with ^ and $ matches one id" if targets[0] == "patterns" else None,
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
                f"queries[{index}].patterns[{position}] is credited once but expects {count}",
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
                    f"queries[{index}].{key} names {shorten(text)} twice; it also occurs on line {line}",
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
            n, got = len(unknown), join_first(dict.fromkeys(each.got or "" for each in unknown))
            message = problem.message if n == 1 else f"the classes of {n} queries are not query classes"
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
            f"queries[{index}].strata.{key} is not a query class",
            ("queries", index, "strata", key),
            expected=CLASS_NAMES,
            got=shorten(value),
            hint=f"`classes: {{stratum: {key}, names: {{{value}: canonical}}}}` defines what it means",
        )


def _grouping_problems(
    located: Located, data: Mapping[str, Any], queries: Mapping[int, Mapping[str, Any]]
) -> Iterator[Problem]:
    """Groups are of one kind, which the set names."""
    grouped = [index for index, query in queries.items() if query.get("groups")]
    if grouped and data.get("grouping") is None:
        yield located.problem(
            f"queries[{grouped[0]}] has groups, but the test set does not define their kind",
            ("queries", grouped[0], "groups"),
            key=True,
            expected="`grouping: subtopic`, `judge` or `preference` above the queries",
        )
    if data.get("grouping") is not None and not grouped:
        yield located.problem("grouping is set, but no query has groups", ("grouping",), key=True)


_FIRST = ("id", "text", "class", "need", "notes", "strata", "params", "weight", "negative", "exhaustive", "floors")
"""Order of the keys of a query that are written before its judgments."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_testset_yaml(path: Path | str) -> TestSet:
    """Read a test set in YAML or JSON.

    Numbers used as ids or text keep their spelling (`007`); grades are floats. Ratings are kept as they stand: the
    judgments of a query that has ratings and no `judgments` are made of them by a consensus rule, not here.

    Raises:
        TestSetError: with everything that is wrong, in the order of the lines.
    """
    return _testset(load_located(Path(path), TestSetError))


def _testset(located: Located) -> TestSet:
    problems = ProblemList(TestSetError)
    file = validate(located, TestSetFile, problems)
    problems.problems = [*joined_classes(located, problems.problems), *cross_problems(located)]
    problems.raise_if_any()
    if file is None:
        raise TestSetError("not a test set", path=shown(located.path))
    groups = {query.id: _groups(query) for query in file.queries if query.groups}
    if file.grouping == "preference":
        _check_preferences(located, file.queries)
    return TestSet(
        queries=tuple(_query(query, file) for query in file.queries),
        grades={
            query.id: highest(groups[query.id]) if query.groups else _floats(query.judgments)
            for query in file.queries
            if query.groups or query.judgments
        },
        targets={query.id: targets for query in file.queries if (targets := _targets(query))},
        groups=groups,
        files={query.id: query.files for query in file.queries if query.files},
        legacy={query.id: query.legacy for query in file.queries if query.legacy is not None},
        forbidden={query.id: query.forbidden for query in file.queries if query.forbidden},
        ratings={query.id: _ratings(query) for query in file.queries if query.ratings or query.adjudicated},
        labels={q.id: label_of(q.label, q.label.model_extra or {}) for q in file.queries if q.label is not None},
        **_head(file),
    )


def _head(testset: TestSetHead) -> dict[str, Any]:
    """What a test set and its file have in common."""
    return {row.name: getattr(testset, row.name) for row in fields(TestSetHead)}


def _query(query: QueryEntry, file: TestSetFile) -> Query:
    return Query(
        query.id,
        query.text,
        query.strata,
        query.params,
        query.weight,
        query.query_class or _class_by_stratum(query, file),
        Negative() if query.negative is True else query.negative or None,
        query.need,
        query.notes,
        query.exhaustive,
        query.floors,
    )


def _class_by_stratum(query: QueryEntry, file: TestSetFile) -> str:
    """The class that the stratum named for it tells; none where the query has no such stratum, or its value no class."""
    if file.classes is None:
        return ""
    value = query.strata.get(file.classes.stratum, "")
    if file.classes.names:
        return file.classes.names.get(value, "")
    return LETTERS.get(value, value)


def _targets(query: QueryEntry) -> tuple[Target, ...]:
    """What is expected by rule, kind by kind; files that stand alone are it too."""
    entities = dict.fromkeys(query.entities, 1.0) if isinstance(query.entities, tuple) else query.entities
    targets: list[Target] = [*query.patterns, *(entry.span for entry in query.spans)]
    lines = {entity: tuple(map(lines_of, ranges)) for entity, ranges in query.entity_lines.items()}
    targets += [Entity(entity, grade + 0.0, lines.get(entity, ())) for entity, grade in entities.items()]
    targets += [File(path, grade + 0.0) for path, grade in query.answer_files.items()]
    targets += [Predicate(rule.sql, rule.database, rule.grade) for rule in query.predicates]
    targets += [*query.criteria, *query.passages]
    if not targets and not query.judgments and not query.ratings and not query.groups:
        targets += [File(path, 1.0) for path in query.files]
    return tuple(targets)


def _floats(judgments: Mapping[str, float]) -> dict[str, float]:
    return {doc_id: grade + 0.0 for doc_id, grade in judgments.items()}


def _ratings(query: QueryEntry) -> tuple[Rating, ...]:
    return tuple(
        Rating(doc_id, rater, None if grade is None else grade + 0.0, final)
        for final, by_document in ((False, query.ratings), (True, query.adjudicated))
        for doc_id, values in by_document.items()
        for rater, grade in values.items()
    )


def _groups(query: QueryEntry) -> tuple[GroupedJudgment, ...]:
    """By document, in the order of their bytes, as the readers of columns give them."""
    judgments = [
        GroupedJudgment(doc_id, group, value + 0.0, subgroup)
        for group, values in query.groups.items()
        for key, inner in values.items()
        for doc_id, value, subgroup in (
            [(key, inner, "")] if isinstance(inner, float) else [(doc, value, key) for doc, value in inner.items()]
        )
    ]
    return tuple(sorted(judgments, key=group_order))


def _check_preferences(located: Located, queries: Sequence[QueryEntry]) -> None:
    problems = ProblemList(TestSetError)
    for index, query in enumerate(queries):
        line, column = located.mark(("queries", index, "groups"), key=True)
        values = {(judgment.doc_id, judgment.group, judgment.subgroup): judgment.value for judgment in _groups(query)}
        for problem in preference_problems(query.id, values):
            problems.problems.append(replace(problem, path=shown(located.path), line=line, column=column))
    problems.raise_if_any()


def plain(value: object) -> Any:
    """A value as the keys and values of its file; what is as it is by default is left out."""
    return adapter_of(type(value)).dump_python(value, by_alias=True, exclude_defaults=True)


def document_of(testset: TestSet) -> dict[str, Any]:
    """The whole file."""
    queries = tuple(_entry(testset, query) for query in testset.queries)
    head = _head(testset) | ({} if testset.groups else {"grouping": None})
    document: dict[str, Any] = plain(TestSetFile(cranfield_testset=1, queries=queries, **head))
    document["queries"] = [_in_order(entry) for entry in document["queries"]]
    for entry in document["queries"]:
        if entry["id"] in testset.labels:
            entry["label"] = testset.labels[entry["id"]].record
    return document


def _in_order(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: entry[key] for key in _FIRST if key in entry} | entry


def _entry(testset: TestSet, query: Query) -> QueryEntry:
    groups = testset.groups.get(query.id, ())
    ratings = testset.ratings.get(query.id, ())
    targets, files = testset.targets.get(query.id, ()), testset.files.get(query.id, ())
    entry: dict[str, dict[str, Any]] = {}
    for judgment in groups:
        values = entry.setdefault(judgment.group, {})
        if judgment.subgroup:
            inner = values.setdefault(judgment.subgroup, {})
            values = inner if isinstance(inner, dict) else {}  # a document has that name: reading back will tell
        values[judgment.doc_id] = whole(judgment.value)
    return QueryEntry(
        query.id,
        query.text,
        query.strata,
        query.params,
        query.weight,
        query.query_class,
        query.negative is not None if query.negative in (None, Negative()) else query.negative,
        query.need,
        query.notes,
        query.exhaustive,
        query.floors,
        judgments={} if groups else testset.grades.get(query.id, {}),
        ratings=_ratings_entry(ratings, final=False),
        adjudicated=_ratings_entry(ratings, final=True),
        groups=entry,
        files=files,
        legacy=testset.legacy.get(query.id),
        forbidden=testset.forbidden.get(query.id, ()),
        **({} if targets == tuple(File(path, 1.0) for path in files) else _targets_entry(targets)),
    )


def _targets_entry(targets: Sequence[Target]) -> dict[str, Any]:
    entities = {target.id: target.grade for target in targets if isinstance(target, Entity)}
    spans = [target for target in targets if isinstance(target, Span)]
    return {
        "patterns": tuple(target for target in targets if isinstance(target, Pattern)),
        "spans": tuple(SpanEntry(span.path, f"{span.start}-{span.end}", span.grade) for span in spans),
        "entities": tuple(entities) if set(entities.values()) <= {1} else entities,
        "entity_lines": {
            target.id: tuple(f"{first}-{last}" for first, last in target.lines)
            for target in targets
            if isinstance(target, Entity) and target.lines
        },
        "answer_files": {target.path: target.grade for target in targets if isinstance(target, File)},
        "predicates": tuple(target for target in targets if isinstance(target, Predicate)),
        "criteria": tuple(target for target in targets if isinstance(target, Criteria)),
        "passages": tuple(target for target in targets if isinstance(target, Passage)),
    }


def _ratings_entry(ratings: Iterable[Rating], *, final: bool) -> dict[str, dict[str, Any]]:
    entry: dict[str, dict[str, Any]] = {}
    for rating in (rating for rating in ratings if rating.final is final):
        entry.setdefault(rating.doc_id, {})[rating.rater] = rating.grade
    return entry


def write_testset_yaml(testset: TestSet, path: Path | str) -> None:
    """Write a test set as YAML, or as JSON where the file name ends in `.json`.

    Raises:
        TestSetError: when it holds what could not be read back: a query without judgments or text, two queries with
            one id, characters that are no Unicode (JSON takes those).
    """
    path = Path(path)
    is_json = suffix_of(path) == ".json"
    document = document_of(testset)
    if not is_json and _SURROGATE.search(json.dumps(document, ensure_ascii=False)):
        raise TestSetError(
            "not written: text that is not valid Unicode",
            path=str(path),
            expected="Unicode",
            hint="a file name that ends in .json takes it",
        )
    text = json.dumps(document, indent=2) + "\n" if is_json else yaml_text(document)
    _refuse_changed(testset, read_back(text, path, _testset, is_json=is_json), path)
    write_text(path, [text])


def _refuse_changed(testset: TestSet, read: TestSet, path: Path) -> None:
    """Raise where what would be read back is not what was to be written."""
    changed = [query.id for query, read_back in zip(testset.queries, read.queries, strict=True)
               if query != read_back or _expected_of(testset, query.id) != _expected_of(read, read_back.id)]  # fmt: skip
    if changed:
        raise TestSetError(
            f"not written: {len(changed)} of {len(testset.queries)} queries would change when read back",
            path=str(path),
            expected="no duplicate entity, answer file, rating or judgment of a group; files to cover only with judgments; no key of "
            "a query in a label",
            got=shorten(", ".join(changed[:5])),
        )


def _expected_of(testset: TestSet, query_id: str) -> tuple[object, ...]:
    """All that is expected for a query; in any order what has none, and of a predicate its question, not its answer."""
    return (
        Counter(replace(t, ids=None) if isinstance(t, Predicate) else t for t in testset.targets.get(query_id, ())),
        *(Counter(by_query.get(query_id, ())) for by_query in (testset.ratings, testset.groups)),
        dict(testset.grades.get(query_id, {})),
        testset.files.get(query_id, ()),
        testset.legacy.get(query_id),
        testset.forbidden.get(query_id, ()),
        testset.labels.get(query_id),
    )
