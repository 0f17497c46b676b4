"""Test sets in YAML or JSON: read with every problem at its line, written so that reading gives the same again.

The schema is in `native_models`, the way back in `native_write`. What must hold between fields (`native_checks`) is checked
on the data as they stand in the file, so that these problems are reported together with those of single fields.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.files import shown, suffix_of, write_text
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.records import read_back
from cranfield.formats.io.validation import validate
from cranfield.formats.io.yaml_text import yaml_text
from cranfield.formats.testsets.builder import group_order, highest
from cranfield.formats.testsets.golden_record import label_of
from cranfield.formats.testsets.judging_models import judging_of
from cranfield.formats.testsets.native_checks import cross_problems, joined_classes
from cranfield.formats.testsets.native_fields import lines_of
from cranfield.formats.testsets.native_models import (
    MatchingModel,
    MetaModel,
    NegativeModel,
    QueryModel,
    TestSetModel,
)
from cranfield.formats.testsets.native_write import document_of
from cranfield.formats.testsets.preferences import preference_problems
from cranfield.model import (
    LETTERS,
    Anchor,
    Entity,
    File,
    GroupedJudgment,
    Legacy,
    MatchingRules,
    Meta,
    Negative,
    Pattern,
    Predicate,
    Query,
    Rating,
    Source,
    Span,
    Split,
    Target,
    TestSet,
)

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
    model = validate(located, TestSetModel, problems)
    problems.problems = [*joined_classes(located, problems.problems), *cross_problems(located)]
    problems.raise_if_any()
    if model is None:
        raise TestSetError("not a test set", path=shown(located.path))
    groups = {query.id: _groups(query) for query in model.queries if query.groups}
    if model.grouping == "preference":
        _check_preferences(located, model.queries)
    return TestSet(
        name=model.name,
        queries=tuple(_query(query, model) for query in model.queries),
        grades={
            query.id: highest(groups[query.id]) if query.groups else _floats(query.judgments)
            for query in model.queries
            if query.groups or query.judgments
        },
        targets={query.id: targets for query in model.queries if (targets := _targets(query))},
        version=model.version,
        description=model.description,
        groups=groups,
        grouping=model.grouping,
        files={query.id: tuple(query.files) for query in model.queries if query.files},
        legacy={
            query.id: Legacy(tuple(query.legacy.ids), tuple(query.legacy.patterns))
            for query in model.queries
            if query.legacy is not None
        },
        sources=tuple(Source(source.name, source.pattern) for source in model.sources),
        matching=rules_of(model.matching),
        databases=dict(model.databases),
        ratings={query.id: _ratings(query) for query in model.queries if query.ratings or query.adjudicated},
        consensus=model.consensus,
        labels={q.id: label_of(q.label, q.label.model_extra or {}) for q in model.queries if q.label is not None},
        meta=meta_of(model.meta),
    )


def _query(query: QueryModel, model: TestSetModel) -> Query:
    negative = Negative() if query.negative is True else None
    if isinstance(query.negative, NegativeModel):
        negative = Negative(query.negative.below, query.negative.field)
    return Query(
        query.id,
        query.text,
        dict(query.strata),
        dict(query.params),
        query.weight + 0.0,
        query.query_class or _class_by_stratum(query, model),
        negative,
        query.need,
        query.notes,
    )


def _class_by_stratum(query: QueryModel, model: TestSetModel) -> str:
    """The class that the stratum named for it tells; none where the query has no such stratum, or its value no class."""
    if model.classes is None:
        return ""
    value = query.strata.get(model.classes.stratum, "")
    if model.classes.names:
        return model.classes.names.get(value, "")
    return LETTERS.get(value, value)


def _targets(query: QueryModel) -> tuple[Target, ...]:
    """What is expected by rule, kind by kind; files that stand alone are it too."""
    entities = query.entities if isinstance(query.entities, dict) else dict.fromkeys(query.entities, 1.0)
    targets: list[Target] = [Pattern(p.regex, p.grade + 0.0, p.credit, p.expected_count) for p in query.patterns]
    targets += [Span(s.path, *lines_of(s.lines), s.grade + 0.0) for s in query.spans]
    lines = {entity: tuple(map(lines_of, ranges)) for entity, ranges in query.entity_lines.items()}
    targets += [Entity(entity, grade + 0.0, lines.get(entity, ())) for entity, grade in entities.items()]
    targets += [File(path, grade + 0.0) for path, grade in query.answer_files.items()]
    targets += [Predicate(p.sql, p.database, p.grade + 0.0) for p in query.predicates]
    if not targets and not query.judgments and not query.ratings and not query.groups:
        targets += [File(path, 1.0) for path in query.files]
    return tuple(targets)


def _floats(judgments: Mapping[str, float]) -> dict[str, float]:
    return {doc_id: grade + 0.0 for doc_id, grade in judgments.items()}


def _ratings(query: QueryModel) -> tuple[Rating, ...]:
    return tuple(
        Rating(doc_id, rater, None if grade is None else grade + 0.0, final)
        for final, by_document in ((False, query.ratings), (True, query.adjudicated))
        for doc_id, values in by_document.items()
        for rater, grade in values.items()
    )


def _groups(query: QueryModel) -> tuple[GroupedJudgment, ...]:
    """By document, in the order of their bytes, as the readers of columns give them."""
    judgments = [
        GroupedJudgment(doc_id, group, value + 0.0, subgroup)
        for group, values in query.groups.items()
        for key, inner in values.items()
        for doc_id, value, subgroup in (
            [(key, inner, "")] if not isinstance(inner, dict) else [(doc, value, key) for doc, value in inner.items()]
        )
    ]
    return tuple(sorted(judgments, key=group_order))


def _check_preferences(located: Located, queries: Sequence[QueryModel]) -> None:
    problems = ProblemList(TestSetError)
    for index, query in enumerate(queries):
        line, column = located.mark(("queries", index, "groups"), key=True)
        values = {(judgment.doc_id, judgment.group, judgment.subgroup): judgment.value for judgment in _groups(query)}
        for problem in preference_problems(query.id, values):
            problems.problems.append(replace(problem, path=shown(located.path), line=line, column=column))
    problems.raise_if_any()


def rules_of(model: MatchingModel) -> MatchingRules:
    """How results are compared with what is expected, as the file of a set has it."""
    return MatchingRules(**model.model_dump() | {"strip": tuple(model.strip), "roots": tuple(model.roots)})


def meta_of(model: MetaModel) -> Meta:
    """What is known about a set, as its file has it."""
    return Meta(
        uncommitted=model.uncommitted,
        review=model.review,
        scale=tuple(grade + 0.0 for grade in model.scale),
        made=model.made or "",
        refresh_days=model.refresh_days,
        commit=model.commit,
        source_files=dict(model.source_files),
        anchors={place: Anchor(a.symbol, a.body, a.offset, a.lines) for place, a in model.anchors.items()},
        counts=dict(model.counts),
        split=None
        if model.split is None
        else Split(model.split.seed, model.split.share, tuple(model.split.by), tuple(model.split.held_out)),
        previous=model.previous,
        history=tuple(model.history),
        task_types=tuple(model.task_types),
        judging=None if model.judging is None else judging_of(model.judging),
        assembly=dict(model.assembly),
    )


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
            "not written: text that is no Unicode",
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
            f"not written: {len(changed)} of {len(testset.queries)} queries would be read back otherwise",
            path=str(path),
            expected="each entity, answer file, rating and judgment of a group once, files to cover beside judgments, and no key of "
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
        testset.labels.get(query_id),
    )
