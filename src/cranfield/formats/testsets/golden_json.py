"""Golden sets of code search: a JSON list of records with expected entities, files, line ranges and labels, and a file of metadata.

The format of KnowCode's evaluation harness. The metadata lie beside the set (`golden.json`, `golden.meta.json`): review, commit,
hashes of sources, counts of strata. What the harness has no key for stands under `cranfield`.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.located import Located
from cranfield.formats.io.records import RECORDS, OpenModel, indexed_objects, load_records, write_records
from cranfield.formats.io.validation import validate
from cranfield.formats.testsets.golden_facts import RULES, STRATA, with_facts, write_facts
from cranfield.formats.testsets.golden_record import (
    ANY_ORDER,
    FACTS,
    OF_QUERY,
    ExpectedTarget,
    GoldenLabel,
    LinesModel,
    label_of,
    unknown_keys,
)
from cranfield.formats.testsets.trec import TestSetBuilder, UnknownFields
from cranfield.formats.testsets.vocabulary import task_type_problems, version_problems
from cranfield.model import Entity, File, Label, NoteKind, Query, Span, Target, TestSet
from cranfield.model.kinds import source_text, whole
from cranfield.model.label import lines_of_targets
from cranfield.model.note import info, not_carried
from cranfield.model.vocabulary import TASK_TYPE, TASK_TYPES

_OF_SEARCH = {*OF_QUERY, "expected_entities", "expected_line_ranges"}
"""Keys that a record without a label has."""


class _File(OpenModel):
    queries: Annotated[list[GoldenLabel], Field(min_length=1)]


def read_golden_json(path: Path | str) -> TestSet:
    """Read a golden set, and the file of facts beside it where there is one.

    Entities are targets, with the line ranges of their files, by which results that name no symbol match; where a record has no
    entity, its line ranges are targets; where it has neither, its files are. Everything else that a record says is its label.

    Raises:
        TestSetError: with everything that is wrong in either file, each at its line and column.
    """
    path = Path(path)
    located = load_records(path)
    testset, n_reviewed = _testset(located)
    testset = with_facts(testset, path, n_reviewed)
    if problems := list(task_type_problems(located, testset.meta.task_types)):
        raise TestSetError(problems)
    return testset


def _testset(located: Located) -> tuple[TestSet, int | None]:
    """The test set, and how many of its records a person has reviewed; None where no record says."""
    builder = TestSetBuilder(located.path, located.mark)
    model = validate(located, _File, builder.problems, context={ANY_ORDER: True})
    for index, raw in indexed_objects(located.sourced.get(RECORDS)):
        query_id = source_text(raw.get("query_id"))
        if isinstance(query_id, str):
            builder.new_query(Query(query_id), (RECORDS, index, "query_id"))
    builder.problems.problems += version_problems(located)
    builder.problems.raise_if_any()
    if model is None:
        raise TestSetError("not a test set", path=str(located.path))
    more, lost = UnknownFields(), Counter[str]()
    for record in model.queries:
        more.take(record.query_id, record.model_extra)
        lost.update(_lost(record))
    labels: dict[str, Label] = {}
    for record, raw in zip(model.queries, located.sourced[RECORDS], strict=True):
        builder.queries[record.query_id] = Query(record.query_id, record.query_text, _strata(record, more))
        builder.targets[record.query_id] = targets = _targets(record)
        if (label := _label(record, raw, targets)) is not None:
            labels[record.query_id] = label
    notes = [
        *not_carried(count_noun(n, what) for what, n in lost.items() if n),
        *(note for note in more.notes() if note.kind is not NoteKind.NOT_CARRIED),
        *not_carried(f"the key {key!r} of the file" for key in model.model_extra or {}),
    ]
    notes += info(
        *(
            f"query {record.query_id!r}: lines {each.start}-{each.end} of {each.file} end before they start, and are not expected"
            for record in model.queries
            for each in record.expected_line_ranges
            if _is_reversed(each)
        )
    )
    if n := sum(record.correct is False for record in model.queries):
        notes += info(f"kept as queries: {count_noun(n, 'records')} marked as not correct")
    files = {r.query_id: tuple(dict.fromkeys(r.expected_files)) for r in model.queries if r.expected_files}
    return builder.testset(notes, files=files, labels=labels), _reviewed(model.queries)


def _strata(record: GoldenLabel, more: UnknownFields) -> dict[str, str]:
    own = {"task_type": record.task_type, "difficulty": record.difficulty}
    values = {**own, **more.strata(record.query_id), **record.strata}
    return {key: value for key, value in values.items() if value is not None}


def _label(record: GoldenLabel, raw: Mapping[str, Any], targets: Sequence[Target]) -> Label | None:
    """What the record says beside its query and targets; None where it has no key for more."""
    label = label_of(record, raw)
    says_more = raw.keys() - _OF_SEARCH or label.roles or label.line_ranges != lines_of_targets(targets)
    return label if says_more else None


def _targets(record: GoldenLabel) -> tuple[Target, ...]:
    """What counts of a record: entities, or line ranges, or files, each once."""
    if record.expected_targets is not None:
        return tuple(map(_as_written, record.expected_targets))
    names = _names(record)
    ranges = [lines for lines in record.expected_line_ranges if not _is_reversed(lines)]
    lines = _lines_of(names, ranges)
    targets: dict[str, Target] = {name: Entity(name, lines=lines.get(name, ())) for name in names}
    if not targets:
        spans = (Span(lines.file, int(lines.start), int(lines.end)) for lines in ranges)
        targets = {span.label: span for span in spans}
    if not targets and record.expected_line_ranges:
        return ()  # all of them are wrong: its files are not what it expects
    return tuple((targets or {file: File(file) for file in record.expected_files}).values())


def _is_reversed(lines: LinesModel) -> bool:
    """Whether lines end before they start: they are kept in the label, where the gate of golden sets names them, and expect nothing."""
    return int(lines.end) < int(lines.start)


def _file_of(name: str) -> str:
    """The file of an entity or of lines, as the rules of the harness compare it."""
    parts = posixpath.normpath(name.partition("::")[0].replace("\\", "/")).split("/")
    return "/".join(parts[next((n for n, part in enumerate(parts) if part in RULES.roots), 0) :])


def _lines_of(names: Sequence[str], ranges: Sequence[LinesModel]) -> dict[str, tuple[tuple[int, int], ...]]:
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


def _names(record: GoldenLabel) -> list[str]:
    return [entity if isinstance(entity, str) else entity.entity_id for entity in record.expected_entities]


def _as_written(values: ExpectedTarget) -> Target:
    grade = values.grade + 0.0
    if values.entity_id is not None:
        return Entity(values.entity_id, grade, tuple((int(first), int(last)) for first, last in values.lines))
    if values.start is not None:
        return Span(values.file or "", int(values.start), int(values.end or values.start), grade)
    return File(values.file or "", grade)


def _lost(record: GoldenLabel) -> dict[str, int]:
    """What a record says that has no place."""
    return {
        "unknown keys of entities, line ranges and facts": sum(1 for _ in unknown_keys(record)),
        "places that a record names twice": sum(
            len(items) - len(set(items)) for items in (_names(record), record.expected_files)
        ),
    }


def _reviewed(records: Iterable[GoldenLabel]) -> int | None:
    values = [{**(record.provenance or {}), **(record.validation or {})}.get("human_reviewed") for record in records]
    return None if all(item is None for item in values) else sum(item is True for item in values)


def write_golden_json(testset: TestSet, path: Path | str) -> None:
    """Write entities, line ranges, files and labels, and the metadata of the set in a file beside it.

    What is graded, or is of several kinds, stands under `expected_targets` too, which counts where it is there.

    Raises:
        TestSetError: a query judged by something else, or without text.
    """
    path = Path(path)
    problems = ProblemList(TestSetError)
    for query in testset.queries:
        others = [item for item in testset.targets.get(query.id, ()) if not isinstance(item, Entity | Span | File)]
        if others or testset.grades.get(query.id) or query.negative is not None:
            message = f"not written: query {query.id!r} is judged by something other than places in code"
            problems.add(message, path=str(path), expected="entities, spans of lines or files")
    types = {name.casefold() for name in testset.meta.task_types or TASK_TYPES}
    for query in testset.queries:
        label = testset.labels.get(query.id, Label())
        for value in (query.strata.get(TASK_TYPE, ""), label.classifier_expectation):
            if value and value.casefold() not in types:
                message = f"not written: query {query.id!r} has an unknown task type"
                hint = "`task_types` of the metadata declares others"
                problems.add(message, path=str(path), expected=", ".join(TASK_TYPES), got=shorten(value), hint=hint)
    problems.raise_if_any()
    more = UnknownFields()
    for query_id, label in testset.labels.items():
        more.take(query_id, {key: value for key, value in label.more.items() if key not in GoldenLabel.model_fields})
    entries = [_entry(testset, query, more.strata(query.id)) for query in testset.queries]
    write_records(path, entries, lambda located: _testset(located)[0])
    write_facts(testset, path)


def _entry(testset: TestSet, query: Query, as_strata: Mapping[str, str]) -> dict[str, Any]:
    """A record; `as_strata` are the strata that its other keys are read as."""
    targets, label = testset.targets.get(query.id, ()), testset.labels.get(query.id)
    entry: dict[str, Any] = {"query_id": query.id, "query_text": query.text}
    entry |= {key: query.strata[key] for key in STRATA if key in query.strata}
    others = {key: query.strata.get(key) for key in (*query.strata, *as_strata) if key not in STRATA}
    if strata := {key: value for key, value in others.items() if value != as_strata.get(key)}:
        entry["strata"] = strata
    ranges = lines_of_targets(targets) if label is None else label.line_ranges
    roles = {role.entity_id: role.record for role in label.roles} if label else {}
    names = [target.id for target in targets if isinstance(target, Entity)]
    names += [name for name in roles if name not in names]
    entry["expected_entities"] = [roles.get(name, name) for name in names]
    entry["expected_files"] = list(testset.files.get(query.id, ()))
    if ranges:
        entry["expected_line_ranges"] = [asdict(lines) for lines in ranges]
    as_read = GoldenLabel.model_construct(
        expected_entities=names,
        expected_files=entry["expected_files"],
        expected_line_ranges=[LinesModel.model_construct(**asdict(lines)) for lines in ranges],
    )
    if _targets(as_read) != targets:
        entry["expected_targets"] = [_written(target) for target in targets]
    if label is not None:
        says = {key: [] for key in FACTS} | replace(label, roles=(), line_ranges=()).record
        entry |= {key: value for key, value in says.items() if key not in entry}
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
