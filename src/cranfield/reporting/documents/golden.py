"""Runs and gates of golden sets, as Documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cranfield.reporting.document import Cell, Column, Document, KeyValues, Section, Table, tidy_table
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.golden.gate import GateReport
    from cranfield.golden.index import RecordStatus, RunIndex
    from cranfield.golden.outcomes import AgreementRecord, ReadSource
    from cranfield.golden.states import State

RECORDS_SHOWN = 200


def run_document(index: RunIndex, n_planned: int | None = None) -> Document:
    """Where the records of a run stand, of so many drafts that its plan wants."""
    from cranfield.golden.states import ENTERS_AT, SKIPPED, STATES

    manifest, statuses = index.folder.manifest, index.statuses()
    agreements = {
        each.query_id: found
        for each in statuses
        if (found := index.agreements.get(each.query_id, each.attempt)) is not None
    }
    counts = Counter(each.state for each in statuses)
    n_ended = sum(counts[state] for state, info in STATES.items() if info.is_end)
    headings = ("record", "task type", "difficulty", "state", "attempt", "reasons")
    rows: list[tuple[Cell, ...]] = [
        (each.query_id, each.task_type, each.difficulty, each.state.value, each.attempt, each.reason)
        for each in statuses
    ]
    kinds = (Column("record", "code"), *map(Column, headings[1:4]), Column("attempt", "count"), Column("reasons"))
    where = "" if manifest.source == "plan" else ", if asked"
    unwritten = max((n_planned or 0) - len(statuses), 0)
    about = (
        ("drafts", f"{len(statuses)} in, {n_ended} ended, {len(statuses) - n_ended} under way"),
        *([("not written yet", f"{unwritten} of {n_of(n_planned or 0, 'drafts')}")] if unwritten else ()),
        ("source", manifest.source),
        *((("steps that did not run", SKIPPED[manifest.more[ENTERS_AT]]),) if ENTERS_AT in manifest.more else ()),
        ("commit", manifest.commit or "none"),
        *((f"model of {role}{where}", model) for role, model in manifest.models.items()),
        ("files not sent", str(len(manifest.withheld))),
    )
    tree = manifest.tree
    return Document(
        title=f"Run {manifest.name}",
        subtitle=(*filter(None, [tree.uncommitted]), f"made at {manifest.created_at}", *tree.notes),
        sections=(
            Section("run", "Run", (KeyValues(about), _states(counts))),
            Section("records", "Records", (Table(kinds, rows, "Records", shown=RECORDS_SHOWN),)),
            *_differences(agreements),
        ),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: {
            "schema_version": 1,
            "uncommitted": tree.uncommitted,
            "run": manifest.model_dump(mode="json"),
            "planned": n_planned,
            "states": {state.value: counts[state] for state in STATES},
            "records": [_record(each, agreements.get(each.query_id)) for each in statuses],
        },
    )


def _differences(agreements: Mapping[str, AgreementRecord]) -> list[Section]:
    """Records in which the adversary names other entities or files than the oracle; no section where there are none."""
    rows: list[tuple[Cell, ...]] = [
        (query_id, each.jaccard_entities, each.jaccard_files, ", ".join([*each.missing_entities, *each.missing_files]))
        for query_id, each in agreements.items()
        if min(each.jaccard_entities, each.jaccard_files) < 1
    ]
    if not rows:
        return []
    columns = (
        *(Column("record", "code"), Column("entities", "statistic"), Column("files", "statistic")),
        Column("missing: the adversary adds", "code"),
    )
    title = "Jaccard index of what oracle and adversary name, where it is under 1"
    table = Table(columns, rows, title, shown=RECORDS_SHOWN, wrap=True)
    return [Section("agreement", "Oracle and adversary", (table,))]


def _states(counts: Mapping[State, int]) -> Table:
    from cranfield.golden.states import STATES

    rows: list[tuple[Cell, ...]] = [
        (state.value, counts[state], "yes" if info.is_end else "no", info.sentence)
        for state, info in STATES.items()
        if counts[state]
    ]
    return Table(
        (Column("state", "code"), Column("records", "count"), Column("end"), Column("meaning")),
        rows,
        "States",
        footer=("all", sum(counts.values()), "", ""),
        shown=None,
    )


def _record(each: RecordStatus, agreement: AgreementRecord | None) -> dict[str, Any]:
    names = {"jaccard_entities", "jaccard_files", "missing_entities", "missing_files"}
    return {
        "query_id": each.query_id,
        "task_type": each.task_type,
        "difficulty": each.difficulty,
        "state": each.state.value,
        "attempt": each.attempt,
        "reasons": [reason.model_dump() for reason in each.reasons],
        "agreement": None if agreement is None else agreement.model_dump(mode="json", include=names),
    }


def gate_document(name: str, source: ReadSource, reports: Mapping[str, GateReport], notes: Sequence[str]) -> Document:
    """What the mechanical gate finds of the records of a set."""
    from cranfield.golden.gate import CHECKS, Status

    counts = {check: Counter(report.outcomes[check].status for report in reports.values()) for check in CHECKS}
    checks: list[tuple[Cell, ...]] = [
        (check.value, found[Status.PASSED], found[Status.FAILED], found[Status.MISSING], CHECKS[check].what)
        for check, found in counts.items()
    ]
    kinds = (Column("check", "code"), *(Column(each.value, "count") for each in Status), Column("demands"))
    headings = ("record", "check", "problem")
    rows: list[tuple[Cell, ...]] = [
        (query_id, check.value, problem)
        for query_id, report in reports.items()
        for check in report.failed
        for problem in report.outcomes[check].problems
    ]
    n_passed = sum(report.passed for report in reports.values())
    sections = [Section("checks", "Checks", (Table(kinds, checks, "Records by check", shown=None),))]
    if rows:
        columns = (Column("record", "code"), Column("check", "code"), Column("problem"))
        failures = Table(columns, rows, "Failures", shown=RECORDS_SHOWN, wrap=True)
        sections.append(Section("failures", "Failures", (failures,)))
    return Document(
        title=f"Gate of {name}",
        subtitle=(
            *filter(None, [source.tree.uncommitted]),
            f"{n_of(len(reports), 'records')} at {source.commit[:12] or 'no commit'}",
            f"{n_passed} passed, {len(reports) - n_passed} failed; what is missing is not failed",
            *notes,
            *source.tree.notes,
        ),
        sections=tuple(sections),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: {
            "schema_version": 1,
            "uncommitted": source.tree.uncommitted,
            **source.model_dump(mode="json"),
            "testset": name,
            "notes": list(notes),
            "checks": {check.value: {each.value: found[each] for each in Status} for check, found in counts.items()},
            "records": {
                query_id: {"passed": report.passed, "checks": report.record()} for query_id, report in reports.items()
            },
        },
    )
