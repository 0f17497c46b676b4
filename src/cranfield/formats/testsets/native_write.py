"""A test set as the keys and values of its file: what `native` writes, and reads back the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cranfield.formats.io.cells import whole
from cranfield.formats.testsets.native_fields import short_span
from cranfield.model import (
    Entity,
    File,
    GroupedJudgment,
    Judging,
    Legacy,
    MatchingRules,
    Meta,
    Negative,
    Pattern,
    Predicate,
    Query,
    Rating,
    Span,
    Target,
    TestSet,
)

SCHEMA_VERSION = 1


def document_of(testset: TestSet) -> dict[str, Any]:
    """The whole file; what is as it is by default is left out."""
    rules = {
        "sources": [{"name": source.name, "pattern": source.pattern} for source in testset.sources],
        "matching": _changed(asdict(testset.matching), asdict(MatchingRules())),
        "databases": dict(testset.databases),
        "consensus": testset.consensus,
        "grouping": testset.grouping if testset.groups else None,
        "meta": _meta_entry(testset.meta),
    }
    return {
        "cranfield_testset": SCHEMA_VERSION,
        "name": testset.name,
        **_filled({"version": testset.version, "description": testset.description, **rules}),
        "queries": [_query_entry(testset, query) for query in testset.queries],
    }


def _filled(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Without what says nothing."""
    return {key: value for key, value in entry.items() if value not in (None, "", [], {}, ())}


def _changed(values: Mapping[str, Any], default: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from the default, lists as lists."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if value != default[key]
    }


def _query_entry(testset: TestSet, query: Query) -> dict[str, Any]:
    entry: dict[str, Any] = {"id": query.id, "text": query.text}
    groups = testset.groups.get(query.id, ())
    grades = {} if groups else testset.grades.get(query.id, {})
    targets, files = testset.targets.get(query.id, ()), testset.files.get(query.id, ())
    entry |= _filled(
        {
            "class": query.query_class,
            "need": query.need,
            "notes": query.notes,
            "strata": dict(query.strata),
            "params": dict(query.params),
            "weight": None if query.weight == 1 else query.weight,
            "negative": _negative_entry(query.negative),
            "judgments": {doc_id: whole(grade) for doc_id, grade in grades.items()},
            "ratings": _ratings_entry(testset.ratings.get(query.id, ()), final=False),
            "adjudicated": _ratings_entry(testset.ratings.get(query.id, ()), final=True),
            "groups": _groups_entry(groups),
            **({} if targets == tuple(File(path, 1.0) for path in files) else _targets_entry(targets)),
            "files": list(files),
        }
    )
    if query.id in testset.legacy:
        entry["legacy"] = _legacy_entry(testset.legacy[query.id])
    if query.id in testset.labels:
        entry["label"] = testset.labels[query.id].record
    return entry


def _negative_entry(negative: Negative | None) -> Any:
    if negative is None or negative == Negative():
        return None if negative is None else True
    return _filled({"field": negative.field}) | ({} if negative.below is None else {"below": whole(negative.below)})


def _legacy_entry(legacy: Legacy) -> Any:
    if not legacy.patterns:
        return list(legacy.ids)
    return _filled({"ids": list(legacy.ids), "patterns": list(legacy.patterns)})


def _targets_entry(targets: Sequence[Target]) -> dict[str, Any]:
    entities = {target.id: whole(target.grade) for target in targets if isinstance(target, Entity)}
    return {
        "patterns": [_pattern_entry(target) for target in targets if isinstance(target, Pattern)],
        "spans": [_span_entry(target) for target in targets if isinstance(target, Span)],
        "entities": list(entities) if set(entities.values()) == {1} else entities,
        "entity_lines": {
            target.id: [f"{first}-{last}" for first, last in target.lines]
            for target in targets
            if isinstance(target, Entity) and target.lines
        },
        "answer_files": {target.path: whole(target.grade) for target in targets if isinstance(target, File)},
        "predicates": [_predicate_entry(target) for target in targets if isinstance(target, Predicate)],
    }


def _pattern_entry(pattern: Pattern) -> dict[str, Any]:
    entry: dict[str, Any] = {"regex": pattern.regex, "grade": whole(pattern.grade), "credit": pattern.credit}
    if pattern.expected_count is not None:
        entry["expected_count"] = pattern.expected_count
    return entry


def _span_entry(span: Span) -> Any:
    """The short form, where it means the same."""
    text = span.label if span.grade == 1 else f"{span.label}:{whole(span.grade)}"
    if short_span(text) == span:
        return text
    entry: dict[str, Any] = {"path": span.path, "lines": f"{span.start}-{span.end}"}
    return entry if span.grade == 1 else {**entry, "grade": whole(span.grade)}


def _predicate_entry(predicate: Predicate) -> dict[str, Any]:
    entry: dict[str, Any] = {"sql": predicate.sql}
    if predicate.database != "corpus":
        entry["database"] = predicate.database
    return entry if predicate.grade == 1 else {**entry, "grade": whole(predicate.grade)}


def _ratings_entry(ratings: Iterable[Rating], *, final: bool) -> dict[str, dict[str, float | None]]:
    entry: dict[str, dict[str, float | None]] = {}
    for rating in (rating for rating in ratings if rating.final is final):
        entry.setdefault(rating.doc_id, {})[rating.rater] = None if rating.grade is None else whole(rating.grade)
    return entry


def _groups_entry(groups: Iterable[GroupedJudgment]) -> dict[str, dict[str, Any]]:
    entry: dict[str, dict[str, Any]] = {}
    for judgment in groups:
        values = entry.setdefault(judgment.group, {})
        if judgment.subgroup:
            inner = values.setdefault(judgment.subgroup, {})
            values = inner if isinstance(inner, dict) else {}  # a document has that name: reading back will tell
        values[judgment.doc_id] = whole(judgment.value)
    return entry


def plain_judging(judging: Judging) -> dict[str, Any]:
    """The manifest of a frozen book as keys and values, without what says nothing."""
    found = asdict(judging)
    rows = {key: [_filled(row) for row in found[key]] for key in ("raters", "guidelines", "agreement")}
    rows["overruled"] = found["overruled"]  # a grade of 0 says something
    return _filled({**found, **rows, "pool": None if judging.pool is None else _filled(found["pool"])})


def _meta_entry(meta: Meta) -> dict[str, Any]:
    entry = _changed(asdict(meta), asdict(Meta()))
    if meta.scale:
        entry["scale"] = [whole(grade) for grade in meta.scale]
    if meta.split is not None:
        entry["split"] = _changed(asdict(meta.split), dict.fromkeys(asdict(meta.split)))
    if meta.judging is not None:
        entry["judging"] = plain_judging(meta.judging)
    return entry
