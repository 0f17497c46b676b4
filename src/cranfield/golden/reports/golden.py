"""Runs and gates of golden sets, as Documents."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from cranfield.base.words import count_noun
from cranfield.model.results import to_jsonable
from cranfield.reporting.document import Document, KeyValues, Section, Table
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec, by_place

if TYPE_CHECKING:
    from cranfield.golden.existing import SetGate
    from cranfield.golden.index import RecordStatus
    from cranfield.golden.outcomes import AgreementRecord
    from cranfield.golden.run import RunStatus

RECORDS_SHOWN = 200


def run_document(status: RunStatus) -> Document:
    """Where the records of a run stand."""
    from cranfield.golden.states import ENTERS_AT, SKIPPED, STATES

    manifest, n = status.run, len(status.records)
    n_ended = sum(status.states[state] for state, info in STATES.items() if info.is_end)
    records: TableSpec[RecordStatus] = TableSpec(
        "Records",
        status.records,
        (
            Col("record", lambda each: each.query_id, "code"),
            Col("task type", lambda each: each.task_type, key="task_type"),
            Col("difficulty", lambda each: each.difficulty),
            Col("state", lambda each: each.state.value),
            Col("attempt", lambda each: each.attempt, "count"),
            Col("reasons", lambda each: each.reason),
        ),
    )
    where = "" if manifest.source == "plan" else ", if asked"
    planned = status.planned or 0
    about = (
        ("drafts", f"{n} in, {n_ended} ended, {n - n_ended} under way"),
        *([("not written yet", f"{planned - n} of {count_noun(planned, 'drafts')}")] if planned > n else ()),
        ("source", manifest.source),
        *((("steps that did not run", SKIPPED[manifest.more[ENTERS_AT]]),) if ENTERS_AT in manifest.more else ()),
        ("commit", manifest.commit or "none"),
        *((f"model of {role}{where}", model) for role, model in manifest.models.items()),
        ("files not sent", str(len(manifest.withheld))),
    )
    return Document(
        title=f"Run {manifest.name}",
        subtitle=(*filter(None, [status.uncommitted]), f"made at {manifest.created_at}", *manifest.tree.notes),
        sections=(
            Section("run", "Run", (KeyValues(about), _states(status))),
            Section("records", "Records", (records.table(shown=RECORDS_SHOWN),)),
            *_differences(status),
        ),
        tidy=records.tidy,
        payload=lambda: to_jsonable(status),
    )


def _differences(status: RunStatus) -> Sequence[Section]:
    """Records in which the adversary names other entities or files than the oracle; no section where there are none."""
    agreements = [each.agreement for each in status.records if each.agreement is not None]
    rows = [each for each in agreements if min(each.jaccard_entities, each.jaccard_files) < 1]
    columns: Columns[AgreementRecord] = (
        Col("record", lambda each: each.query_id, "code"),
        Col("entities", lambda each: each.jaccard_entities, "statistic"),
        Col("files", lambda each: each.jaccard_files, "statistic"),
        Col(
            "missing: the adversary adds", lambda each: ", ".join((*each.missing_entities, *each.missing_files)), "code"
        ),
    )
    title = "Jaccard index of the items named by oracle and adversary, if below 1"
    table = TableSpec(title, rows, columns).table(shown=RECORDS_SHOWN, wrap=True)
    return [Section("agreement", "Oracle and adversary", (table,))] if rows else []


def _states(status: RunStatus) -> Table:
    from cranfield.golden.states import STATES

    return TableSpec(
        "States",
        [state for state, n in status.states.items() if n],
        (
            Col("state", lambda state: state.value, "code"),
            Col("records", lambda state: status.states[state], "count"),
            Col("end", lambda state: "yes" if STATES[state].is_end else "no"),
            Col("meaning", lambda state: STATES[state].sentence),
        ),
    ).table(footer=("all", len(status.records), "", ""))


def gate_document(found: SetGate) -> Document:
    """What the mechanical gate finds of the records of a set."""
    from cranfield.golden.gate import CHECKS, CheckStatus, GateCheck

    columns: Columns[GateCheck] = (
        Col("check", lambda check: check.value, "code"),
        Cols(CheckStatus, lambda check, status: found.checks[check][status], "count", attrgetter("value")),
        Col("demands", lambda check: CHECKS[check].what),
    )
    checks = TableSpec("Records by check", list(found.checks), columns)
    problems = TableSpec(
        "Failures",
        [
            (query_id, check.value, problem)
            for query_id, report in found.records.items()
            for check in report.failed
            for problem in report.checks[check].problems
        ],
        by_place({"record": "code", "check": "code", "problem": "text"}),
    )
    sections = [Section("checks", "Checks", (checks.table(),))]
    if problems.rows:
        sections.append(Section("failures", "Failures", (problems.table(shown=RECORDS_SHOWN, wrap=True),)))
    n = len(found.records)
    return Document(
        title=f"Gate of {found.testset.name}",
        subtitle=(
            *filter(None, [found.uncommitted]),
            f"{count_noun(n, 'records')} at {found.commit[:12] or 'no commit'}",
            f"{found.n_passed} passed, {n - found.n_passed} failed; missing data does not count as failed",
            *found.notes,
            *found.tree.notes,
        ),
        sections=tuple(sections),
        tidy=problems.tidy,
        payload=lambda: to_jsonable(found),
    )
