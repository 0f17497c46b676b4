"""Golden sets of code search: a JSON list of records with expected entities, files and line ranges, and a file of facts.

The format of KnowCode's evaluation harness. The facts lie beside the set (`golden.json`, `golden.meta.json`): review, commit,
hashes of sources, counts of strata. Facts that the harness has no key for stand under `cranfield`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue

from cranfield.errors import ProblemList, TestSetError, shorten
from cranfield.formats.io.cells import whole
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import STDIN, stem, unpacked_name
from cranfield.formats.io.located import Located
from cranfield.formats.io.records import RECORDS, OpenModel, indexed_objects, load_records, write_records
from cranfield.formats.io.tree import source_text
from cranfield.formats.io.validation import Text, load_model, validate
from cranfield.formats.testsets.builder import TestSetBuilder, UnknownFields
from cranfield.formats.testsets.native import meta_of, rules_of
from cranfield.formats.testsets.native_fields import FilledText, Grade, Id, Strict
from cranfield.formats.testsets.native_models import MatchingModel, MetaModel
from cranfield.formats.testsets.native_write import document_of
from cranfield.model import Entity, File, MatchingRules, Meta, Note, NoteKind, Query, Span, Target, TestSet
from cranfield.model.note import info, not_carried
from cranfield.words import n_of

STRATA = ("task_type", "difficulty")
"""Strata that have keys of their own; counts are by both: `debug:easy`."""
RULES = MatchingRules(roots=("src", "tests"))
"""As the harness compares: a path begins at its first `src` or `tests`, and `::2` at the end of an id is of a chunk."""
COUNTED_REVIEW = re.compile(r"\d+ of \d+ records reviewed by a person")
"""Review that the records themselves tell: it is not written."""
REVIEWED = "reviewed by a person"
"""Name of a count."""
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

    Entities are targets; where a record has none, its line ranges are; where it has neither, its files are. Facts that an
    answer must mention have no place in a test set of search: they are counted in the notes.

    Raises:
        TestSetError: with everything that is wrong in either file, each at its line and column.
    """
    path = Path(path)
    located = load_records(path)
    testset, n_reviewed = _testset(located)
    return with_facts(testset, path, n_reviewed)


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
    targets: dict[str, Target] = {name: Entity(name) for name in _names(record)}
    if not targets:
        spans = (Span(lines.file, int(lines.start), int(lines.end)) for lines in record.expected_line_ranges)
        targets = {span.label: span for span in spans}
    return tuple((targets or {file: File(file) for file in record.expected_files}).values())


def _names(record: _Record) -> list[str]:
    return [entity if isinstance(entity, str) else entity.entity_id for entity in record.expected_entities]


def _as_written(values: _Target) -> Target:
    grade = values.grade + 0.0
    if values.entity_id is not None:
        return Entity(values.entity_id, grade)
    if values.start is not None:
        return Span(values.file or "", int(values.start), int(values.end or values.start), grade)
    return File(values.file or "", grade)


def _lost(record: _Record) -> dict[str, int]:
    """What a record says that has no place in a test set."""
    described = [entity for entity in record.expected_entities if isinstance(entity, _Entity) and entity.model_extra]
    names = _names(record)
    ranges = [(item.file, item.start, item.end) for item in record.expected_line_ranges]
    return {
        "facts that an answer must mention": len(record.must_mention_facts),
        "facts that it must not mention": len(record.must_not_mention_facts),
        "narratives": int(bool(record.canonical_narrative)),
        "entities with words beside (role, reason)": len(described),
        "line ranges of records that expect entities": len(ranges) if names and record.expected_targets is None else 0,
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
            return {"entity_id": target.id, **grade}
        case Span():
            return {"file": target.path, "start": target.start, "end": target.end, **grade}
        case _:
            return {"file": target.label, **grade}


class _More(Strict):
    """What the harness has no key for."""

    name: Text = ""
    description: Text = ""
    meta: MetaModel | None = None
    matching: MatchingModel | None = None


class _Facts(OpenModel):
    """The keys of the file; others are reported as not carried over."""

    dataset_status: Text = ""
    source_sha: Text = ""
    commit: Text = ""
    created_at: Text = ""
    version: Text = ""
    query_count: int | None = None
    human_reviewed_count: int | None = None
    strata_counts: dict[str, int] = Field(default_factory=dict)
    source_file_hashes: dict[str, str] = Field(default_factory=dict)
    known_limitations: list[Text] = Field(default_factory=list)
    cranfield: _More | None = None


def facts_path(path: Path) -> Path:
    """Where the facts about a set lie: `golden.meta.json` beside `golden.json`, packed or not."""
    name = unpacked_name(path)
    return path.with_name(re.sub(r"(?<=.)\.json$", "", name) + ".meta.json")


def with_facts(testset: TestSet, path: Path, n_reviewed: int | None) -> TestSet:
    """The test set with the facts of the file beside it, and the rules by which the harness matches.

    Args:
        testset: as its own file has it.
        path: of that file.
        n_reviewed: records that say a person reviewed them; None where none says.
    """
    n = len(testset.queries)
    facts_file = facts_path(path)
    review = "" if n_reviewed is None else f"{n_reviewed} of {n} records reviewed by a person"
    if str(path) == STDIN or not facts_file.is_file():
        return replace(testset, matching=RULES, meta=Meta(review=review))
    facts = load_model(facts_file, _Facts, TestSetError)
    more = facts.cranfield or _More()
    return replace(
        testset,
        name=more.name or testset.name,
        description=more.description,
        version=facts.version,
        matching=RULES if more.matching is None else rules_of(more.matching),
        meta=_about(facts, more, review),
        notes=(*testset.notes, *_notes(testset, facts, facts_file)),
    )


def _about(facts: _Facts, more: _More, review: str = "") -> Meta:
    """The facts under the harness's own keys, and over them those that stand under `cranfield`."""
    own = Meta(
        review=facts.dataset_status or review,
        made=facts.created_at[: len("2026-11-21")],
        commit=facts.source_sha or facts.commit,
        source_files=dict(facts.source_file_hashes),
        counts=_marginals(facts),
    )
    if more.meta is None:
        return own
    values = meta_of(more.meta)
    return replace(own, **{name: getattr(values, name) for name in more.meta.model_fields_set})


def _marginals(facts: _Facts) -> dict[str, int]:
    """Counts as a test set has them: of all queries, and of each value of each stratum."""
    counts: Counter[str] = Counter()
    for cell, n in facts.strata_counts.items():
        for key, value in zip(STRATA, cell.split(":"), strict=False):
            counts[f"{key}={value}"] += n
    values = {} if facts.query_count is None else {"queries": int(facts.query_count)}
    reviewed = {} if facts.human_reviewed_count is None else {REVIEWED: int(facts.human_reviewed_count)}
    return {**values, **{key: int(n) for key, n in counts.items()}, **reviewed}


def _notes(testset: TestSet, facts: _Facts, facts_file: Path) -> list[Note]:
    """What the facts get wrong, what the makers warn of, and what has no place."""
    notes: list[Note] = []
    if facts.query_count is not None and facts.query_count != len(testset.queries):
        notes += info(f"{facts_file.name} counts {facts.query_count} queries; there are {len(testset.queries)}")
    if facts.strata_counts:
        true = _cells(testset)
        wrong = [
            cell for cell in {**facts.strata_counts, **true} if facts.strata_counts.get(cell, 0) != true.get(cell, 0)
        ]
        if wrong:
            there = facts.strata_counts.get(wrong[0], 0)
            what = f"{there} {shorten(wrong[0])} where there are {true.get(wrong[0], 0)}"
            notes += info(f"{facts_file.name} counts {len(wrong)} strata wrong: {what}")
    notes += [Note(NoteKind.NOT_CARRIED, f"its makers say: {sentence}") for sentence in facts.known_limitations]
    unknown = sorted(facts.model_extra or {})
    if unknown:
        notes.append(Note(NoteKind.NOT_CARRIED, f"not carried over from {facts_file.name}: {', '.join(unknown)}"))
    return notes


def _cells(testset: TestSet) -> dict[str, int]:
    return dict(Counter(":".join(query.strata.get(key, "") for key in STRATA) for query in testset.queries))


def write_facts(testset: TestSet, path: Path) -> None:
    """Write the facts about a set beside its file; counts are those of its content."""
    meta = testset.meta
    if COUNTED_REVIEW.fullmatch(meta.review):
        testset = replace(testset, meta=(meta := replace(meta, review="")))
    facts: dict[str, Any] = {
        "dataset_status": meta.review,
        "source_sha": meta.commit,
        "created_at": meta.made,
        "version": testset.version,
    }
    facts = {key: value for key, value in facts.items() if value}
    facts["query_count"] = len(testset.queries)
    if any(key in query.strata for query in testset.queries for key in STRATA):
        facts["strata_counts"] = dict(sorted(_cells(testset).items()))
    if REVIEWED in meta.counts:
        facts["human_reviewed_count"] = meta.counts[REVIEWED]
    if meta.source_files:
        facts["source_file_hashes"] = dict(meta.source_files)
    if more := _more(testset, path, facts):
        facts["cranfield"] = more
    write_unicode(facts_path(path), [json.dumps(facts, indent=2, ensure_ascii=False) + "\n"])


def _more(testset: TestSet, path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What has no key of the harness's own, or would be read from it otherwise."""
    written = document_of(TestSet("", (), meta=testset.meta)).get("meta", {})
    read = _about(_Facts.model_construct(**facts), _More())
    differs = {name: value for name, value in asdict(testset.meta).items() if getattr(read, name) != value}
    meta = {
        name: written.get(name, {})
        for name, value in differs.items()
        if value != getattr(Meta(), name) or name == "counts"
    }
    more: dict[str, Any] = {"meta": meta} if meta else {}
    if testset.name != stem(path):
        more["name"] = testset.name
    if testset.description:
        more["description"] = testset.description
    if testset.matching != RULES:
        more["matching"] = document_of(TestSet("", (), matching=testset.matching)).get("matching", {})
    return more
