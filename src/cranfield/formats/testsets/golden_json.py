"""Golden sets of code search: a JSON list of records with expected entities, files and line ranges, and a file of facts.

The format of KnowCode's evaluation harness. The facts lie beside the set (`golden.json`, `golden.meta.json`): review, commit,
hashes of sources, counts of strata. Facts that the harness has no key for stand under `cranfield`.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.cells import whole
from cranfield.formats.io.located import Located
from cranfield.formats.io.records import RECORDS, OpenModel, indexed_objects, load_records, write_records
from cranfield.formats.io.tree import source_text
from cranfield.formats.io.validation import Text, validate
from cranfield.formats.testsets.builder import TestSetBuilder, UnknownFields
from cranfield.formats.testsets.golden_facts import RULES, STRATA, with_facts, write_facts
from cranfield.formats.testsets.native_fields import FilledText, Grade, Id, Strict
from cranfield.formats.testsets.vocabulary import task_type_problems, version_problems
from cranfield.model import Entity, File, Query, Span, Target, TestSet
from cranfield.model.note import not_carried
from cranfield.model.vocabulary import TASK_TYPE, TASK_TYPES
from cranfield.words import n_of

Line = Annotated[int, Field(ge=1, le=999_999_999)]


class _Entity(OpenModel):
    entity_id: FilledText


class _Range(OpenModel):
    file: FilledText
    start: Line
    end: Line


class _Target(Strict):
    """An expected place as we write it, where the keys of the format would be read as something else."""

    entity_id: FilledText | None = None
    file: FilledText | None = None
    start: Line | None = None
    end: Line | None = None
    lines: list[Annotated[list[Line], Field(min_length=2, max_length=2)]] = Field(default_factory=list)
    grade: Grade = 1


class _Record(OpenModel):
    query_id: FilledText
    query_text: FilledText
    task_type: Text | None = None
    difficulty: Text | None = None
    strata: dict[Id, Text] = Field(default_factory=dict)
    expected_entities: list[FilledText | _Entity] = Field(default_factory=list)
    expected_files: list[FilledText] = Field(default_factory=list)
    expected_line_ranges: list[_Range] = Field(default_factory=list)
    expected_targets: list[_Target] | None = None
    must_mention_facts: list[JsonValue] = Field(default_factory=list)
    must_not_mention_facts: list[JsonValue] = Field(default_factory=list)
    canonical_narrative: JsonValue = None
    provenance: dict[str, JsonValue] | None = None
    validation: dict[str, JsonValue] | None = None
    correct: JsonValue = None
    schema_version: JsonValue = None


class _File(OpenModel):
    queries: Annotated[list[_Record], Field(min_length=1)]


def read_golden_json(path: Path | str) -> TestSet:
    """Read a golden set, and the file of facts beside it where there is one.

    Entities are targets, with the line ranges of their files, by which results that name no symbol match; where a record has no
    entity, its line ranges are targets; where it has neither, its files are. Facts that an
    answer must mention have no place in a test set of search: they are counted in the notes.

    Raises:
        TestSetError: with everything that is wrong in either file, each at its line and column.
    """
    path = Path(path)
    located = load_records(path)
    testset, n_reviewed = _testset(located)
    testset = with_facts(testset, path, n_reviewed)
    if problems := [*version_problems(located), *task_type_problems(located, testset.meta.task_types)]:
        raise TestSetError(problems)
    return testset


def _testset(located: Located) -> tuple[TestSet, int | None]:
    """The test set, and how many of its records a person has reviewed; None where no record says."""
    builder = TestSetBuilder(located.path, located.mark)
    model = validate(located, _File, builder.problems)
    for index, raw in indexed_objects(located.sourced.get(RECORDS)):
        query_id = source_text(raw.get("query_id"))
        if isinstance(query_id, str):
            builder.new_query(Query(query_id), (RECORDS, index, "query_id"))
    for index, record in enumerate(model.queries if model is not None else ()):
        both: dict[str, Sequence[_Range | _Target]] = {
            "expected_line_ranges": record.expected_line_ranges,
            "expected_targets": record.expected_targets or (),
        }
        ranges = ((key, place, item) for key, values in both.items() for place, item in enumerate(values))
        for key, place, lines in ranges:
            if (lines.start or 0) > (lines.end or lines.start or 0):
                at = (RECORDS, index, key, place, "end")
                got = f"{lines.start}-{lines.end}"
                builder.problem("the range ends before it starts", at, expected="start, then end", got=got)
    builder.problems.raise_if_any()
    if model is None:
        raise TestSetError("not a test set", path=str(located.path))
    more, lost = UnknownFields(), Counter[str]()
    for record in model.queries:
        more.take(record.query_id, record.model_extra)
        lost.update(_lost(record))
    for record in model.queries:
        builder.queries[record.query_id] = Query(record.query_id, record.query_text, _strata(record, more))
        builder.targets[record.query_id] = _targets(record)
    notes = not_carried(n_of(n, what) for what, n in lost.items() if n)
    file_keys = not_carried(f"the key {key!r} of the file" for key in model.model_extra or {})
    files = {r.query_id: tuple(dict.fromkeys(r.expected_files)) for r in model.queries if r.expected_files}
    testset = builder.testset((*notes, *more.notes(), *file_keys), files=files)
    return testset, _reviewed(model.queries)


def _strata(record: _Record, more: UnknownFields) -> dict[str, str]:
    own = {"task_type": record.task_type, "difficulty": record.difficulty}
    values = {key: value for key, value in own.items() if value is not None}
    return {**values, **more.strata(record.query_id), **record.strata}


def _targets(record: _Record) -> tuple[Target, ...]:
    """What counts of a record: entities, or line ranges, or files, each once."""
    if record.expected_targets is not None:
        return tuple(map(_as_written, record.expected_targets))
    names = _names(record)
    lines = _lines_of(names, record.expected_line_ranges)
    targets: dict[str, Target] = {name: Entity(name, lines=lines.get(name, ())) for name in names}
    if not targets:
        spans = (Span(lines.file, int(lines.start), int(lines.end)) for lines in record.expected_line_ranges)
        targets = {span.label: span for span in spans}
    return tuple((targets or {file: File(file) for file in record.expected_files}).values())


def _file_of(name: str) -> str:
    """The file of an entity or of lines, as the rules of the harness compare it."""
    parts = posixpath.normpath(name.partition("::")[0].replace("\\", "/")).split("/")
    return "/".join(parts[next((n for n, part in enumerate(parts) if part in RULES.roots), 0) :])


def _lines_of(names: Sequence[str], ranges: Sequence[_Range]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Entity to its lines: the ranges of its file, one each in their order; the last entity of a file has the remaining ones."""
    by_file: dict[str, list[tuple[int, int]]] = {}
    for lines in ranges:
        found = by_file.setdefault(_file_of(lines.file), [])
        if (pair := (int(lines.start), int(lines.end))) not in found:
            found.append(pair)
    entities: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        entities.setdefault(_file_of(name), []).append(name)
    return {
        name: own
        for path, here in entities.items()
        for place, name in enumerate(here)
        if (own := tuple(by_file.get(path, [])[place : place + 1 if place + 1 < len(here) else None]))
    }


def _names(record: _Record) -> list[str]:
    return [entity if isinstance(entity, str) else entity.entity_id for entity in record.expected_entities]


def _as_written(values: _Target) -> Target:
    grade = values.grade + 0.0
    if values.entity_id is not None:
        return Entity(values.entity_id, grade, tuple((int(first), int(last)) for first, last in values.lines))
    if values.start is not None:
        return Span(values.file or "", int(values.start), int(values.end or values.start), grade)
    return File(values.file or "", grade)


def _lost(record: _Record) -> dict[str, int]:
    """What a record says that has no place in a test set."""
    described = [entity for entity in record.expected_entities if isinstance(entity, _Entity) and entity.model_extra]
    names = _names(record)
    is_plain = record.expected_targets is None
    others = {_file_of(item.file) for item in record.expected_line_ranges} - {_file_of(name) for name in names}
    ranges = [(item.file, item.start, item.end) for item in record.expected_line_ranges]
    return {
        "facts that an answer must mention": len(record.must_mention_facts),
        "facts that it must not mention": len(record.must_not_mention_facts),
        "narratives": int(bool(record.canonical_narrative)),
        "entities with words beside (role, reason)": len(described),
        "line ranges in files where a record expects no entity": len(others) if names and is_plain else 0,
        "places that a record names twice": sum(
            len(items) - len(set(items)) for items in (names, record.expected_files, ranges)
        ),
        "provenances of records": int(bool(record.provenance)),
        "validations of records": int(bool(record.validation)),
        "records marked as not correct (kept as queries)": int(record.correct is False),
    }


def _reviewed(records: Iterable[_Record]) -> int | None:
    values = [{**(record.provenance or {}), **(record.validation or {})}.get("human_reviewed") for record in records]
    return None if all(item is None for item in values) else sum(item is True for item in values)


def write_golden_json(testset: TestSet, path: Path | str) -> None:
    """Write entities, line ranges and files, and the facts about the set in a file beside it.

    What is graded, or is of several kinds, stands under `expected_targets` too, which counts where it is there.

    Raises:
        TestSetError: a query judged by something else, or without text.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        others = [item for item in testset.targets.get(query.id, ()) if not isinstance(item, Entity | Span | File)]
        if others or testset.grades.get(query.id) or query.negative is not None:
            message = f"not written: query {query.id!r} is judged by something else than places in code"
            problems.add(message, path=str(path), expected="entities, spans of lines or files")
    types = {name.casefold() for name in testset.meta.task_types or TASK_TYPES}
    for query in testset.queries:
        value = query.strata.get(TASK_TYPE, "")
        if value and value.casefold() not in types:
            message = f"not written: query {query.id!r} has an unknown task type"
            hint = "`task_types` of the metadata declares others"
            problems.add(message, path=str(path), expected=", ".join(TASK_TYPES), got=shorten(value), hint=hint)
    problems.raise_if_any()
    write_records(path, [_entry(testset, query) for query in testset.queries], lambda located: _testset(located)[0])
    write_facts(testset, path)


def _entry(testset: TestSet, query: Query) -> dict[str, Any]:
    targets = testset.targets.get(query.id, ())
    entry: dict[str, Any] = {"query_id": query.id, "query_text": query.text}
    entry |= {key: query.strata[key] for key in STRATA if key in query.strata}
    if strata := {key: value for key, value in query.strata.items() if key not in STRATA}:
        entry["strata"] = strata
    entry["expected_entities"] = [target.id for target in targets if isinstance(target, Entity)]
    entry["expected_files"] = list(testset.files.get(query.id, ()))
    spans = [target for target in targets if isinstance(target, Span)]
    of_entities = [span for target in targets if isinstance(target, Entity) for span in target.spans]
    spans = list(dict.fromkeys([*(replace(span, grade=1) for span in spans), *of_entities]))
    if spans:
        entry["expected_line_ranges"] = [{"file": item.path, "start": item.start, "end": item.end} for item in spans]
    ranges = [_Range.model_construct(file=item.path, start=item.start, end=item.end) for item in spans]
    if _targets(_Record.model_construct(**{**entry, "expected_line_ranges": ranges})) != targets:
        entry["expected_targets"] = [_written(target) for target in targets]
    return entry


def _written(target: Target) -> dict[str, Any]:
    grade = {} if target.grade == 1 else {"grade": whole(target.grade)}
    match target:
        case Entity():
            lines = {"lines": [list(span) for span in target.lines]} if target.lines else {}
            return {"entity_id": target.id, **grade, **lines}
        case Span():
            return {"file": target.path, "start": target.start, "end": target.end, **grade}
        case _:
            return {"file": target.label, **grade}
