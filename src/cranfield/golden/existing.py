"""An existing set as the records of a run: its queries as candidates, its targets and labels as the oracle's answers.

What a record does not say is missing, not wrong: a set without facts, narratives or evidence enters, and the gate says which
checks could run. A set may enter at the gate, or later, where what comes before is known to be done.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from cranfield.agents.recording import PLAN, TreeRecord, now, tree_files
from cranfield.base.errors import Problem, TestSetError, shorten
from cranfield.base.words import count_noun
from cranfield.golden.gate import CHECKS, CheckStatus, GateCheck, RecordGateReport, gate
from cranfield.golden.index import RunFolder, Step
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.plan import Plan
from cranfield.golden.records import (
    CitedLines,
    Confidence,
    Difficulty,
    EntityRoleName,
    Evidence,
    OracleAnswer,
    QueryCandidate,
)
from cranfield.golden.rules import Bounds
from cranfield.golden.run import manifest_of, require_models
from cranfield.golden.states import ENTERS_AT, EntryStep
from cranfield.model import Entity, Fact, File, Label, Query, Span, Target, TestSet
from cranfield.model.results import Record, TestSetRecord
from cranfield.model.vocabulary import TASK_TYPE, TASK_TYPES
from cranfield.ranking.matching.place import ENTITY_MARK
from cranfield.repo.snapshot import Snapshot

DIFFICULTY = "difficulty"
DIFFICULTIES: tuple[str, ...] = get_args(Difficulty)
CARRIED = "carried"
"""Key of the manifest of a run: `ExistingRecords.carried`."""
MAX_SPANS = 3
"""That a candidate names; its answer has all."""
_EVIDENCE, _CONFIDENCE, _UNCERTAINTY = "source_evidence", "confidence", "uncertainty_notes"
"""Keys of a golden record that a label keeps among its other keys."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Values for queries that do not state them."""

    task_type: str = ""
    difficulty: str = ""


@dataclass(frozen=True)
class ExistingRecords:
    """The records of an existing set."""

    candidates: tuple[QueryCandidate, ...]
    answers: tuple[OracleAnswer, ...]
    notes: tuple[str, ...]
    """What of the set its records do not say."""
    carried: Mapping[str, Mapping[str, Any]]
    """Query id to the provenance and the other keys of its label, which the records of a run have no place for."""


def import_set(testset: TestSet, *, commit: str, at: str, defaults: Defaults | None = None) -> ExistingRecords:
    """The records of a set.

    Args:
        testset: its queries expect entities, spans of lines, or files.
        commit: of the repository that they are checked against.
        at: time of the import.
        defaults: task type and difficulty of queries without.

    Raises:
        TestSetError: with every query that cannot enter, and what it lacks.
    """
    given = defaults or Defaults()
    problems = [problem for query in testset.queries for problem in _problems(testset, query, given)]
    if problems:
        raise TestSetError(problems)
    lost = Counter[str]()
    author = f"imported:{testset.name}"
    stamp = {"commit": commit, "imported_from": testset.digest, "authored_by": author, "created_at": at}
    candidates, answers = [], []
    for query in testset.queries:
        cell = {"query_id": query.id, TASK_TYPE: _task_type(query, given), DIFFICULTY: _difficulty(query, given)}
        targets, label = testset.targets.get(query.id, ()), testset.labels.get(query.id, Label())
        candidates.append(QueryCandidate.model_validate({**_candidate(query, targets, label, lost), **cell, **stamp}))
        answer = _answer(targets, testset.files.get(query.id, ()), label, lost)
        record = OracleAnswer.model_validate({**answer, **cell, **stamp})
        # Lines that end before they start are no valid record: the gate names them.
        wrong = [CitedLines.model_construct(**asdict(each)) for each in label.line_ranges if each.end < each.start]
        ranges = [*record.expected_line_ranges, *wrong]
        answers.append(record.model_copy(update={"expected_line_ranges": ranges}) if wrong else record)
    carried = {query_id: _carried(label) for query_id, label in testset.labels.items()}
    return ExistingRecords(
        tuple(candidates),
        tuple(answers),
        tuple(count_noun(n, what) for what, n in lost.items() if n),
        {query_id: values for query_id, values in carried.items() if values},
    )


def _task_type(query: Query, defaults: Defaults) -> str:
    return (query.strata.get(TASK_TYPE) or defaults.task_type).casefold()


def _difficulty(query: Query, defaults: Defaults) -> str:
    return (query.strata.get(DIFFICULTY) or defaults.difficulty).casefold()


def _problems(testset: TestSet, query: Query, defaults: Defaults) -> list[Problem]:
    """Everything for which a query cannot enter."""
    found = []
    targets = testset.targets.get(query.id, ())
    others = [target.label for target in targets if not isinstance(target, Entity | Span | File)]
    ranges = testset.labels.get(query.id, Label()).line_ranges  # that end before they start are no targets
    if others or not (targets or ranges):
        message, expected = f"query {query.id!r} has unsupported targets", "entities, spans of lines, or files"
        found.append(Problem(message, expected=expected, got=shorten(others[0]) if others else "no place"))
    if not query.text.strip():
        found.append(Problem(f"query {query.id!r} has no text"))
    for name, value, known in (
        (TASK_TYPE, _task_type(query, defaults), TASK_TYPES),
        (DIFFICULTY, _difficulty(query, defaults), DIFFICULTIES),
    ):
        if value not in known:
            message = f"query {query.id!r} has {f'an unknown {name}' if value else f'no {name}'}"
            hint = f"set the value for queries without one with {{{name}=NAME}}"
            got = shorten(value) if value else None
            found.append(Problem(message, expected=", ".join(known), got=got, hint=hint, parameters=(name,)))
    wrong = [span for span in targets if isinstance(span, Span) and span.grade not in {1, 2, 3}]
    if wrong:
        message = f"query {query.id!r} has a span with an unknown grade"
        found.append(Problem(message, expected="1, 2 or 3", got=f"{wrong[0].grade:g}"))
    return found


def _candidate(query: Query, targets: Sequence[Target], label: Label, lost: Counter[str]) -> dict[str, Any]:
    spans = [target for target in targets if isinstance(target, Span)]
    named = sorted(spans, key=lambda span: -span.grade)[:MAX_SPANS]
    lost["candidates with only the best three of their spans"] += len(spans) > MAX_SPANS
    expectation = label.classifier_expectation.casefold()
    return {
        "query_text": query.text,
        "target_entity_ids": [target.id for target in targets if isinstance(target, Entity)],
        "target_files": [target.path for target in targets if isinstance(target, File)],
        "target_spans": [
            {"file": span.path, "start": span.start, "end": span.end, "grade": int(span.grade)} for span in named
        ],
        "difficulty_rationale": label.difficulty_rationale,
        "classifier_expectation": expectation if expectation in TASK_TYPES else None,
    }


def _answer(targets: Sequence[Target], files: Sequence[str], label: Label, lost: Counter[str]) -> dict[str, Any]:
    spans = [target for target in targets if isinstance(target, Span)]
    of_entities = [span for target in targets if isinstance(target, Entity) for span in target.spans]
    # A set that lists no files expects those of its targets: an id of an entity begins with its file.
    own_files = [
        target.id.partition(ENTITY_MARK)[0] if isinstance(target, Entity) else target.path
        for target in targets
        if isinstance(target, Entity | Span | File)
    ]
    ranges = [asdict(lines) for lines in label.line_ranges if lines.start <= lines.end]
    confidence = label.more.get(_CONFIDENCE)
    lost["unknown confidence values"] += confidence not in (None, *get_args(Confidence))
    # The evidence of a record; an entry that is none is counted.
    found = []
    entries = label.more.get(_EVIDENCE) or []
    for each in entries if isinstance(entries, list) else [entries]:
        try:
            found.append(Evidence.model_validate(each))
        except ValidationError:
            lost["unreadable evidence entries"] += 1
    return {
        "expected_entities": [_entity(target.id, label, lost) for target in targets if isinstance(target, Entity)],
        "expected_files": list(dict.fromkeys(files or own_files)),
        "expected_line_ranges": ranges
        or [
            {"file": span.path, "start": span.start, "end": span.end} for span in dict.fromkeys([*spans, *of_entities])
        ],
        "must_mention_facts": list(map(_fact, label.must_mention)),
        "must_not_mention_facts": list(map(_fact, label.must_not_mention)),
        "canonical_narrative": label.narrative,
        _EVIDENCE: found,
        _CONFIDENCE: confidence if confidence in get_args(Confidence) else None,
        _UNCERTAINTY: label.more.get(_UNCERTAINTY) or None,
        "baseline_answerable": label.baseline_answerable,
    }


def _entity(entity_id: str, label: Label, lost: Counter[str]) -> dict[str, Any]:
    found = next((role for role in label.roles if role.entity_id == entity_id), None)
    role = found.role if found is not None else ""
    is_known = role in get_args(EntityRoleName)
    lost["unknown roles"] += bool(role) and not is_known
    rationale = found.rationale if found is not None else ""
    return {"entity_id": entity_id, "role": role if is_known else None, "rationale": rationale}


def _fact(fact: Fact) -> dict[str, Any]:
    return {"fact": fact.text, "citations": [asdict(lines) for lines in fact.citations]}


def _carried(label: Label) -> dict[str, Any]:
    own = {_EVIDENCE, _CONFIDENCE, _UNCERTAINTY}
    more = {key: value for key, value in label.more.items() if key not in own}
    return {**({"provenance": dict(label.provenance)} if label.provenance else {}), **({"more": more} if more else {})}


@dataclass(frozen=True)
class Entered:
    """A run folder that was made of a set."""

    folder: Path
    imported: ExistingRecords


@dataclass(frozen=True, slots=True)
class EntryPlan:
    """The plan whose models go on with an existing set."""

    plan: Plan
    text: str
    """As it was read; it is copied."""


def enter(
    testset: TestSet, snapshot: Snapshot, runs: Path, step: EntryStep, given: EntryPlan, defaults: Defaults
) -> Entered:
    """Make a run folder of an existing set; `golden run --resume` continues it.

    Args:
        testset: see `import_set`.
        snapshot: of the repository that the set is about.
        runs: folder of all runs.
        step: that the records go on from.
        given: the plan; its cells are not used.
        defaults: task type and difficulty of queries without.

    Raises:
        TestSetError: with every query that cannot enter.
        ConfigError: with what is wrong with the models of the plan.
    """
    require_models(given.plan)
    reversed_lines = [
        Problem(
            f"query {query_id!r}: lines {lines} end before they start",
            hint="`cranfield golden gate SET --repo DIR` checks every record",
        )
        for query_id, label in testset.labels.items()
        for lines in label.line_ranges
        if lines.end < lines.start
    ]
    if reversed_lines:
        raise TestSetError(reversed_lines)
    imported = import_set(testset, commit=snapshot.commit, at=now(), defaults=defaults)
    manifest = manifest_of(given.plan, snapshot, source=testset.name)
    more = {ENTERS_AT: step.value, CARRIED: imported.carried}
    name = re.sub(r"[^\w.-]+", "-", testset.name)[:60] or "set"
    manifest = manifest.model_copy(update={"name": name, "more": more, "notes": (*manifest.notes, *imported.notes)})
    path = RunFolder.create(runs, manifest, {PLAN: given.text.encode(), **tree_files(snapshot)})
    with RunFolder.writing(path) as folder:
        for candidate, answer in zip(imported.candidates, imported.answers, strict=True):
            folder.append(Step.CANDIDATES, candidate)
            folder.append(Step.ANSWERS, answer)
    return Entered(path, imported)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetGate(Record):
    """What the mechanical gate finds of the records of an existing set."""

    uncommitted: str
    """That of the tree."""
    commit: str
    tree: TreeRecord
    testset: TestSetRecord
    notes: tuple[str, ...]
    n_passed: int
    checks: Mapping[GateCheck, Mapping[CheckStatus, int]]
    """How many records ended so."""
    records: Mapping[str, RecordGateReport]
    """By query."""


def gate_set(testset: TestSet, imported: ExistingRecords, snapshot: Snapshot, bounds: Bounds | None = None) -> SetGate:
    """Take the records of an existing set through the gate.

    Args:
        testset: the set.
        imported: its records.
        snapshot: of the repository that the set is about.
        bounds: of a plan; default: `Bounds()`.
    """
    source, tree = ParsedSource(snapshot), TreeRecord.of(snapshot)
    pairs = zip(imported.candidates, imported.answers, strict=True)
    records = {candidate.query_id: gate(candidate, answer, None, source, bounds) for candidate, answer in pairs}
    ended = Counter((check, outcome.status) for report in records.values() for check, outcome in report.checks.items())
    return SetGate(
        uncommitted=tree.uncommitted,
        commit=snapshot.commit,
        tree=tree,
        testset=TestSetRecord.of(testset),
        notes=tuple(imported.notes),
        n_passed=sum(report.passed for report in records.values()),
        checks={check: {status: ended[check, status] for status in CheckStatus} for check in CHECKS},
        records=records,
    )
