"""Assembling a golden set: the criteria that decide whether it may be called golden, its version, and its records.

Everything here is a function of what the steps and the people left in a run folder. Nothing is called golden that does not
meet every criterion; each is reported with what was found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

from cranfield.base.errors import UsageError
from cranfield.base.words import count_noun, join_first
from cranfield.formats.io.delimited import FileVersion
from cranfield.golden.batch import BatchDrift, BatchVerdict
from cranfield.golden.records import (
    SCHEMA_VERSION,
    AdversaryReport,
    CitedFact,
    HumanReview,
    OracleAnswer,
    QueryCandidate,
    Stamp,
)
from cranfield.golden.review import CEILINGS, HOURS, NOT_SHOWN, Cell, ReviewProfile, ReviewReport
from cranfield.model import results
from cranfield.model.results import TestSetRecord
from cranfield.model.vocabulary import TASK_TYPE

MAX_ATTRITION = Fraction(7, 100)
"""Limit on the share of planned records that are missing; less than this, not equal."""
LEAST_FILLED = Fraction(4, 5)
"""Smallest share of each cell that must be filled."""


class Criterion(StrEnum):
    """What must hold before a set is called golden."""

    ATTRITION = "attrition"
    CELLS = "cells"
    REVIEW = "review"
    SECOND_LOOK = "second_look"
    HARNESS = "harness"
    BASELINE = "baseline"
    CALIBRATION = "calibration"
    SIMILAR = "similar"


CRITERIA: Mapping[Criterion, str] = {
    Criterion.ATTRITION: "less than 7 % of the planned records are missing",
    Criterion.CELLS: "each cell has at least 80 % of its planned records",
    Criterion.REVIEW: "every record of the sample and every mandatory record is reviewed, and no ceiling is reached",
    Criterion.SECOND_LOOK: "two people independently decided on each reviewed record",
    Criterion.HARNESS: "the set can be read, is valid, is in the repository, and the runs can be evaluated on it",
    Criterion.BASELINE: "a baseline is committed",
    Criterion.CALIBRATION: "a calibration of the system's confidence is published",
    Criterion.SIMILAR: "no metric of the new records differs significantly from the previous version",
}
"""In the order in which they are reported. The last one is of sets that have a version before."""
OF_ONE_PERSON = f"one person decided on each reviewed record twice, at least {HOURS} apart, {NOT_SHOWN}"
"""What the second look is of a profile of one person."""


class CriterionResult(StrEnum):
    """Whether a criterion is met."""

    MET = "met"
    NOT_MET = "not met"
    NOT_TESTED = "not tested"
    """Nothing is known against it, and nothing for it: the set may be golden, and the report says so."""


@dataclass(frozen=True, slots=True)
class CheckedCriterion:
    """A criterion, and what was found."""

    criterion: Criterion
    result: CriterionResult
    found: str
    step: str = ""
    """What to do where it is not met."""
    demands: str = ""
    """What must hold: that of `CRITERIA`, unless another one is given."""

    def __post_init__(self) -> None:
        """The demand of the criterion, where none is given."""
        object.__setattr__(self, "demands", self.demands or CRITERIA[self.criterion])

    @property
    def is_met(self) -> bool:
        """Whether it was tested, and holds."""
        return self.result is CriterionResult.MET


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyResult(results.Record):
    """The criteria of a version."""

    testset: TestSetRecord
    is_golden: bool
    """Whether no criterion is unmet."""
    is_draft: bool
    """Whether it is written where it is not golden."""
    criteria: tuple[CheckedCriterion, ...]
    written: tuple[Path, ...]


def checked(criterion: Criterion, found: str, step: str = "", *, is_met: bool, demand: str = "") -> CheckedCriterion:
    """A criterion that was tested; the step is dropped where it is met."""
    return CheckedCriterion(
        criterion, CriterionResult.MET if is_met else CriterionResult.NOT_MET, found, "" if is_met else step, demand
    )


@dataclass(frozen=True, slots=True)
class AssembledRecord:
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


def check_counts(
    planned: Mapping[Cell, int], kept: Mapping[Cell, int], step: str = ""
) -> tuple[CheckedCriterion, CheckedCriterion]:
    """Attrition and cells.

    Args:
        planned: records of each cell, by the plan of the batch.
        kept: records that enter the set.
        step: what to do where too many are missing.
    """
    n, n_kept = sum(planned.values()), sum(min(kept.get(cell, 0), wanted) for cell, wanted in planned.items())
    most = max(ceil(MAX_ATTRITION * n) - 1, 0)
    text = (
        f"{n - n_kept} of {count_noun(n, 'planned records')} {'is' if n == 1 else 'are'} missing; at most {most} may be"
    )
    few = [
        f"{task_type} {difficulty} has {has} of {wanted} records; at least {ceil(LEAST_FILLED * wanted)} required"
        for (task_type, difficulty), wanted in planned.items()
        if (has := kept.get((task_type, difficulty), 0)) < LEAST_FILLED * wanted
    ]
    n_full = sum(kept.get(cell, 0) >= wanted for cell, wanted in planned.items())
    cells = count_noun(len(planned), "cells")
    enough = f"{n_full} of {cells} full" + ("" if n_full == len(planned) else "; the others have at least 80 %")
    return (
        checked(Criterion.ATTRITION, text, step, is_met=n - n_kept < MAX_ATTRITION * n),
        checked(Criterion.CELLS, f"{len(few)} of {cells}: {'; '.join(few)}" if few else enough, step, is_met=not few),
    )


def check_review(
    report: ReviewReport | None, profile: ReviewProfile, step: str = ""
) -> tuple[CheckedCriterion, CheckedCriterion]:
    """The ceilings, and the second look; each by its own, so that what is confirmed is called confirmed.

    Args:
        report: what people found; None: no record was given to them.
        profile: of the review.
        step: what to do next.
    """
    demand = OF_ONE_PERSON if profile.people == 1 else ""
    if report is None:
        unseen = "no record was given to reviewers"
        return (
            checked(Criterion.REVIEW, unseen, step, is_met=False),
            checked(Criterion.SECOND_LOOK, unseen, step, is_met=False, demand=demand),
        )
    found = report.counts
    if report.breached:
        found = f"ceiling reached: {', '.join(CEILINGS[each] for each in report.breached)}; {found}"
    if report.unreviewed:
        n = len(report.unreviewed) + report.n_reviewed
        found += f"; {len(report.unreviewed)} of {n} {report.rules.lacking}: {join_first(report.unreviewed)}"
    confirmed = f"all {count_noun(report.n_reviewed, 'reviewed records')} confirmed; {report.agreement}"
    return (
        checked(Criterion.REVIEW, found, step, is_met=not report.breached and not report.unreviewed),
        checked(
            Criterion.SECOND_LOOK,
            report.missing or confirmed,
            step,
            is_met=not report.missing,
            demand=demand,
        ),
    )


def check_similar(drift: BatchDrift, step: str = "") -> CheckedCriterion:
    """The batch against the version before."""
    tested = sum(each.result.p_two_sided is not None for each in drift.metrics)
    if drift.verdict is BatchVerdict.UNTESTED:
        why = next((each.result.note for each in drift.metrics if each.result.note), "")
        return CheckedCriterion(Criterion.SIMILAR, CriterionResult.NOT_TESTED, f"no metric could be tested: {why}")
    if drift.verdict is BatchVerdict.SIMILAR:
        found = f"none of {count_noun(tested, 'metrics')} differs significantly; this does not prove that none differs"
        return checked(Criterion.SIMILAR, found, is_met=True)
    names = ", ".join(drift.differing)
    found = f"{len(drift.differing)} of {count_noun(tested, 'metrics')} differ: {names}"
    return checked(Criterion.SIMILAR, found, step, is_met=False)


def golden_record(record: AssembledRecord, run: str, carried: Mapping[str, Any] | None = None) -> dict[str, Any]:
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


def _provenance(record: AssembledRecord, run: str, before: Mapping[str, Any] | None) -> dict[str, Any]:
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
            number = 2
            while f"{query_id}-{number}" in by_id:
                number += 1
            renamed[query_id] = query_id = f"{query_id}-{number}"
            before, record = None, {**record, "query_id": query_id}
        if before is None:
            added.append(query_id)
        elif before != record:
            changed.append(query_id)
        by_id[query_id] = record
    return Merged(tuple(by_id.values()), tuple(added), tuple(changed), renamed)


def next_version(previous: FileVersion | None, merged: Merged) -> FileVersion:
    """The version of a set: 1.0, then the next minor one.

    Args:
        previous: version before; None: there is none.
        merged: the records of this one.

    Raises:
        UsageError: nothing is changed.
    """
    if previous is None:
        return FileVersion(1, 0)
    if not merged.added and not merged.changed:
        raise UsageError(f"no changes to version {previous}")
    return FileVersion(previous.major, previous.minor + 1)
