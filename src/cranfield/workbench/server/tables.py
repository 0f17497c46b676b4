"""Lists of the workbench as tables: the same value is shown, sorted in the browser, and downloaded as CSV."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fastapi import Response

from cranfield.base.words import count_noun
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.reporting.document import Cell, Column, Document, Link, Section, Table, TonedCell, VerdictBlock
from cranfield.reporting.renderers.data import csv_text
from cranfield.reporting.renderers.html import render_blocks
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

CI = Column("95 % CI", "interval")
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
    document = Document("", (), tuple(sections), _no_rows, dict, verdict=verdict)
    return render_blocks(document, most_rows=most_rows, queries=queries)


def _no_rows() -> Table:
    return Table((), (), "")


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


def testset_table(infos: Iterable[SetInfo]) -> Table:
    """Test sets by name."""
    columns = (
        Column("test set"),
        Column("version"),
        Column("queries", "count"),
        Column("judgments", "count"),
        Column("from"),
        Column("stored (UTC)"),
        Column("by"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            Link(info.name, f"testsets/{info.name}"),
            info.version,
            info.n_queries,
            info.n_judgments,
            info.source.value,
            _time(info.created_at),
            info.account,
        )
        for info in infos
    ]
    return Table(columns, rows, "Test sets, the latest version of each", shown=None)


def evaluation_table(infos: Iterable[EvaluationInfo], caption: str, root: str = "") -> Table:
    """Evaluations, each with its primary measure.

    Args:
        infos: what is listed.
        caption: of the table.
        root: how the page leads to `/`: empty at its top, `../` one level down.
    """
    columns = (
        Column("evaluation"),
        Column("state"),
        Column("test set"),
        Column("time (UTC)"),
        Column("measure"),
        Column("mean", "value"),
        CI,
        Column("n", "count"),
        Column("judged", "percent"),
        Column("failed", "count"),
        Column("marks"),
    )
    return Table(columns, [_evaluation_row(info, root) for info in infos], caption, shown=None)


def _evaluation_row(info: EvaluationInfo, root: str) -> tuple[Cell, ...]:
    found = info.summary
    marks = [*(("baseline",) if info.pinned else ()), *(("pilot",) if info.pilot else ()), *info.tags]
    return (
        Link(f"{info.label} #{info.id}", f"{root}evaluations/{info.id}"),
        state_cell(info),
        Link(info.testset_name, f"{root}testsets/{info.testset_name}"),
        _time(info.at),
        None if info.primary is None else str(info.primary),
        *((None, (None, None), None) if found is None else (found.mean, (found.ci_low, found.ci_high), found.n)),
        info.scores.judged.mean,
        info.n_failed,
        ", ".join(marks),
    )


def state_cell(info: EvaluationInfo) -> TonedCell:
    """Whether the figures count, and where they do, whether they break rules of the gate."""
    if broken := info.broken_rules:
        return TonedCell(f"breaks {len(broken)} of {count_noun(len(info.facts.gate or {}), 'rules')}", "bad")
    return STATES[info.state]


def verdict_cell(verdict: VerdictCode) -> Cell:
    """A verdict in words, with its tone."""
    return TonedCell(verdict.text, verdict.tone)


def comparison_table(infos: Iterable[ComparisonInfo], caption: str, root: str = "") -> Table:
    """Comparisons; `root` as of `evaluation_table`."""
    columns = (
        Column("comparison"),
        Column("verdict"),
        Column("test set"),
        Column("measure"),
        Column("difference", "delta"),
        Column("95 % CI", "delta interval"),
        Column("p", "p"),
        Column("time (UTC)"),
        Column("by"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            Link(f"{side_label(info.candidate)} against {side_label(info.baseline)}", f"{root}comparisons/{info.id}"),
            verdict_cell(info.record.verdict),
            info.candidate.testset_name,
            str(info.record.primary),
            info.difference.delta,
            (info.difference.ci_low, info.difference.ci_high),
            info.p_value,
            _time(info.at),
            info.account,
        )
        for info in infos
    ]
    return Table(columns, rows, caption, shown=None)


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
    infos: Iterable[JobInfo],
    caption: str,
    root: str = "",
    *,
    names: JobNames = NO_NAMES,
    waiting: Collection[int] = (),
) -> Table:
    """Jobs; `root` as of `evaluation_table`; `waiting` are the evaluations that wait for grades."""
    columns = (
        Column("job"),
        Column("state"),
        Column("what"),
        Column("progress"),
        Column("started by"),
        Column("made (UTC)"),
        Column("ended (UTC)"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            Link(f"{info.kind} #{info.id}", f"{root}jobs/{info.id}"),
            _job_state(info, waiting),
            job_subject(info, names),
            job_progress(info),
            info.account or info.trigger.value,
            _time(info.created_at),
            _time(info.finished_at),
        )
        for info in infos
    ]
    return Table(columns, rows, caption, shown=None)


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


def schedule_table(states: Iterable[WatchState]) -> Table:
    """Schedules of the operator's file."""
    names = ("schedule", "test set or plan", "next time", "running", "last job", "its result", "details")
    rows: list[tuple[Cell, ...]] = [
        (
            state.name,
            Link(state.testset, f"testsets/{state.testset}") if state.testset else state.benefit,
            next((f"{time:%Y-%m-%d %H:%M %Z}" for time in state.upcoming), None),
            _job_link(state.running),
            _job_link(state.last.job if state.last else None),
            _result_cell(state.last),
            "; ".join((*(state.last.lines() if state.last else ()), *state.notes())),
        )
        for state in states
    ]
    columns = tuple(map(Column, names))
    return Table(columns, rows, "Scheduled evaluations and experiments", shown=None)


def _job_link(job: JobInfo | None) -> Cell:
    return None if job is None else Link(f"#{job.id} {job.state.value}", f"jobs/{job.id}")


def _result_cell(run: LastRun | None) -> Cell:
    if run is None:
        return None
    words = "not compared yet" if run.result is None else run.result.replace("_", " ")
    return words if run.result in {None, "passed"} else TonedCell(words, "bad")


def _time(at: int | None) -> str:
    return when(at).removesuffix(" UTC")
