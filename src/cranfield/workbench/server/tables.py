"""Lists of the workbench as tables: the same value is shown, sorted in the browser, and downloaded as CSV."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Response

from cranfield.base.words import count_noun
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.reporting.document import Cell, Document, Link, Section, Table, TonedCell, VerdictBlock
from cranfield.reporting.renderers.data import csv_text
from cranfield.reporting.renderers.html import render_blocks
from cranfield.reporting.table_spec import Col, Columns, TableSpec, interval
from cranfield.workbench.server.pages import segment, when
from cranfield.workbench.service.requests import BenefitRequest, CompareRequest, CompareResultsRequest, EvaluateRequest
from cranfield.workbench.service.responses import EvaluationState, JobKind
from cranfield.workbench.service.systems import variant_of
from cranfield.workbench.service.values import label_of

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo, JobInfo, SetInfo
    from cranfield.workbench.service.watch.scheduler import LastRun, WatchState

CI = "95 % CI"
STATES: Mapping[EvaluationState, TonedCell] = {
    EvaluationState.VOID: TonedCell(VerdictCode.INVALID.text, "void"),
    EvaluationState.WAITING: TonedCell("waiting for grades", "open"),
    EvaluationState.GRADED: TonedCell("graded in its book", ""),
    EvaluationState.NO_VALUE: TonedCell("no value", "open"),
    EvaluationState.VALID: TonedCell("valid", ""),
}
"""Words and tone of the state of an evaluation."""
MAX_CSV = 10_000
"""Rows of a list as CSV, the latest ones."""


def blocks(
    sections: Sequence[Section],
    verdict: VerdictBlock | None = None,
    *,
    most_rows: int | None = None,
    queries: tuple[str, str] | None = None,
) -> Markup:
    """A verdict and sections as the report shows them; the options are those of `render_blocks`."""
    document = Document("", (), tuple(sections), lambda: Table((), (), ""), dict, verdict=verdict)
    return render_blocks(document, most_rows=most_rows, queries=queries)


def listed(name: str, title: str, table: Table) -> Markup:
    """One table under a heading."""
    return blocks([Section(name, title, (table,))])


def list_caption(things: str, *, whole: bool) -> str:
    """Caption of a list, which says so where the table has a page of it alone."""
    part = "" if whole else ". Sorting and Filter apply to this page; As CSV includes all pages"
    return f"{things}, the latest first{part}"


def csv_response(table: Table, name: str) -> Response:
    """A table as a file."""
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{segment(name)}.csv"}
    return Response(csv_text(table), media_type="text/csv; charset=utf-8", headers=headers)


def testset_table(infos: Sequence[SetInfo]) -> Table:
    """Test sets by name."""
    columns: Columns[SetInfo] = (
        Col("test set", lambda info: Link(info.name, f"testsets/{info.name}")),
        Col("version", lambda info: info.version),
        Col("queries", lambda info: info.n_queries, "count"),
        Col("judgments", lambda info: info.n_judgments, "count"),
        Col("from", lambda info: info.source.value),
        Col("stored (UTC)", lambda info: _time(info.created_at)),
        Col("by", lambda info: info.account),
    )
    return TableSpec("Test sets, the latest version of each", infos, columns).table()


def evaluation_table(infos: Sequence[EvaluationInfo], caption: str, root: str = "") -> Table:
    """Evaluations, each with its primary measure.

    Args:
        infos: what is listed.
        caption: of the table.
        root: how the page leads to `/`: empty at its top, `../` one level down.
    """

    def marks(info: EvaluationInfo) -> str:
        own = {"baseline": info.pinned, "pilot": info.pilot}
        return ", ".join((*(mark for mark, holds in own.items() if holds), *info.tags))

    columns: Columns[EvaluationInfo] = (
        Col("evaluation", lambda info: Link(side_label(info), f"{root}evaluations/{info.id}")),
        Col("state", state_cell),
        Col("test set", lambda info: Link(info.testset_name, f"{root}testsets/{info.testset_name}")),
        Col("time (UTC)", lambda info: _time(info.at)),
        Col("measure", lambda info: None if info.primary is None else str(info.primary)),
        Col("mean", lambda info: info.summary.mean if info.summary else None, "value"),
        Col(CI, lambda info: interval(info.summary) if info.summary else None, "interval"),
        Col("n", lambda info: info.summary.n if info.summary else None, "count"),
        Col("judged", lambda info: info.scores.judged.mean, "percent"),
        Col("failed", lambda info: info.n_failed, "count"),
        Col("marks", marks),
    )
    return TableSpec(caption, infos, columns).table()


def state_cell(info: EvaluationInfo) -> TonedCell:
    """Whether the figures count, and where they do, whether they break rules of the gate."""
    if broken := info.broken_rules:
        return TonedCell(f"breaks {len(broken)} of {count_noun(len(info.facts.gate or {}), 'rules')}", "bad")
    return STATES[info.state]


def verdict_cell(verdict: VerdictCode) -> Cell:
    """A verdict in words, with its tone."""
    return TonedCell(verdict.text, verdict.tone)


def comparison_table(infos: Sequence[ComparisonInfo], caption: str, root: str = "") -> Table:
    """Comparisons; `root` as of `evaluation_table`."""

    def link(info: ComparisonInfo) -> Link:
        text = f"{side_label(info.candidate)} against {side_label(info.baseline)}"
        return Link(text, f"{root}comparisons/{info.id}")

    columns: Columns[ComparisonInfo] = (
        Col("comparison", link),
        Col("verdict", lambda info: verdict_cell(info.record.verdict)),
        Col("test set", lambda info: info.candidate.testset_name),
        Col("measure", lambda info: str(info.record.primary)),
        Col("difference", lambda info: info.difference.delta, "delta"),
        Col(CI, lambda info: interval(info.difference), "delta interval"),
        Col("p", lambda info: info.p_value, "p"),
        Col("time (UTC)", lambda info: _time(info.at)),
        Col("by", lambda info: info.account),
    )
    return TableSpec(caption, infos, columns).table()


def side_label(info: EvaluationInfo) -> str:
    """`search #12`."""
    return f"{info.label} #{info.id}"


@dataclass(frozen=True, slots=True)
class JobNames:
    """Numbers of what jobs are about to names."""

    runs: Mapping[int, str] = field(default_factory=dict)
    evaluations: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def read(cls, service: Service, infos: Sequence[JobInfo]) -> JobNames:
        """Those of some jobs."""
        requests = [info.request for info in infos]
        runs = {number for each in requests if isinstance(each, EvaluateRequest) for number in each.runs}
        compared = [each for each in requests if isinstance(each, CompareRequest)]
        sides = {number for each in compared for number in (each.baseline, each.candidate)}
        return cls(service.runs.names(sorted(runs)[-MAX_CSV:]), service.evaluations.labels(sorted(sides)[-MAX_CSV:]))


NO_NAMES = JobNames()


def job_table(
    infos: Sequence[JobInfo],
    caption: str,
    root: str = "",
    *,
    names: JobNames = NO_NAMES,
    waiting: Collection[int] = (),
) -> Table:
    """Jobs; `root` as of `evaluation_table`; `waiting` are the evaluations that wait for grades."""
    columns: Columns[JobInfo] = (
        Col("job", lambda info: Link(f"{info.kind} #{info.id}", f"{root}jobs/{info.id}")),
        Col("state", lambda info: _job_state(info, waiting)),
        Col("what", lambda info: job_subject(info, names)),
        Col("progress", job_progress),
        Col("started by", lambda info: info.account or info.trigger.value),
        Col("made (UTC)", lambda info: _time(info.created_at)),
        Col("ended (UTC)", lambda info: _time(info.finished_at)),
    )
    return TableSpec(caption, infos, columns).table()


def _job_state(info: JobInfo, waiting: Collection[int]) -> Cell:
    if info.kind is JobKind.EVALUATE and not set(info.results).isdisjoint(waiting):
        return TonedCell(f"{info.state}, {STATES[EvaluationState.WAITING].value}", "open")
    return TonedCell(info.state.value, "bad") if info.problems else info.state.value


def job_subject(info: JobInfo, names: JobNames = NO_NAMES) -> str:
    """What a job evaluates, compares or runs: `search (boosted) on shop`."""
    request = info.request
    if isinstance(request, CompareRequest):
        sides = (request.candidate, request.baseline)
        return " against ".join(f"{names.evaluations.get(number, '')} #{number}".strip() for number in sides)
    if isinstance(request, CompareResultsRequest):
        return "the results of " + " and ".join(f"job {number}" for number in request.jobs)
    if isinstance(request, BenefitRequest):
        return f"the experiment of the schedule {request.schedule}"
    systems = request.systems or (() if request.runs else ("the candidate of the config",))
    labels = [label_of(system, variant_of(request), ",".join(request.components)) for system in systems]
    runs = [f"run {number} {names.runs.get(number, '')}".strip() for number in request.runs]
    name, at, number = request.testset.rpartition("@")
    testset = f"{name} #{number}" if at and number.isdecimal() else request.testset
    return f"{', '.join((*labels, *runs))} on {testset}{', a pilot' if request.pilot else ''}"


def job_progress(info: JobInfo) -> str:
    """`12 of 50: collecting`, or why it failed."""
    if info.problems:
        return info.problems[0].message
    counted = f"{info.n_done} of {info.n_all}" if info.n_all else ""
    waits = f"{info.ahead} before it" if info.ahead else ""
    return ": ".join(filter(None, (counted or waits, info.progress if not info.has_ended else "")))


def schedule_table(states: Sequence[WatchState]) -> Table:
    """Schedules of the operator's file."""
    columns: Columns[WatchState] = (
        Col("schedule", lambda row: row.name),
        Col(
            "test set or plan",
            lambda row: Link(row.testset, f"testsets/{row.testset}") if row.testset else row.benefit,
        ),
        Col("next time", lambda row: next((f"{time:%Y-%m-%d %H:%M %Z}" for time in row.upcoming), None)),
        Col("running", lambda row: _job_link(row.running)),
        Col("last job", lambda row: _job_link(row.last.job if row.last else None)),
        Col("its result", lambda row: _result_cell(row.last)),
        Col("details", lambda row: "; ".join((*(row.last.lines() if row.last else ()), *row.notes()))),
    )
    return TableSpec("Scheduled evaluations and experiments", states, columns).table()


def _job_link(job: JobInfo | None) -> Cell:
    return None if job is None else Link(f"#{job.id} {job.state.value}", f"jobs/{job.id}")


def _result_cell(run: LastRun | None) -> Cell:
    if run is None:
        return None
    words = "not compared yet" if run.result is None else run.result.replace("_", " ")
    return words if run.result in {None, "passed"} else TonedCell(words, "bad")


def _time(at: int | None) -> str:
    return when(at).removesuffix(" UTC")
