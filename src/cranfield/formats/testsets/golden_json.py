"""Golden sets of code search: a JSON list of records with expected entities, files, line ranges and labels, and a file of metadata.

The format of KnowCode's evaluation harness. The metadata lie beside the set (`golden.json`, `golden.meta.json`): review, commit,
hashes of sources, counts of strata. What the harness has no key for stands under `cranfield`.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, JsonValue

from cranfield.base.errors import ProblemList, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.formats.io.delimited import write_unicode
from cranfield.formats.io.files import META_SUFFIX, STDIN, meta_path, stem, unpacked_name
from cranfield.formats.io.located import Located, load_located
from cranfield.formats.io.records import RECORDS, OpenModel, StrictRecord, indexed_objects, load_records, write_records
from cranfield.formats.io.validation import load_model, validate
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
from cranfield.formats.testsets.native import plain
from cranfield.formats.testsets.trec import TestSetBuilder, UnknownFields
from cranfield.formats.testsets.vocabulary import task_type_problems, version_problems
from cranfield.model import Entity, File, Label, MatchingRules, Meta, Note, NoteKind, Query, Span, Target, TestSet
from cranfield.model.judging import lines_of_targets
from cranfield.model.kinds import Text, source_text, whole
from cranfield.model.note import info, not_carried
from cranfield.model.vocabulary import TASK_TYPE, TASK_TYPES

STRATA = ("task_type", "difficulty")
"""Strata that have keys of their own; counts are by both: `debug:easy`."""
RULES = MatchingRules(roots=("src", "tests"))
"""As the harness compares: a path begins at its first `src` or `tests`, and `::2` at the end of an id is of a chunk."""
COUNTED_REVIEW = re.compile(r"\d+ of \d+ records reviewed by a person")
"""Review that the records themselves tell: it is not written."""
REVIEWED = "reviewed by a person"
"""Name of a count."""


class _More(StrictRecord):
    """What the harness has no key for."""

    name: Text = ""
    description: Text = ""
    meta: Meta | None = None
    matching: MatchingRules | None = None


class _Facts(OpenModel):
    """The keys of the file; others are reported as not carried over."""

    uncommitted_changes: Text = ""
    dataset_status: Text = ""
    source_sha: Text = ""
    commit: Text = ""
    created_at: Text = ""
    version: Text = ""
    query_count: int | None = None
    human_reviewed_count: int | None = None
    strata_counts: dict[str, int] = Field(default_factory=dict)
    source_file_hashes: dict[str, str] = Field(default_factory=dict)
    task_types: list[Text] = Field(default_factory=list)
    known_limitations: list[Text] = Field(default_factory=list)
    assembly: dict[str, JsonValue] = Field(default_factory=dict)
    cranfield: _More | None = None


def files_of_set(path: Path) -> tuple[Path, ...]:
    """The file of a set, and those that may stand beside it."""
    return path, meta_path(path), facts_path(path)


def facts_path(path: Path) -> Path:
    """Where the facts about a set lie: `golden.meta.json` beside `golden.json`, packed or not."""
    name = unpacked_name(path)
    return path.with_name(re.sub(r"(?<=.)\.json$", "", name) + META_SUFFIX)


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
    located = load_located(facts_file, TestSetError)
    if problems := list(version_problems(located)):
        raise TestSetError(problems)
    facts = load_model(facts_file, _Facts, TestSetError)
    more = facts.cranfield or _More()
    given = located.sourced["cranfield"]["meta"] if more.meta is not None else ()
    return replace(
        testset,
        name=more.name or testset.name,
        description=more.description,
        version=facts.version,
        matching=more.matching or RULES,
        meta=_about(facts, more, given, review),
        notes=(*testset.notes, *_notes(testset, facts, facts_file)),
    )


def _about(facts: _Facts, more: _More, given: Iterable[str], review: str = "") -> Meta:
    """The facts under the harness's own keys, and over them those that are given under `cranfield`."""
    # Counts as a test set has them: of all queries, and of each value of each stratum.
    counts: Counter[str] = Counter()
    for cell, n in facts.strata_counts.items():
        for key, value in zip(STRATA, cell.split(":"), strict=False):
            if value:
                counts[f"{key}={value}"] += n
    values = {} if facts.query_count is None else {"queries": int(facts.query_count)}
    reviewed = {} if facts.human_reviewed_count is None else {REVIEWED: int(facts.human_reviewed_count)}
    own = Meta(
        uncommitted=facts.uncommitted_changes,
        review=facts.dataset_status or review,
        made=facts.created_at[: len("2026-11-21")],
        commit=facts.source_sha or facts.commit,
        source_files=dict(facts.source_file_hashes),
        counts={**values, **{key: int(n) for key, n in counts.items()}, **reviewed},
        task_types=tuple(facts.task_types),
        assembly=dict(facts.assembly),
    )
    return replace(own, **{name: getattr(more.meta, name) for name in given})


def _notes(testset: TestSet, facts: _Facts, facts_file: Path) -> list[Note]:
    """What the facts get wrong, what the makers warn of, and what has no place."""
    notes: list[Note] = []
    if facts.query_count is not None and facts.query_count != len(testset.queries):
        notes += info(f"{facts_file.name} counts {facts.query_count} queries; the file has {len(testset.queries)}")
    if facts.strata_counts:
        true = _cells(testset)
        wrong = [
            cell for cell in {**facts.strata_counts, **true} if facts.strata_counts.get(cell, 0) != true.get(cell, 0)
        ]
        if wrong:
            there = facts.strata_counts.get(wrong[0], 0)
            what = f"{there} {shorten(wrong[0])} where there are {true.get(wrong[0], 0)}"
            notes += info(f"{facts_file.name} counts {len(wrong)} strata wrong: {what}")
    notes += [
        Note(NoteKind.NOT_CARRIED, f"statement of its authors: {sentence}") for sentence in facts.known_limitations
    ]
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
        "uncommitted_changes": meta.uncommitted,
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
    if meta.task_types:
        facts["task_types"] = list(meta.task_types)
    if meta.source_files:
        facts["source_file_hashes"] = dict(meta.source_files)
    if meta.assembly:
        facts["assembly"] = dict(meta.assembly)
    if more := _more(testset, path, facts):
        facts["cranfield"] = more
    write_unicode(facts_path(path), [json.dumps(facts, indent=2, ensure_ascii=False) + "\n"])


def with_counts_of(text: str, written: str) -> str:
    """Facts as they are written, with the counts of a text, which need not be those of the set.

    Args:
        text: the file as it stands.
        written: what `write_facts` wrote of the set in it.
    """
    there, facts = json.loads(text), json.loads(written)
    return json.dumps(facts | {key: there[key] for key in ("query_count", "strata_counts") if key in there})


def _more(testset: TestSet, path: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What has no key of the harness's own, or would be read from it otherwise."""
    written = plain(testset.meta)
    read = _about(_Facts.model_construct(**facts), _More(), ())
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
        more["matching"] = plain(testset.matching)
    return more


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
