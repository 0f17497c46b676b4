"""Evaluations: the list with its history, one evaluation, its report; tags, note, baseline, run again."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import BaseModel

from cranfield.base.errors import UsageError
from cranfield.base.words import count_noun
from cranfield.evaluation.history import HistoryPoint, HistoryReport, Score, lines, measure_of
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.grade_hole import counted_later
from cranfield.workbench.server.guide import explained
from cranfield.workbench.server.live_measures import SECONDS, live_values
from cranfield.workbench.server.page_parts import page_parts
from cranfield.workbench.server.pages import lead_to, render_page, see_other
from cranfield.workbench.server.results import service_of
from cranfield.workbench.server.summary import headline, summary_sections
from cranfield.workbench.server.tables import MAX_CSV, blocks, csv_response, evaluation_table, list_caption, listed
from cranfield.workbench.service.hole_grades import compare_on_newest
from cranfield.workbench.service.requests import CompareRequest, EvaluateRequest, Id
from cranfield.workbench.service.responses import StoredSource, Trigger
from cranfield.workbench.service.set_versions import are_versions_of_one, baseline_for, own_name
from cranfield.workbench.service.values import EvaluationFilter

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import ComparisonInfo, EvaluationInfo

router = APIRouter()
Reader = Annotated[Caller, Depends(require("results"))]
Evaluator = Annotated[Caller, Depends(require("evaluate"))]
PAGE = 50
MAX_POINTS = 100
"""Evaluations of a history."""
SHORT_WAIT_S = 2.0
"""A job that is done so soon leads to its result, and not to its progress."""
Form_ = Annotated[str, Form(max_length=10_000)]


class Chosen(BaseModel):
    """Conditions of the list, as its form sends them: empty ones are none."""

    testset: str = ""
    system: str = ""
    tag: str = ""
    since: str = ""
    pinned: bool = False
    before: int | None = None
    measure: str = ""
    """Measure of the history."""

    def filter(self, limit: int) -> EvaluationFilter:
        """The same for the service.

        Raises:
            UsageError: `since` is no date.
        """
        return EvaluationFilter(
            testset=self.testset or None,
            system=self.system or None,
            tag=self.tag or None,
            pinned=True if self.pinned else None,
            since=self._since(),
            limit=limit,
            before=self.before,
        )

    def _since(self) -> int | None:
        if not self.since:
            return None
        try:
            day = date.fromisoformat(self.since)
        except ValueError:
            raise UsageError(f"{self.since} is not a date", path="since", expected="2026-11-23") from None
        return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)

    @property
    def parameters(self) -> dict[str, str]:
        """The conditions that are set, for links."""
        return {name: str(value) for name, value in self if value and name != "before"}


@router.get("/evaluations")
def evaluations(
    request: Request,
    caller: Reader,
    chosen: Annotated[Chosen, Query()],
    form: Annotated[str, Query(alias="format")] = "",
) -> Response:
    """List evaluations, the latest first; with a test set chosen, their history too."""
    service = service_of(request)
    if form == "csv":
        return csv_response(evaluation_table(service.evaluations.all(chosen.filter(MAX_CSV)), ""), "evaluations")
    found = service.evaluations.all(chosen.filter(PAGE + 1))
    shown = found[:PAGE]
    caption = list_caption("Evaluations", whole=chosen.before is None and len(found) <= PAGE)
    values: dict[str, Any] = {
        "chosen": chosen,
        "n": len(shown),
        "table": listed("evaluations", "Evaluations", evaluation_table(shown, caption)) if shown else "",
        "before_id": shown[-1].id if len(found) > PAGE else None,
        "testsets": [info.name for info in service.testsets.names()],
        "systems": service.evaluations.systems(),
    }
    if not (chosen.testset and shown):
        return render_page(request, "evaluations.html", caller, content="", **values)
    parts = page_parts(request, "evaluations.html", caller, lambda: history(service, chosen), "A moment.", **values)
    return StreamingResponse(parts, media_type="text/html; charset=utf-8")


def history(service: Service, chosen: Chosen) -> Markup:
    """What is drawn and what is not, the chart of one measure over time, and its table."""
    from markupsafe import Markup

    from cranfield.reporting.documents.history import history_document
    from cranfield.reporting.renderers.html import render_blocks

    found = service.evaluations.all(chosen.filter(MAX_POINTS + 1))
    shown = found[:MAX_POINTS]
    points = [history_point(info) for info in reversed(shown) if not info.void and not info.pilot]
    measure = chosen.measure or measure_of(points) or ""
    found_lines = lines(points, measure)
    drawn = tuple(line for line in found_lines if len(line.points) > 1)
    n_void = sum(bool(info.void) for info in shown)
    n_pilots = len(shown) - len(points) - n_void
    notes = (
        (
            f"The latest {MAX_POINTS} evaluations; select a system or a date above to see others.",
            len(found) > MAX_POINTS,
        ),
        (f"{count_noun(n_void, 'evaluations')} left out: invalid figures.", n_void),
        (f"{count_noun(n_pilots, 'pilots')} left out.", n_pilots),
        (f"None of these evaluations has a mean of {measure}.", measure and not found_lines),
        ("A line requires two evaluations of a system.", found_lines and not drawn),
    )
    text = Markup("").join(Markup('<p class="fine">{}</p>\n').format(note) for note, holds in notes if holds)
    n_without = sum(point.measures.get(measure, Score(None, 0)).mean is None for point in points)
    report = HistoryReport(measure=measure, lines=drawn, n_without=n_without)
    return text + render_blocks(history_document(report, lambda point: point.values), most_rows=PAGE)


def history_point(info: EvaluationInfo) -> HistoryPoint:
    """An evaluation as a point of a history."""
    latency = info.facts.latency_ms or {}
    return HistoryPoint(
        time=datetime.fromtimestamp(info.at / 1000, UTC),
        testset=info.testset_name,
        version=info.testset_version,
        digest=info.testset_digest,
        system=info.label,
        convention=info.record.convention,
        measures={
            measure.canonical: Score(each.mean, each.n, each.ci_low, each.ci_high)
            for measure, each in info.scores.measures.items()
        },
        primary=None if info.primary is None else info.primary.canonical,
        config_digest=info.config_digest or None,
        k=info.facts.k,
        n_queries=info.scores.n_queries,
        n_failed=info.n_failed,
        judged=info.scores.judged.mean,
        p50_ms=latency.get("p50"),
        p95_ms=latency.get("p95"),
        pilot=info.pilot,
        values=f"evaluations/{info.id}",
    )


@router.get("/evaluations/{evaluation_id:id}")
def evaluation(request: Request, caller: Reader, evaluation_id: int) -> HTMLResponse:
    """Show an evaluation: its state, then its figures."""
    service = service_of(request)
    info = service.evaluations.get(evaluation_id)
    baseline = baseline_for(service, info)
    compared_with = verdict_on(service, info, baseline)
    return render_page(
        request,
        "evaluation.html",
        caller,
        info=info,
        followed=info.configured and info.trigger in service.workbench.metrics.triggers,
        baseline=baseline,
        on_newest=baseline is not None and are_versions_of_one(baseline, info),
        live=live_values(request, info),
        grades=counted_later(request, info) if info.book_id is None else None,
        content=blocks(
            summary_sections(info, service.evaluations.payload(info.id)),
            headline(info, compared_with, baseline),
            most_rows=PAGE,
        ),
        meanings=explained(map(str, info.scores.measures), info.record.convention),
        comparisons=service.comparisons.all(evaluation=info.id, limit=10),
        others=[
            each
            for each in service.evaluations.all(EvaluationFilter(testset=info.testset_name, limit=30))
            if each.id != info.id
        ],
    )


def verdict_on(service: Service, info: EvaluationInfo, baseline: EvaluationInfo | None) -> ComparisonInfo | None:
    """The comparison that says whether an evaluation is better or worse: with the pinned baseline, of whichever version of the
    test set; else that of its schedule; else one in which it lost.
    """
    if baseline is not None:
        for each in service.comparisons.of_runs(baseline.run_id, info.run_id):
            if (each.record.primary, *_scored_on(each.candidate)) == (info.primary, *_scored_on(info)):
                return each
    mine = [each for each in service.comparisons.all(evaluation=info.id) if each.candidate.id == info.id]
    if info.trigger is Trigger.WATCH:
        for each in mine:
            if each.job_id and service.jobs.get(each.job_id).trigger is Trigger.WATCH:
                return each
    return next((each for each in mine if each.is_regression), None)


def _scored_on(info: EvaluationInfo) -> tuple[str, int | None, str]:
    return own_name(info.testset_name), info.facts.k, info.record.convention


@router.post("/evaluations/{evaluation_id:id}/notes")
def set_notes(
    request: Request, caller: Evaluator, evaluation_id: int, *, tags: Form_ = "", note: Form_ = ""
) -> Response:
    """Replace tags and note."""
    del caller
    parts = service_of(request).evaluations
    given = tuple(filter(None, (tag.strip() for tag in tags.split(","))))
    parts.change(evaluation_id, tags=given, note=note.replace("\r\n", "\n"))
    return see_other(f"/evaluations/{evaluation_id}", done="saved")


@router.post("/evaluations/{evaluation_id:id}/pin")
def pin(
    request: Request, caller: Evaluator, evaluation_id: int, *, pinned: Annotated[bool, Form()] = False
) -> Response:
    """Pin or unpin an evaluation as the baseline of its test set."""
    del caller
    service_of(request).evaluations.pin(evaluation_id, pinned=pinned)
    return see_other(f"/evaluations/{evaluation_id}", done="saved")


@router.post("/evaluations/{evaluation_id:id}/rerun")
def rerun(request: Request, caller: Evaluator, evaluation_id: int) -> Response:
    """Evaluate the same system on the latest version of the test set, with the same settings."""
    service = service_of(request)
    wanted = request_of(service, service.evaluations.get(evaluation_id))
    return lead_to(service.jobs.submit(wanted, trigger=Trigger.PAGE, by=caller.account.id))


def request_of(service: Service, info: EvaluationInfo) -> EvaluateRequest:
    """What evaluates the same again.

    Raises:
        UsageError: it was not made by a job.
    """
    uploaded = service.runs.get(info.run_id).source is not StoredSource.COLLECTED
    first = info if uploaded else service.evaluations.first_of_run(info.run_id) or info
    made, collected = (
        service.jobs.get(each.job_id).request if each.job_id is not None else None for each in (info, first)
    )
    if not isinstance(made, EvaluateRequest) or not isinstance(collected, EvaluateRequest):
        raise UsageError("this evaluation was not made by a job of this server", hint="start a new evaluation")
    own: dict[str, object] = {"runs": (info.run_id,), "systems": ()}
    if not uploaded:
        own = {"runs": (), "systems": (info.system,), "pilot": info.pilot}
        own |= {name: getattr(collected, name) for name in ("variant", "params", "components")}
    return made.model_copy(update={"testset": info.testset_name, "tags": info.tags, **own})


@router.post("/evaluations/{evaluation_id:id}/compare")
def compare(request: Request, caller: Evaluator, evaluation_id: int, baseline: Annotated[Id, Form()]) -> Response:
    """Compare it with another evaluation of the same queries."""
    return compared(service_of(request), CompareRequest(baseline=baseline, candidate=evaluation_id), caller)


def compared(service: Service, wanted: CompareRequest, caller: Caller) -> Response:
    """The comparison of two evaluations, those of different versions of a test set scored on the newest; or the page of its job."""
    by = caller.account.id
    baseline, candidate = (service.evaluations.get(number) for number in (wanted.baseline, wanted.candidate))
    if are_versions_of_one(baseline, candidate):
        job = compare_on_newest(service, baseline, candidate, by, wanted)
        return lead_to(service.jobs.wait(job.id, SECONDS), done="on-newest")
    return lead_to(service.jobs.wait(service.jobs.submit(wanted, trigger=Trigger.PAGE, by=by).id, SHORT_WAIT_S))
