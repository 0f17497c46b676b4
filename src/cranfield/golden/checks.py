"""What each check of the gate finds wrong with a record. The table that names them is in `gate`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from cranfield.agents.answers.rows import Answered, ExpectedAnswer
from cranfield.agents.answers.structure import score_structure
from cranfield.agents.loop import Read
from cranfield.base.words import count_noun
from cranfield.golden.index import found_by_grep
from cranfield.golden.narrative import NamesAllowed, names_not_expected
from cranfield.golden.parsed import LineCoverage, ParsedSource
from cranfield.golden.records import CitedFact, CitedLines, EntityRoleName, OracleAnswer, QueryCandidate
from cranfield.golden.rules import MUST_MENTION, MUST_NOT_MENTION, NARRATIVE_WORDS, RULES, Bounds
from cranfield.golden.screen import grep_message
from cranfield.golden.targets import Targets, lines_of, of_answer
from cranfield.model.judging import Lines
from cranfield.ranking.matching.place import ENTITY_MARK


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
