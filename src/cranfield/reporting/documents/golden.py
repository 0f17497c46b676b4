"""Plans, runs and gates of golden sets, as Documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cranfield.reporting.document import Cell, Column, Document, KeyValues, Paragraph, Section, Table, tidy_table
from cranfield.words import n_of

if TYPE_CHECKING:
    from cranfield.golden.gate import GateReport
    from cranfield.golden.index import RecordStatus
    from cranfield.golden.outcomes import RunManifest
    from cranfield.golden.plan import Plan
    from cranfield.golden.plan_check import Estimate
    from cranfield.golden.states import State

RECORDS_SHOWN = 200


def plan_document(plan: Plan, estimate: Estimate, commit: str) -> Document:
    """A plan that can be run: its cells, and what it takes."""
    headings = ("task type", "difficulty", "wanted", "written")
    rows: list[tuple[Cell, ...]] = [
        (cell.task_type, cell.difficulty, cell.n, plan.emitted(cell)) for cell in plan.cells
    ]
    cells = Table(
        (Column("task type"), Column("difficulty"), Column("wanted", "count"), Column("written", "count")),
        rows,
        f"Cells; candidates are written with a headroom of {plan.headroom:g}",
        footer=("all", "", plan.total, sum(plan.emitted(cell) for cell in plan.cells)),
        shown=None,
    )
    return Document(
        title=f"Plan {plan.name}",
        subtitle=(f"{n_of(plan.total, 'queries')}, at {commit[:12] or 'no commit'}", "The plan has no problem."),
        sections=(
            Section("cells", "Cells", (cells,)),
            Section("cost", "Estimated cost", _cost(estimate)),
        ),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: {
            "schema_version": 1,
            "plan": plan.name,
            "digest": plan.digest,
            "commit": commit,
            "cells": [dict(zip(headings, row, strict=True)) for row in rows],
            "tokens": estimate.tokens,
            "token_limit": estimate.token_limit,
            "money": estimate.money,
            "money_limit": estimate.money_limit,
            "roles": [_role(each) for each in estimate.roles],
        },
    )


def _cost(estimate: Estimate) -> tuple[Table | Paragraph, ...]:
    money = f"money ({estimate.currency})"
    columns = (
        *(Column(title) for title in ("role", "model")),
        *(Column(title, "count") for title in ("records", "tokens, typical", "tokens, at most")),
        *(Column(title, "count") for title in (f"{money}, typical", f"{money}, at most")),
    )
    rows: list[tuple[Cell, ...]] = [
        (each.role, each.model, each.records, each.tokens, each.token_limit, each.money, each.money_limit)
        for each in estimate.roles
    ]
    total = ("all", "", None, estimate.tokens, estimate.token_limit, estimate.money, estimate.money_limit)
    text = "At most: by the limits of the roles, and in all also by the budget. Empty: no limit, or no price."
    return (Table(columns, rows, "Before anything is asked", footer=total, shown=None), Paragraph(text))


def _role(each: Any) -> dict[str, Any]:
    names = ("role", "model", "records", "tokens", "token_limit", "money", "money_limit")
    return {name: getattr(each, name) for name in names}


def run_document(manifest: RunManifest, statuses: Sequence[RecordStatus], n_planned: int | None = None) -> Document:
    """Where the records of a run stand, of so many drafts that its plan wants."""
    from cranfield.golden.states import ENTERS_AT, SKIPPED, STATES

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
    return Document(
        title=f"Run {manifest.name}",
        subtitle=(f"made at {manifest.created_at}",),
        sections=(
            Section("run", "Run", (KeyValues(about), _states(counts))),
            Section("records", "Records", (Table(kinds, rows, "Records", shown=RECORDS_SHOWN),)),
        ),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: {
            "schema_version": 1,
            "run": manifest.model_dump(mode="json"),
            "planned": n_planned,
            "states": {state.value: counts[state] for state in STATES},
            "records": [_record(each) for each in statuses],
        },
    )


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


def _record(each: RecordStatus) -> dict[str, Any]:
    return {
        "query_id": each.query_id,
        "task_type": each.task_type,
        "difficulty": each.difficulty,
        "state": each.state.value,
        "attempt": each.attempt,
        "reasons": [reason.model_dump() for reason in each.reasons],
    }


def gate_document(name: str, commit: str, reports: Mapping[str, GateReport], notes: Sequence[str]) -> Document:
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
        failures = Table(columns, rows, "Failures", shown=RECORDS_SHOWN)
        sections.append(Section("failures", "Failures", (failures,)))
    return Document(
        title=f"Gate of {name}",
        subtitle=(
            f"{n_of(len(reports), 'records')} at {commit[:12] or 'no commit'}",
            f"{n_passed} passed, {len(reports) - n_passed} failed; what is missing is not failed",
            *notes,
        ),
        sections=tuple(sections),
        tidy=lambda: tidy_table(headings, rows),
        payload=lambda: {
            "schema_version": 1,
            "testset": name,
            "commit": commit,
            "notes": list(notes),
            "checks": {check.value: {each.value: found[each] for each in Status} for check, found in counts.items()},
            "records": {
                query_id: {"passed": report.passed, "checks": report.record()} for query_id, report in reports.items()
            },
        },
    )
