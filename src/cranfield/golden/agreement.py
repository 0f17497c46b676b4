"""Whether an adversary's report agrees with an oracle's answer enough to commit the label.

Two conditions: the Jaccard index of entities and that of files is at least 0.8 (what the adversary calls missing is in the
union, and is named wherever the index is), and every vote of the judge of the narrative is `equivalent`. Besides, every claim needs
a verdict: silence is no consent. Nothing is averaged: what differs goes to people.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

from cranfield.agents.loop import Read
from cranfield.base.words import and_list
from cranfield.golden.parsed import LineCoverage
from cranfield.golden.records import (
    AdversaryReport,
    CitedLines,
    ClaimReview,
    ClaimType,
    ClaimVerdict,
    NarrativeJudgment,
    OracleAnswer,
)
from cranfield.ranking.matching.place import plain_entity

LEAST_JACCARD = Fraction(4, 5)
STRUCTURAL: frozenset[ClaimType] = frozenset({"entity", "file", "line_range"})
CITED: frozenset[ClaimType] = frozenset({"entity", "must_mention_fact", "must_not_mention_fact"})
"""Claims whose verdict needs a citation. A file and a range name their place themselves: that was read."""

Claim = tuple[ClaimType, str]


class LabelOutcome(StrEnum):
    """What becomes of a label."""

    PASSED = "passed"
    QUEUED = "queued"
    """A person decides."""
    BLOCKED = "blocked"
    """It cannot be committed as it is; a person sends it back or drops it."""


class QueueReason(StrEnum):
    """Why a label does not pass."""

    UNSUPPORTED_STRUCTURE = "unsupported_structure"
    UNSUPPORTED_FACT = "unsupported_fact"
    PARTIAL = "partial"
    SILENT = "silent"
    """A claim has no verdict."""
    NO_CITATION = "no_citation"
    BAD_CITATION = "bad_citation"
    """The cited lines do not exist."""
    UNREAD_CITATION = "unread_citation"
    """No tool showed the cited lines to the adversary."""
    UNREAD_CLAIM = "unread_claim"
    """No tool showed the file, or all of the range, that the claim is about."""
    BLOCKING_ISSUE = "blocking_issue"
    OVERALL = "overall"
    """The overall verdict is worse than those of the claims."""
    JACCARD_ENTITIES = "jaccard_entities"
    JACCARD_FILES = "jaccard_files"
    NARRATIVE = "narrative"
    NOT_RATED = "not_rated"
    """No judge compared the narrative, and nothing else decides."""
    LOW_CONFIDENCE = "low_confidence"


BLOCKING = frozenset(
    {
        QueueReason.UNSUPPORTED_STRUCTURE,
        QueueReason.SILENT,
        QueueReason.NO_CITATION,
        QueueReason.BAD_CITATION,
        QueueReason.UNREAD_CITATION,
        QueueReason.UNREAD_CLAIM,
        QueueReason.BLOCKING_ISSUE,
    }
)
"""Reasons with which a label cannot be committed; with the others a person decides."""
_SEVERITY: Mapping[ClaimVerdict, int] = {"supported": 0, "partial": 1, "unsupported": 2}


@dataclass(frozen=True, slots=True)
class LabelDisagreement:
    """A reason, and what it is about."""

    kind: QueueReason
    message: str


@dataclass(frozen=True, slots=True)
class Overlap:
    """How far the answer and the adversary name the same entities, or the same files."""

    supported: tuple[str, ...]
    """Expected ones that the adversary supports."""
    unsupported: tuple[str, ...]
    missing: tuple[str, ...]
    """That the adversary adds."""

    @property
    def jaccard(self) -> Fraction:
        """Jaccard index of the expected items and those that the adversary supports or adds; 1 where there are none."""
        n = len(self.supported) + len(self.unsupported) + len(self.missing)
        return Fraction(len(self.supported), n) if n else Fraction(1)

    def low(self, what: str) -> str:
        """Why the index is too low: what the adversary adds, and what it does not support."""
        parts = [f"the adversary adds {and_list(self.missing)}"] if self.missing else []
        parts += [f"it does not support {and_list(self.unsupported)}"] if self.unsupported else []
        index = f"Jaccard index of {what} {float(self.jaccard):.3f}, at least {float(LEAST_JACCARD)} required"
        return f"{index}: {'; '.join(parts)}"


@dataclass(frozen=True, slots=True)
class LabelAgreement:
    """The outcome, with every reason against the label."""

    outcome: LabelOutcome
    disagreements: tuple[LabelDisagreement, ...]
    entities: Overlap
    files: Overlap

    @property
    def reasons(self) -> tuple[QueueReason, ...]:
        """Each kind once."""
        return tuple(dict.fromkeys(each.kind for each in self.disagreements))


@dataclass(frozen=True)
class ReviewedSource:
    """What citations are checked against."""

    n_lines: Callable[[str], int | None]
    """Lines of a file; None where it is not in the snapshot."""
    reads: Sequence[Read] | None = None
    """What the adversary's tools showed; None: not known."""

    @cached_property
    def shown(self) -> LineCoverage | None:
        """The union of that."""
        return None if self.reads is None else LineCoverage((read.path, read.start, read.end) for read in self.reads)


def claims_of(answer: OracleAnswer) -> list[Claim]:
    """Everything in an answer that needs a verdict."""
    return [
        *(("entity", each.entity_id) for each in answer.expected_entities),
        *(("file", file) for file in answer.expected_files),
        *(("line_range", f"{each.file}:{each.start}-{each.end}") for each in answer.expected_line_ranges),
        *(("must_mention_fact", each.fact) for each in answer.must_mention_facts),
        *(("must_not_mention_fact", each.fact) for each in answer.must_not_mention_facts),
    ]


def agree(
    answer: OracleAnswer,
    report: AdversaryReport,
    ratings: Sequence[NarrativeJudgment],
    source: ReviewedSource,
) -> LabelAgreement:
    """Compare an answer with the report about it.

    Args:
        answer: of the oracle.
        report: of the adversary.
        ratings: votes of the judge of the narrative; none where it was not called. Each must be `equivalent`.
        source: what citations are checked against.
    """
    structure = compare_structure(answer, report, source)
    found = [*structure.disagreements, *_narrative(answer, ratings)]
    if not ratings and needs_judge(answer, structure):
        found.append(LabelDisagreement(QueueReason.NOT_RATED, "no judge compared the narrative"))
    return LabelAgreement(_outcome(found), tuple(found), structure.entities, structure.files)


def compare_structure(answer: OracleAnswer, report: AdversaryReport, source: ReviewedSource) -> LabelAgreement:
    """Everything but the narrative, which is judged only where this finds nothing that blocks and no low index."""
    verdicts = _verdicts(report)
    ids = [each.entity_id for each in answer.expected_entities]
    entities = _overlap("entity", ids, report.missing_entities, verdicts)
    files = _overlap("file", answer.expected_files, report.missing_files, verdicts)
    found = [
        *(each for claim in dict.fromkeys(claims_of(answer)) for each in _of_claim(claim, verdicts, source)),
        *(LabelDisagreement(QueueReason.BLOCKING_ISSUE, issue) for issue in report.blocking_issues),
        *_overall(report),
    ]
    if entities.jaccard < LEAST_JACCARD:
        found.append(LabelDisagreement(QueueReason.JACCARD_ENTITIES, entities.low("entities")))
    if files.jaccard < LEAST_JACCARD:
        found.append(LabelDisagreement(QueueReason.JACCARD_FILES, files.low("files")))
    return LabelAgreement(_outcome(found), tuple(found), entities, files)


def needs_judge(answer: OracleAnswer, structure: LabelAgreement) -> bool:
    """Whether the narrative is worth a vote: a label that differs in structure does not pass whatever it says.

    An existing set may have none: it is missing, not different.
    """
    if not answer.canonical_narrative.strip():
        return False
    indexes = {QueueReason.JACCARD_ENTITIES, QueueReason.JACCARD_FILES}
    return structure.outcome is not LabelOutcome.BLOCKED and not indexes & set(structure.reasons)


def is_spot_checked(query_id: str, seed: int, share: Fraction) -> bool:
    """Whether a person checks the judge on this record: a sample that does not depend on the other records."""
    drawn = int.from_bytes(sha256(f"narrative judge:{seed}:{query_id}".encode()).digest()[:8])
    return drawn < share * 2**64


def _outcome(found: Sequence[LabelDisagreement]) -> LabelOutcome:
    if any(each.kind in BLOCKING for each in found):
        return LabelOutcome.BLOCKED
    return LabelOutcome.QUEUED if found else LabelOutcome.PASSED


def _verdicts(report: AdversaryReport) -> dict[Claim, list[ClaimReview]]:
    found: dict[Claim, list[ClaimReview]] = {}
    for review in report.claim_verdicts:
        found.setdefault(_key(review.claim_type, review.claim), []).append(review)
    return found


def _key(kind: ClaimType, text: str) -> Claim:
    """What a claim is about, whichever of its spellings an entity has."""
    return kind, plain_entity(text.strip()) if kind == "entity" else text.strip()


def _overlap(
    kind: ClaimType, expected: Sequence[str], missing: Sequence[str], verdicts: Mapping[Claim, Sequence[ClaimReview]]
) -> Overlap:
    wanted = dict.fromkeys(_key(kind, name) for name in expected)
    added = dict.fromkeys(_key(kind, name) for name in missing)
    supported = [claim for claim in wanted if _worst(verdicts.get(claim, ())) == "supported"]
    return Overlap(
        tuple(name for _, name in supported),
        tuple(name for kind, name in wanted if (kind, name) not in supported),
        tuple(name for kind, name in added if (kind, name) not in wanted),
    )


def _worst(reviews: Sequence[ClaimReview]) -> ClaimVerdict | None:
    return max((each.verdict for each in reviews), key=_SEVERITY.__getitem__, default=None)


def _of_claim(
    claim: Claim, verdicts: Mapping[Claim, Sequence[ClaimReview]], source: ReviewedSource
) -> Iterator[LabelDisagreement]:
    kind, text = claim
    name = f"{kind} {text}"
    reviews = verdicts.get(_key(kind, text), ())
    worst = _worst(reviews)
    if worst is None:
        yield LabelDisagreement(QueueReason.SILENT, f"{name}: no verdict")
        return
    notes = "; ".join(each.note for each in reviews if each.note)
    because = f": {notes}" if notes else ""
    if worst == "unsupported":
        is_structural = kind in STRUCTURAL
        reason = QueueReason.UNSUPPORTED_STRUCTURE if is_structural else QueueReason.UNSUPPORTED_FACT
        yield LabelDisagreement(reason, f"{name}: unsupported{because}")
        return
    if worst == "partial":
        yield LabelDisagreement(QueueReason.PARTIAL, f"{name}: partially supported{because}")
    citations = [each.citation for each in reviews if each.citation is not None]
    if not citations and kind in CITED:
        yield LabelDisagreement(QueueReason.NO_CITATION, f"{name}: {worst}, without a citation")
    if source.shown is not None and not _was_seen(claim, source.shown):
        yield LabelDisagreement(QueueReason.UNREAD_CLAIM, f"{name}: {worst}, but not read")
    for citation in citations:
        yield from _of_citation(name, citation, source)


def _of_citation(name: str, citation: CitedLines, source: ReviewedSource) -> Iterator[LabelDisagreement]:
    place = f"{citation.file}:{citation.start}-{citation.end}"
    n_lines = source.n_lines(citation.file)
    if n_lines is None or citation.end > n_lines:
        got = "no such file" if n_lines is None else f"the file has {n_lines:,} lines"
        yield LabelDisagreement(QueueReason.BAD_CITATION, f"{name}: cites {place}: {got}")
    elif source.shown is not None and not source.shown.holds(citation.file, citation.start, citation.end):
        yield LabelDisagreement(QueueReason.UNREAD_CITATION, f"{name}: cites {place}, which was not read")


def _was_seen(claim: Claim, shown: LineCoverage) -> bool:
    """Whether something of a file, and all of a range, was shown. Other claims have a citation for that."""
    kind, text = claim
    if kind == "file":
        return text in shown.paths()
    if kind == "line_range":
        file, _, lines = text.rpartition(":")
        start, end = map(int, lines.split("-"))
        return shown.holds(file, start, end)
    return True


def _overall(report: AdversaryReport) -> Iterator[LabelDisagreement]:
    worst = _worst(report.claim_verdicts) or "supported"
    if _SEVERITY[report.overall_verdict] > _SEVERITY[worst]:
        text = f"the overall verdict is {report.overall_verdict}, but the worst verdict of a claim is {worst}"
        yield LabelDisagreement(QueueReason.OVERALL, text)


def _narrative(answer: OracleAnswer, ratings: Sequence[NarrativeJudgment]) -> Iterator[LabelDisagreement]:
    if answer.confidence == "low":
        notes = answer.uncertainty_notes or "no notes"
        yield LabelDisagreement(QueueReason.LOW_CONFIDENCE, f"the oracle has low confidence: {notes}")
    for each in ratings:
        if each.rating != "equivalent":
            because = f": {each.reason}" if each.reason else ""
            yield LabelDisagreement(QueueReason.NARRATIVE, f"narrative: {each.rating}{because}")
