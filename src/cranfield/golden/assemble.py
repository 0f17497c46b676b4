"""Assembling a golden set: the criteria that decide whether it may be called golden, its version, and its records.

Everything here is a function of what the steps and the people left in a run folder. Nothing is called golden that does not
meet every criterion; each is reported with what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from cranfield.errors import UsageError
from cranfield.formats.io.versions import FileVersion
from cranfield.golden.batch_drift import BatchDrift, BatchVerdict
from cranfield.golden.records import (
    SCHEMA_VERSION,
    AdversaryReport,
    CitedFact,
    HumanReview,
    OracleAnswer,
    QueryCandidate,
    Stamp,
)
from cranfield.golden.review import Cell, ReviewOutcome, ReviewReport
from cranfield.model.vocabulary import TASK_TYPE
from cranfield.words import first_of, n_of

MOST_ATTRITION = Fraction(7, 100)
"""Of the planned records that are missing; less than this, not equal."""
LEAST_FILLED = Fraction(4, 5)
"""Of each cell."""


class Criterion(StrEnum):
    """What must hold before a set is called golden."""

    ATTRITION = "attrition"
    CELLS = "cells"
    REVIEW = "review"
    SECOND_REVIEWER = "second_reviewer"
    HARNESS = "harness"
    BASELINE = "baseline"
    CALIBRATION = "calibration"
    SIMILAR = "similar"


CRITERIA: Mapping[Criterion, str] = {
    Criterion.ATTRITION: "less than 7 % of the planned records are missing",
    Criterion.CELLS: "each cell has at least 80 % of its planned records",
    Criterion.REVIEW: "people have reviewed the batch, and no ceiling is reached",
    Criterion.SECOND_REVIEWER: "a second reviewer has confirmed each reviewed record",
    Criterion.HARNESS: "the set can be read, is valid, stands in the repository, and the runs can be evaluated on it",
    Criterion.BASELINE: "a baseline is committed",
    Criterion.CALIBRATION: "a calibration of the system's confidence is published",
    Criterion.SIMILAR: "the new records are distributed as those of the version before",
}
"""In the order in which they are reported. The last one is of sets that have a version before."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A criterion, and what was found."""

    criterion: Criterion
    is_met: bool
    found: str


@dataclass(frozen=True, slots=True)
class Record:
    """Everything that a run folder has of a record that enters the set."""

    candidate: QueryCandidate
    answer: OracleAnswer
    """With the edits of people."""
    report: AdversaryReport | None = None
    review: HumanReview | None = None

    @property
    def cell(self) -> Cell:
        """Task type and difficulty."""
        return self.candidate.task_type, self.candidate.difficulty


def check_counts(planned: Mapping[Cell, int], kept: Mapping[Cell, int]) -> tuple[Checked, Checked]:
    """Attrition and cells.

    Args:
        planned: records of each cell, by the plan of the batch.
        kept: records that enter the set.
    """
    n, n_kept = sum(planned.values()), sum(min(kept.get(cell, 0), wanted) for cell, wanted in planned.items())
    share = Fraction(n - n_kept, n) if n else Fraction(1)
    text = f"{n - n_kept} of {n} planned records are missing ({float(share):.1%})"
    short = {cell: (kept.get(cell, 0), wanted) for cell, wanted in planned.items()}
    low = [
        f"{cell[0]} {cell[1]} has {has} of {wanted}"
        for cell, (has, wanted) in short.items()
        if wanted and Fraction(has, wanted) < LEAST_FILLED
    ]
    return (
        Checked(Criterion.ATTRITION, share < MOST_ATTRITION, text),
        Checked(Criterion.CELLS, not low, "; ".join(low) or f"all {len(planned)} are filled"),
    )


def check_review(report: ReviewReport | None) -> tuple[Checked, Checked]:
    """The ceilings, and the second reviewer."""
    if report is None:
        unseen = "no person has reviewed the batch"
        return Checked(Criterion.REVIEW, False, unseen), Checked(Criterion.SECOND_REVIEWER, False, unseen)
    tally = report.tally
    counts = f"{tally.n} sampled: {tally.serious} serious, {tally.minor} minor, {tally.wrong_on_easy} wrong on easy"
    if report.breached:
        counts += f"; reached: {', '.join(each.replace('_', ' ') for each in report.breached)}"
    if report.unreviewed:
        counts += f"; not reviewed: {first_of(report.unreviewed)}"
    is_passed = not report.breached and not report.unreviewed and report.outcome is not ReviewOutcome.BREACHED
    confirmed = f"not confirmed: {first_of(report.unconfirmed)}" if report.unconfirmed else "each record is confirmed"
    return (
        Checked(Criterion.REVIEW, is_passed, counts),
        Checked(Criterion.SECOND_REVIEWER, is_passed and not report.unconfirmed, confirmed),
    )


def check_similar(drift: BatchDrift) -> Checked:
    """The batch against the version before."""
    if drift.verdict is BatchVerdict.UNTESTED:
        why = next((each.result.note for each in drift.metrics if each.result.note), "")
        return Checked(Criterion.SIMILAR, True, f"not tested: {why}")
    if drift.verdict is BatchVerdict.SIMILAR:
        tested = sum(each.result.p_two_sided is not None for each in drift.metrics)
        return Checked(Criterion.SIMILAR, True, f"no significant difference in {n_of(tested, 'metrics')}")
    names = ", ".join(each.name for each in drift.differing)
    return Checked(Criterion.SIMILAR, False, f"differs in {names}: back to the authors")


def golden_record(record: Record, run: str, carried: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A record as the file of a golden set has it.

    Args:
        record: what the run folder has of it.
        run: name of the folder.
        carried: provenance and other keys that it had in an existing set.
    """
    candidate, answer, extra = record.candidate, record.answer, carried or {}
    found: dict[str, Any] = {
        "query_id": candidate.query_id,
        "query_text": candidate.query_text,
        TASK_TYPE: candidate.task_type,
        "difficulty": candidate.difficulty,
        "difficulty_rationale": candidate.difficulty_rationale,
        "classifier_expectation": candidate.classifier_expectation,
        "expected_entities": [_filled(entity.model_dump()) for entity in answer.expected_entities],
        "expected_files": answer.expected_files,
        "expected_line_ranges": [lines.model_dump() for lines in answer.expected_line_ranges],
        "must_mention_facts": list(map(_fact, answer.must_mention_facts)),
        "must_not_mention_facts": list(map(_fact, answer.must_not_mention_facts)),
        "canonical_narrative": answer.canonical_narrative,
        "source_evidence": [lines.model_dump() for lines in answer.source_evidence],
        "confidence": answer.confidence,
        "uncertainty_notes": answer.uncertainty_notes,
        "baseline_answerable": answer.baseline_answerable,
        "provenance": _provenance(record, run, extra.get("provenance")),
        "schema_version": SCHEMA_VERSION,
    }
    if candidate.target_spans and not answer.expected_entities:
        found["expected_targets"] = [span.model_dump() for span in candidate.target_spans]
    facts = {key: found[key] for key in ("must_mention_facts", "must_not_mention_facts")}
    return {
        **_filled(found),
        **facts,
        **{key: value for key, value in extra.get("more", {}).items() if key not in found},
    }


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}


def _fact(fact: CitedFact) -> Any:
    return fact.model_dump() if fact.citations else fact.fact


def _provenance(record: Record, run: str, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Who and what made and reviewed a record."""
    review, report = record.review, record.report
    steps: dict[str, Stamp] = {"author": record.candidate, "oracle": record.answer}
    if report is not None:
        steps["adversary"] = report
    return _filled(
        {
            "query_author": record.candidate.authored_by,
            "oracle": record.answer.authored_by,
            "adversary": report.reviewed_by if report is not None else "",
            "human_reviewed": review is not None,
            "human_reviewer": ", ".join(review.reviewers) if review is not None else "",
            "verdict": review.verdict if review is not None else "",
            "edits": [edit.model_dump(mode="json") for edit in review.edits] if review is not None else [],
            "reviewed_at": review.reviewed_at if review is not None else "",
            "run": run,
            "commit": record.answer.commit,
            "models": _filled({name: step.model for name, step in steps.items()}),
            "prompts": {name: step.prompt.model_dump() for name, step in steps.items() if step.prompt is not None},
            "tool_versions": record.answer.tool_versions,
            "cost": {name: step.cost.model_dump() for name, step in steps.items() if step.cost is not None},
            "imported_from": record.answer.imported_from,
            "before_import": dict(before or {}),
        }
    )


@dataclass(frozen=True, slots=True)
class Merged:
    """The records of a version, and what it changes."""

    records: tuple[Mapping[str, Any], ...]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    renamed: Mapping[str, str]
    """Id in the run to id in the set, of records whose id another query has."""


def merge_records(old: Sequence[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]) -> Merged:
    """New records after the old ones. A record with the id and the text of an old one takes its place.

    An id that another query of the set has is not used again: the record is renamed.
    """
    by_id = {str(record["query_id"]): record for record in old}
    added, changed, renamed = [], [], {}
    for each in new:
        record, query_id = each, str(each["query_id"])
        before = by_id.get(query_id)
        if before is not None and before["query_text"] != record["query_text"]:
            renamed[query_id] = query_id = _free_id(query_id, by_id)
            before, record = None, {**record, "query_id": query_id}
        if before is None:
            added.append(query_id)
        elif before != record:
            changed.append(query_id)
        by_id[query_id] = record
    return Merged(tuple(by_id.values()), tuple(added), tuple(changed), renamed)


def _free_id(query_id: str, taken: Mapping[str, object]) -> str:
    """`q_00042` becomes `q_00042-2`."""
    number = 2
    while f"{query_id}-{number}" in taken:
        number += 1
    return f"{query_id}-{number}"


def next_version(previous: FileVersion | None, old: Sequence[Mapping[str, Any]], merged: Merged) -> FileVersion:
    """The version of a set: 1.0; another major one where the schema is another, another minor one where records are.

    Args:
        previous: version before; None: there is none.
        old: its records.
        merged: the new ones.

    Raises:
        UsageError: nothing is changed.
    """
    if previous is None:
        return FileVersion(1, 0)
    schemas = {str(record.get("schema_version", SCHEMA_VERSION)).partition(".")[0] for record in old}
    if schemas - {SCHEMA_VERSION.partition(".")[0]}:
        return FileVersion(previous.major + 1, 0)
    if not merged.added and not merged.changed:
        raise UsageError(f"nothing is added to version {previous}, and nothing is changed")
    return FileVersion(previous.major, previous.minor + 1)
