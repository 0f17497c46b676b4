"""The mechanical gate: what an oracle claims, against a fresh parse of the source and the log of what was read. No model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import get_args

from cranfield.agents.answers.rows import Answered, ExpectedAnswer
from cranfield.agents.answers.structure import score_structure
from cranfield.agents.loop import Read
from cranfield.base.words import and_list, count_noun
from cranfield.golden.index import content_words, found_by_grep, jaccard
from cranfield.golden.narrative import NamesAllowed, names_not_expected
from cranfield.golden.parsed import LineCoverage, ParsedSource, lies_in
from cranfield.golden.plan import Plan, Quota, TargetKind
from cranfield.golden.records import CitedFact, CitedLines, EntityRoleName, OracleAnswer, QueryCandidate
from cranfield.golden.rules import MUST_MENTION, MUST_NOT_MENTION, NARRATIVE_WORDS, RULES, Bounds
from cranfield.golden.targets import Targets, lines_of, of_answer, of_candidate
from cranfield.model.judging import Lines
from cranfield.ranking.matching.place import ENTITY_MARK
from cranfield.repo.symbols import language_of


class ScreenReason(StrEnum):
    """Why a candidate is rejected."""

    NOT_PLANNED = "not_planned"
    """The plan has no cell of its type and difficulty."""
    CELL_FULL = "cell_full"
    QUOTA_FULL = "quota_full"
    TARGET_MISSING = "target_missing"
    """A target does not exist in the snapshot."""
    TARGET_KIND = "target_kind"
    """Its targets are not of the kind that the cell wants."""
    OUT_OF_SCOPE = "out_of_scope"
    """Its first target is not in the scope of the cell."""
    DIFFICULTY = "difficulty"
    """Its targets do not fit its difficulty."""
    LEAK = "leak"
    """The query names its target."""
    LEXICAL_OVERLAP = "lexical_overlap"
    """A hard query shares too many words with the names of its targets."""
    GREP_ONLY = "grep_only"
    """A plain search answers a query that is not easy."""
    TARGET_OVERLAP = "target_overlap"
    """It shares more than half of the targets with an accepted candidate."""
    NEAR_DUPLICATE = "near_duplicate"
    """Its text is nearly that of an accepted candidate."""


@dataclass(frozen=True, slots=True)
class ScreenProblem:
    """A reason, and its particulars."""

    reason: ScreenReason
    message: str


class Screener:
    """Judges candidates by a plan and a parsed snapshot."""

    def __init__(self, plan: Plan, source: ParsedSource) -> None:
        self.plan = plan
        self.source = source

    def judge(self, candidate: QueryCandidate, accepted: Sequence[QueryCandidate]) -> tuple[ScreenProblem, ...]:
        """All reasons to reject a candidate; none accepts it.

        Args:
            candidate: not yet judged.
            accepted: candidates that were accepted before it.
        """
        targets = of_candidate(candidate)
        found = [*self._of_cell(candidate, targets, accepted), *self._of_quotas(targets, accepted)]
        missing = [*self._missing(candidate, targets)]
        found += [ScreenProblem(ScreenReason.TARGET_MISSING, message) for message in missing]
        found += self._of_text(candidate, targets)
        for earlier in accepted:
            found += self._of_pair(candidate, targets, earlier)
        return tuple(found)

    def quota_counts(self, accepted: Sequence[QueryCandidate]) -> list[tuple[Quota, int]]:
        """Each quota, and how many accepted candidates count for it: those whose first target lies in its place."""
        first = [of_candidate(candidate).paths()[0] for candidate in accepted]
        return [(quota, sum(lies_in(path, quota.path) for path in first)) for quota in self.plan.quotas]

    def _of_cell(
        self, candidate: QueryCandidate, targets: Targets, accepted: Sequence[QueryCandidate]
    ) -> Iterator[ScreenProblem]:
        cell = self.plan.cell(candidate.task_type, candidate.difficulty)
        name = f"{candidate.task_type}, {candidate.difficulty}"
        if cell is None:
            yield ScreenProblem(ScreenReason.NOT_PLANNED, f"cell {name} is not in the plan")
            return
        taken = sum((other.task_type, other.difficulty) == cell.key for other in accepted)
        if taken >= cell.n:
            yield ScreenProblem(ScreenReason.CELL_FULL, f"the cell {name} has all of its {cell.n}")
        kind = self.plan.targets_of(cell)
        if not _KINDS[kind](targets):
            yield ScreenProblem(ScreenReason.TARGET_KIND, f"the targets are no {kind}")
        scope = self.plan.scope_of(cell)
        first = targets.paths()[0]
        if scope and not any(lies_in(first, place) for place in scope):
            yield ScreenProblem(ScreenReason.OUT_OF_SCOPE, f"{first} is not in {and_list(scope)}")
        for problem in RULES[cell.key].problems(targets.extent):
            yield ScreenProblem(ScreenReason.DIFFICULTY, f"{name}: {problem}")

    def _of_quotas(self, targets: Targets, accepted: Sequence[QueryCandidate]) -> Iterator[ScreenProblem]:
        for quota, taken in self.quota_counts(accepted):
            if quota.most is not None and taken >= quota.most and lies_in(targets.paths()[0], quota.path):
                yield ScreenProblem(ScreenReason.QUOTA_FULL, f"{quota.path} has all of its {quota.most}")

    def _missing(self, candidate: QueryCandidate, targets: Targets) -> Iterator[str]:
        for entity in candidate.target_entity_ids:
            if problem := self.source.entity_problem(entity):
                yield problem
        for span in targets.spans:
            if problem := self.source.range_problem(*span):
                yield problem
        for path in targets.files:
            if path not in self.source.files:
                yield f"{path}: no such file"

    def _of_text(self, candidate: QueryCandidate, targets: Targets) -> Iterator[ScreenProblem]:
        query, bounds = candidate.query_text, self.plan.bounds
        if leak := targets.leak_problem(query):
            yield ScreenProblem(ScreenReason.LEAK, leak)
        hard_overlap = bounds.hard_overlap if candidate.difficulty == "hard" else None
        if hard_overlap is not None and (problem := targets.overlap_problem(query, hard_overlap, self.source)):
            yield ScreenProblem(ScreenReason.LEXICAL_OVERLAP, problem)
        if candidate.difficulty != "easy":
            terms = found_by_grep(query, targets.places(self.source), self.source, bounds)
            if terms:
                yield ScreenProblem(ScreenReason.GREP_ONLY, grep_message(terms))

    def _of_pair(self, candidate: QueryCandidate, targets: Targets, earlier: QueryCandidate) -> Iterator[ScreenProblem]:
        bounds = self.plan.bounds
        shared, smaller = targets.shared_with(of_candidate(earlier), self.source)
        if shared > smaller * Fraction(str(bounds.target_overlap)):
            message = f"shares {count_noun(shared, 'targets')} with {earlier.query_id}; the smaller set has {smaller}"
            yield ScreenProblem(ScreenReason.TARGET_OVERLAP, message)
        common = jaccard(content_words(candidate.query_text), content_words(earlier.query_text))
        if common >= Fraction(str(bounds.text_overlap)):
            message = f"nearly repeats {earlier.query_id}: {earlier.query_text}"
            yield ScreenProblem(ScreenReason.NEAR_DUPLICATE, message)


def grep_message(terms: Sequence[str]) -> str:
    """Which terms answer a query by themselves."""
    return f"a search for {and_list([repr(term) for term in terms])} finds every target, so the query is easy"


def _in_markdown(entity: str) -> bool:
    return language_of(entity.partition(ENTITY_MARK)[0]) == "markdown"


_KINDS: dict[TargetKind, Callable[[Targets], bool]] = {
    "entities": lambda targets: bool(targets.entities) and not any(map(_in_markdown, targets.entities)),
    "files": lambda targets: not (targets.entities or targets.spans),
    "spans": lambda targets: bool(targets.spans) and not targets.entities,
    "headings": lambda targets: bool(targets.entities) and all(map(_in_markdown, targets.entities)),
}


@dataclass(frozen=True)
class CheckedRecord:
    """A record, and what it is checked against."""

    candidate: QueryCandidate
    answer: OracleAnswer
    reads: Sequence[Read] | None
    source: ParsedSource
    bounds: Bounds

    @cached_property
    def targets(self) -> Targets:
        """What the answer expects."""
        return of_answer(self.answer)

    @cached_property
    def shown(self) -> LineCoverage:
        """Lines that tools showed."""
        return LineCoverage((read.path, read.start, read.end) for read in self.reads or ())

    @cached_property
    def evidence(self) -> LineCoverage:
        """Lines that the oracle names as read."""
        return LineCoverage(lines_of(self.answer.source_evidence))

    @property
    def facts(self) -> list[CitedFact]:
        """Facts of both kinds."""
        return [*self.answer.must_mention_facts, *self.answer.must_not_mention_facts]


def entities(record: CheckedRecord) -> Iterator[str]:
    """Every id resolves."""
    if not (record.answer.expected_entities or record.answer.expected_files or record.answer.expected_line_ranges):
        yield "the answer expects nothing"
    for entity in record.answer.expected_entities:
        if problem := record.source.entity_problem(entity.entity_id):
            yield problem


def files(record: CheckedRecord) -> Iterator[str]:
    """Every file exists."""
    for path in record.answer.expected_files:
        if path not in record.source.files:
            yield f"{path}: no such file"


def _ranges_of(parts: Sequence[CitedLines], source: ParsedSource) -> Iterator[str]:
    for part in lines_of(parts):
        if problem := source.range_problem(*part):
            yield problem


def line_ranges(record: CheckedRecord) -> Iterator[str]:
    """They are lines of their files, and where entities are expected, of one of these."""
    yield from _ranges_of(record.answer.expected_line_ranges, record.source)
    expected = [entity.entity_id for entity in record.answer.expected_entities]
    for part in lines_of(record.answer.expected_line_ranges):
        if not record.source.range_problem(*part) and (outside := record.source.outside_problem(part, expected)):
            yield outside


def evidence(record: CheckedRecord) -> Iterator[str]:
    """There is some, and its lines exist."""
    if not record.answer.source_evidence:
        yield "no evidence"
    yield from _ranges_of(record.answer.source_evidence, record.source)


def files_of_places(record: CheckedRecord) -> Iterator[str]:
    """Every entity and range has its file among the expected ones."""
    files = frozenset(record.answer.expected_files)
    for entity in record.answer.expected_entities:
        if entity.entity_id.partition(ENTITY_MARK)[0] not in files:
            yield f"{entity.entity_id}: its file is not in expected_files"
    for part in record.answer.expected_line_ranges:
        if part.file not in files:
            yield f"{part.file}:{part.start}-{part.end}: its file is not in expected_files"


def name_drops(record: CheckedRecord) -> Iterator[str]:
    """The narrative names nothing that is not expected."""
    entities = [entity.entity_id for entity in record.answer.expected_entities]
    allowed = NamesAllowed(entities, record.answer.expected_files, record.source)
    for token in names_not_expected(record.answer.canonical_narrative, allowed):
        yield f"the narrative names {token}, which is not expected"


def read(record: CheckedRecord) -> Iterator[str]:
    """Evidence and line ranges lie in what was shown; of every entity and file, something was."""
    shown = record.shown
    for part in (*lines_of(record.answer.source_evidence), *lines_of(record.answer.expected_line_ranges)):
        if not shown.holds(*part):
            yield f"{part[0]}:{part[1]}-{part[2]}: not all of it was read"
    for entity in record.answer.expected_entities:
        path = entity.entity_id.partition(ENTITY_MARK)[0]
        ranges = record.source.ranges(entity.entity_id)
        if ranges and not any(shown.shared(path, *lines) for lines in ranges):
            yield f"{entity.entity_id}: nothing of it was read"
    for path in record.answer.expected_files:
        if path not in shown.paths():
            yield f"{path}: nothing of it was read"


def citations(record: CheckedRecord) -> Iterator[str]:
    """Every fact that must be mentioned cites lines; cited lines exist, and lie in the evidence."""
    for fact in record.answer.must_mention_facts:
        if not fact.citations:
            yield f"no citation of the fact {fact.fact!r}"
    cited = [part for fact in record.facts for part in fact.citations]
    yield from _ranges_of(cited, record.source)
    has_evidence = record.reads is not None or record.answer.source_evidence  # without, the check of evidence says so
    for part in lines_of(cited) if has_evidence else ():
        if not record.evidence.holds(*part):
            yield f"{part[0]}:{part[1]}-{part[2]}: cited, and not in the evidence"


def facts(record: CheckedRecord) -> Iterator[str]:
    """As many as the rules want, each once."""
    answer = record.answer
    counts = {
        "facts that an answer must mention": (len(answer.must_mention_facts), MUST_MENTION),
        "facts that an answer must not mention": (len(answer.must_not_mention_facts), MUST_NOT_MENTION),
    }
    for noun, (count, bound) in counts.items():
        if count not in bound:
            yield f"{count_noun(count, noun)} where there should be {bound}"
    texts = [" ".join(fact.fact.casefold().split()) for fact in record.facts]
    for text in dict.fromkeys(text for text in texts if texts.count(text) > 1):
        yield f"duplicate fact: {text!r}"


def narrative(record: CheckedRecord) -> Iterator[str]:
    """As long as the rules want."""
    words = len(record.answer.canonical_narrative.split())
    if words not in NARRATIVE_WORDS:
        yield f"a narrative of {count_noun(words, 'words')} where there should be {NARRATIVE_WORDS}"


def roles(record: CheckedRecord) -> Iterator[str]:
    """Known ones, one of them primary."""
    known = get_args(EntityRoleName)
    entities = record.answer.expected_entities
    for entity in entities:
        if entity.role not in known:
            yield f"{entity.entity_id}: unknown role {entity.role!r}; expected {', '.join(known)}"
    if entities and not any(entity.role == "primary" for entity in entities):
        yield "no entity is primary"
    ids = [entity.entity_id for entity in entities]
    for entity_id in dict.fromkeys(entity_id for entity_id in ids if ids.count(entity_id) > 1):
        yield f"{entity_id}: duplicate"


def difficulty(record: CheckedRecord) -> Iterator[str]:
    """The table of rules, and the words of hard queries."""
    candidate, answer = record.candidate, record.answer
    if (answer.task_type, answer.difficulty) != (candidate.task_type, candidate.difficulty):
        yield f"the answer is of {answer.task_type}, {answer.difficulty}; the query of another type or difficulty"
    yield from RULES[candidate.task_type, candidate.difficulty].problems(record.targets.extent)
    if candidate.difficulty == "hard":
        bound = record.bounds.hard_overlap
        if problem := record.targets.overlap_problem(candidate.query_text, bound, record.source):
            yield problem


def rationale(record: CheckedRecord) -> Iterator[str]:
    """What the design demands of the author besides."""
    candidate = record.candidate
    if candidate.difficulty != "easy" and not candidate.difficulty_rationale.strip():
        yield "no difficulty_rationale"
    if candidate.task_type == "general" and candidate.classifier_expectation is None:
        yield "no classifier_expectation"


def leak(record: CheckedRecord) -> Iterator[str]:
    """The query names nothing that is expected."""
    if problem := record.targets.leak_problem(record.candidate.query_text):
        yield problem


def grep_only(record: CheckedRecord) -> Iterator[str]:
    """No plain search answers it, unless it is easy."""
    if record.candidate.difficulty == "easy":
        return
    places = record.targets.places(record.source)
    terms = found_by_grep(record.candidate.query_text, places, record.source, record.bounds)
    if terms:
        yield grep_message(terms)


def scorer(record: CheckedRecord) -> Iterator[str]:
    """A broken label shows in the scorer: what it expects must score 1.0, and silence 0.0."""
    answer = record.answer
    entities = tuple(entity.entity_id for entity in answer.expected_entities)
    spans = tuple(Lines(*part) for part in lines_of(answer.expected_line_ranges))
    expected = ExpectedAnswer(entities, tuple(answer.expected_files), spans)
    for name, given, wanted in (
        ("gold", Answered("", entities, expected.files, spans), 1.0),
        ("empty", Answered(), 0.0),
    ):
        scored = score_structure(given, expected)
        if scored.score != wanted or scored.complete != (wanted == 1.0):
            yield f"the {name} answer scores {scored.score:g} where it should score {wanted:g}"


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
        entities,
        "every entity id resolves in a fresh parse",
        _no("entities", lambda record: record.answer.expected_entities or not record.targets.paths()),
    ),
    GateCheck.FILES: CheckSpec(files, "every expected file exists at the commit"),
    GateCheck.LINE_RANGES: CheckSpec(
        line_ranges,
        (
            "line ranges start at 1 or later, do not end before they start, are within their file, and overlap "
            "an expected entity"
        ),
        _no("line ranges", lambda record: record.answer.expected_line_ranges),
    ),
    GateCheck.EVIDENCE: CheckSpec(
        evidence,
        "there is evidence, and its lines exist",
        _no("evidence", lambda record: record.answer.source_evidence),
    ),
    GateCheck.FILES_OF_PLACES: CheckSpec(files_of_places, "the file of every entity and line range is expected"),
    GateCheck.NAME_DROPS: CheckSpec(
        name_drops,
        "the narrative names no entity and no file that is not expected",
        _no("narrative", lambda record: record.answer.canonical_narrative.strip()),
    ),
    GateCheck.READ: CheckSpec(
        read,
        "the agent read the evidence and the line ranges, and a part of every entity and file",
        _no("log of what was read", lambda record: record.reads is not None),
    ),
    GateCheck.CITATIONS: CheckSpec(
        citations,
        "every fact that must be mentioned cites lines, and cited lines are in the evidence",
        _no("facts with citations", lambda record: any(fact.citations for fact in record.facts)),
    ),
    GateCheck.FACTS: CheckSpec(
        facts,
        f"{MUST_MENTION} facts must be mentioned, {MUST_NOT_MENTION} must not; no duplicates",
        _no("facts", lambda record: record.facts),
    ),
    GateCheck.NARRATIVE: CheckSpec(
        narrative,
        f"the narrative has {NARRATIVE_WORDS} words",
        _no("narrative", lambda record: record.answer.canonical_narrative.strip()),
    ),
    GateCheck.ROLES: CheckSpec(
        roles,
        "roles are known, at least one entity is primary, no duplicates",
        _no("roles", lambda record: any(entity.role for entity in record.answer.expected_entities)),
    ),
    GateCheck.DIFFICULTY: CheckSpec(
        difficulty,
        "the expected items match the rule of their type and difficulty",
    ),
    GateCheck.RATIONALE: CheckSpec(
        rationale,
        "medium and hard queries have a difficulty_rationale, general ones a classifier_expectation",
        _no("rationale or expectation", lambda record: not list(rationale(record))),
    ),
    GateCheck.LEAK: CheckSpec(leak, "the query does not name the expected items"),
    GateCheck.GREP_ONLY: CheckSpec(grep_only, "queries answered by a plain text search are easy"),
    GateCheck.SCORER: CheckSpec(scorer, "the expected answer scores 1, an empty one 0"),
}
"""Every check, in the order of reports."""
