"""The mechanical gate: what an oracle claims, against a fresh parse of the source and the log of what was read. No model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from cranfield.agents.loop import Read
from cranfield.golden import checks
from cranfield.golden.checks import CheckedRecord
from cranfield.golden.parsed import ParsedSource
from cranfield.golden.records import OracleAnswer, QueryCandidate
from cranfield.golden.rules import MUST_MENTION, MUST_NOT_MENTION, NARRATIVE_WORDS, Bounds


class GateCheck(StrEnum):
    """A check of the gate."""

    ENTITIES = "entities"
    FILES = "files"
    LINE_RANGES = "line_ranges"
    EVIDENCE = "evidence"
    FILES_OF_PLACES = "files_of_places"
    NAME_DROPS = "name_drops"
    READ = "read"
    CITATIONS = "citations"
    FACTS = "facts"
    NARRATIVE = "narrative"
    ROLES = "roles"
    DIFFICULTY = "difficulty"
    RATIONALE = "rationale"
    LEAK = "leak"
    GREP_ONLY = "grep_only"
    SCORER = "scorer"


class CheckStatus(StrEnum):
    """How a check ended."""

    PASSED = "passed"
    FAILED = "failed"
    MISSING = "missing"
    """The record has nothing to check, and its set never had: only of records that no role made."""


@dataclass(frozen=True, slots=True)
class GateOutcome:
    """Outcome of one check."""

    status: CheckStatus
    problems: tuple[str, ...] = ()
    """Everything that is wrong; or what is missing."""


@dataclass(frozen=True)
class RecordGateReport:
    """Report on one record."""

    passed: bool
    """Whether no check failed."""
    checks: Mapping[GateCheck, GateOutcome]

    @property
    def failed(self) -> tuple[GateCheck, ...]:
        """Checks that failed."""
        return self._with(CheckStatus.FAILED)

    @property
    def missing(self) -> tuple[GateCheck, ...]:
        """Checks that could not run."""
        return self._with(CheckStatus.MISSING)

    def _with(self, status: CheckStatus) -> tuple[GateCheck, ...]:
        return tuple(check for check, outcome in self.checks.items() if outcome.status is status)


@dataclass(frozen=True, slots=True)
class CheckSpec:
    """A check: what it does, and what a record must have for it."""

    find: Callable[[CheckedRecord], Iterator[str]]
    """Problems of a record."""
    what: str
    lacks: Callable[[CheckedRecord], str] = lambda _: ""
    """What the record lacks, so that the check cannot run; empty where it can."""


def gate(
    candidate: QueryCandidate,
    answer: OracleAnswer,
    reads: Sequence[Read] | None,
    source: ParsedSource,
    bounds: Bounds | None = None,
) -> RecordGateReport:
    """Run every check on a record. None stops another, and each reports all that it finds.

    Args:
        candidate: the query.
        answer: of the oracle.
        reads: lines that its tools showed to the oracle. None: the record is of an existing set, made by no role here; then
            what it lacks (a log, facts, a narrative, evidence) is missing, not failed.
        source: a fresh parse of the snapshot.
        bounds: of the plan; default: `Bounds()`.
    """
    record = CheckedRecord(candidate, answer, reads, source, bounds or Bounds())
    found = {check: _outcome(spec, record) for check, spec in CHECKS.items()}
    return RecordGateReport(all(outcome.status is not CheckStatus.FAILED for outcome in found.values()), found)


def _outcome(spec: CheckSpec, record: CheckedRecord) -> GateOutcome:
    lacks = spec.lacks(record)
    if lacks and record.reads is None:
        return GateOutcome(CheckStatus.MISSING, (lacks,))
    problems = tuple(dict.fromkeys(spec.find(record)))
    return GateOutcome(CheckStatus.FAILED, problems) if problems else GateOutcome(CheckStatus.PASSED)


def _no(what: str, has: Callable[[CheckedRecord], object]) -> Callable[[CheckedRecord], str]:
    return lambda record: "" if has(record) else f"no {what}"


CHECKS: Mapping[GateCheck, CheckSpec] = {
    GateCheck.ENTITIES: CheckSpec(
        checks.entities,
        "every entity id resolves in a fresh parse",
        _no("entities", lambda record: record.answer.expected_entities or not record.targets.paths()),
    ),
    GateCheck.FILES: CheckSpec(checks.files, "every expected file exists at the commit"),
    GateCheck.LINE_RANGES: CheckSpec(
        checks.line_ranges,
        (
            "line ranges start at 1 or later, do not end before they start, are within their file, and overlap "
            "an expected entity"
        ),
        _no("line ranges", lambda record: record.answer.expected_line_ranges),
    ),
    GateCheck.EVIDENCE: CheckSpec(
        checks.evidence,
        "there is evidence, and its lines exist",
        _no("evidence", lambda record: record.answer.source_evidence),
    ),
    GateCheck.FILES_OF_PLACES: CheckSpec(checks.files_of_places, "the file of every entity and line range is expected"),
    GateCheck.NAME_DROPS: CheckSpec(
        checks.name_drops,
        "the narrative names no entity and no file that is not expected",
        _no("narrative", lambda record: record.answer.canonical_narrative.strip()),
    ),
    GateCheck.READ: CheckSpec(
        checks.read,
        "the agent read the evidence and the line ranges, and a part of every entity and file",
        _no("log of what was read", lambda record: record.reads is not None),
    ),
    GateCheck.CITATIONS: CheckSpec(
        checks.citations,
        "every fact that must be mentioned cites lines, and cited lines are in the evidence",
        _no("facts with citations", lambda record: any(fact.citations for fact in record.facts)),
    ),
    GateCheck.FACTS: CheckSpec(
        checks.facts,
        f"{MUST_MENTION} facts must be mentioned, {MUST_NOT_MENTION} must not; no duplicates",
        _no("facts", lambda record: record.facts),
    ),
    GateCheck.NARRATIVE: CheckSpec(
        checks.narrative,
        f"the narrative has {NARRATIVE_WORDS} words",
        _no("narrative", lambda record: record.answer.canonical_narrative.strip()),
    ),
    GateCheck.ROLES: CheckSpec(
        checks.roles,
        "roles are known, at least one entity is primary, no duplicates",
        _no("roles", lambda record: any(entity.role for entity in record.answer.expected_entities)),
    ),
    GateCheck.DIFFICULTY: CheckSpec(
        checks.difficulty,
        "the expected items match the rule of their type and difficulty",
    ),
    GateCheck.RATIONALE: CheckSpec(
        checks.rationale,
        "medium and hard queries have a difficulty_rationale, general ones a classifier_expectation",
        _no("rationale or expectation", lambda record: not list(checks.rationale(record))),
    ),
    GateCheck.LEAK: CheckSpec(checks.leak, "the query does not name the expected items"),
    GateCheck.GREP_ONLY: CheckSpec(checks.grep_only, "queries answered by a plain text search are easy"),
    GateCheck.SCORER: CheckSpec(checks.scorer, "the expected answer scores 1, an empty one 0"),
}
"""Every check, in the order of reports."""
