"""Comparisons: choosing two evaluations, what differs besides the system, the verdict, the report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import Response, StreamingResponse

from cranfield.base.words import count_noun, join_first
from cranfield.reporting.document import Block, Details, Document, HitLists, Link, Table
from cranfield.reporting.documents.comparison import subject_document
from cranfield.reporting.documents.difference import difference_document
from cranfield.reporting.renderers.html import render_blocks
from cranfield.testsets.diff import diff
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.evaluations import compared
from cranfield.workbench.server.grade_hole import counted_later
from cranfield.workbench.server.page_parts import page_parts
from cranfield.workbench.server.pages import render_page
from cranfield.workbench.server.results import comparison_queries, is_comparison_kept, service_of
from cranfield.workbench.server.tables import (
    MAX_CSV,
    comparison_table,
    csv_response,
    list_caption,
    listed,
    side_label,
)
from cranfield.workbench.service.requests import CompareRequest, DiffRequest, Id
from cranfield.workbench.service.set_versions import are_versions_of_one, own_name
from cranfield.workbench.service.values import EvaluationFilter

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.workbench.service.service import Service
    from cranfield.workbench.service.values import EvaluationInfo

router = APIRouter()
Reader = Annotated[Caller, Depends(require("results"))]
Evaluator = Annotated[Caller, Depends(require("evaluate"))]
PAGE = 50
MAX_CHOICES = 200
MAX_ROWS = 30
"""Most rows of a table of the report in the page: the query view has all queries."""
WAITING = "The rest of this page is loading."
MAX_NAMED = 5
"""Queries of a flag that are named."""


@router.get("/comparisons")
def comparisons(
    request: Request,
    caller: Reader,
    *,
    baseline: Annotated[str, Query(max_length=20)] = "",
    candidate: Annotated[str, Query(max_length=20)] = "",
    before: int | None = None,
    form: Annotated[str, Query(alias="format")] = "",
) -> Response:
    """Choose two evaluations; list the comparisons that were made."""
    service = service_of(request)
    if form == "csv":
        return csv_response(comparison_table(service.comparisons.all(limit=MAX_CSV), ""), "comparisons")
    found = service.comparisons.all(limit=PAGE + 1, before=before)
    caption = list_caption("Comparisons", whole=before is None and len(found) <= PAGE)
    table = comparison_table(found[:PAGE], caption)
    chosen = [service.evaluations.get(int(side)) if side.isdecimal() else None for side in (baseline, candidate)]
    latest = service.evaluations.all(EvaluationFilter(limit=MAX_CHOICES))
    pinned = service.evaluations.all(EvaluationFilter(pinned=True, limit=MAX_CHOICES))
    choices = {each.id: each for each in (*latest, *pinned, *filter(None, chosen))}
    return render_page(
        request,
        "comparisons.html",
        caller,
        choices=list(choices.values()),
        most_choices=MAX_CHOICES if len(latest) == MAX_CHOICES else 0,
        chosen=chosen,
        both=chosen[0] is not None and chosen[1] is not None,
        flags=list(flags(service, chosen[0], chosen[1], ahead=True)) if chosen[0] and chosen[1] else [],
        on_newest=bool(chosen[0] and chosen[1] and are_versions_of_one(chosen[0], chosen[1])),
        n=len(found[:PAGE]),
        content=listed("comparisons", "Comparisons", table),
        before_id=found[PAGE - 1].id if len(found) > PAGE else None,
    )


def flags(
    service: Service, baseline: EvaluationInfo, candidate: EvaluationInfo, *, ahead: bool = False
) -> Iterator[str]:
    """What differs between two evaluations besides the system; ahead of the comparison, which tells what judgments can change, the judged shares too."""
    if baseline.id == candidate.id:
        yield "Both sides are the same evaluation: choose another one."
        return
    yield from _side_flags(baseline)
    yield from _side_flags(candidate)
    if baseline.testset_id != candidate.testset_id:
        yield from _set_flags(service, baseline, candidate)
    for name, before, after in (
        ("Results requested (k)", baseline.facts.k, candidate.facts.k),
        ("Convention", baseline.record.convention, candidate.record.convention),
        ("Primary measure", baseline.primary, candidate.primary),
    ):
        if before != after:
            yield f"{name}: {before if before is not None else 'not known'} in the baseline, {after if after is not None else 'not known'} in the candidate."
    for side in (baseline, candidate) if ahead else ():
        judged = side.scores.judged
        if judged.mean is not None and judged.mean < 1:
            yield (
                f"{side_label(side)}: {100 * judged.mean:.0f} % of the first {judged.measure.depth} results are "
                "judged; the unjudged ones can change the verdict."
            )


def _side_flags(side: EvaluationInfo) -> Iterator[str]:
    if side.void:
        yield f"The figures of {side_label(side)} are invalid: {'; '.join(side.void)}."
    if side.pilot:
        yield f"{side_label(side)} is a pilot, not for the record."
    if side.book_id is not None:
        yield (
            f"{side_label(side)} is still being judged, so its figures change: freeze the grades on its page to "
            "compare."
        )


def _set_flags(service: Service, baseline: EvaluationInfo, candidate: EvaluationInfo) -> Iterator[str]:
    old, new = (service.testsets.load(f"{side.testset_name}@{side.testset_id}") for side in (baseline, candidate))
    if own_name(baseline.testset_name) != own_name(candidate.testset_name):
        yield f"Different test sets: {baseline.testset_name} and {candidate.testset_name}."
    found = diff(old, new)
    for changed, what in (
        (found.removed, "in the baseline only"),
        (found.added, "in the candidate only"),
        (found.reworded, "with another text"),
        (found.judged, "with other judgments"),
    ):
        if ids := list(dict.fromkeys(each.query_id for each in changed)):
            yield f"Different test set: {count_noun(len(ids), 'queries')} {what} ({join_first(ids, MAX_NAMED)})."
    if found.guidelines:
        yield f"{found.guidelines[:1].upper()}{found.guidelines[1:]}"


@router.post("/comparisons/make")
def compare(
    request: Request,
    caller: Evaluator,
    baseline: Annotated[Id, Form()],
    candidate: Annotated[Id, Form()],
    measure: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    """Compare two evaluations."""
    wanted = CompareRequest(baseline=baseline, candidate=candidate, measure=measure.strip() or None)
    return compared(service_of(request), wanted, caller)


@router.get("/diff")
def differences(request: Request, caller: Reader, wanted: Annotated[DiffRequest, Query()]) -> Response:
    """Show two evaluations, or runs, side by side, without judgments: the most changed queries first."""
    found = service_of(request).evaluations.difference(wanted)
    document = difference_document(found)
    return render_page(
        request,
        "difference.html",
        caller,
        title=document.title,
        wanted=wanted,
        names=(found.baseline, found.candidate),
        content=render_blocks(document, most_rows=MAX_ROWS),
    )


@router.get("/comparisons/{comparison_id:id}")
def comparison(request: Request, caller: Reader, comparison_id: int) -> Response:
    """Show a comparison: first the verdict, then the rest when its record is loaded."""
    service = service_of(request)
    info = service.comparisons.get(comparison_id)
    base = f"/comparisons/{info.id}"
    values: dict[str, Any] = {
        "info": info,
        "verdict": info.record.verdict,
        "labels": (side_label(info.baseline), side_label(info.candidate)),
        "flags": list(flags(service, info.baseline, info.candidate)),
        "grades": counted_later(request, info),
        "base": base,
    }

    def content() -> Markup:
        document = with_query_pages(subject_document(comparison_queries(request, info.id).subject), str(info.id))
        return render_blocks(document, queries=(f"{base}/queries.json", f"{base}/query.json"), most_rows=MAX_ROWS)

    if is_comparison_kept(request, info.id):
        return render_page(request, "comparison.html", caller, content=content(), **values)
    parts = page_parts(request, "comparison.html", caller, content, WAITING, **values)
    return StreamingResponse(parts, media_type="text/html; charset=utf-8")


def with_query_pages(document: Document, page: str) -> Document:
    """The report for a page whose queries have pages of their own: links to them, instead of lists of results.

    Args:
        document: the report.
        page: the last part of the address of the page.
    """
    sections = []
    for section in document.sections:
        kept = (each for each in section.blocks if not isinstance(each, Details) or not _is_lists(each))
        sections.append(replace(section, blocks=tuple(_linked(each, page) for each in kept)))
    return replace(document, sections=tuple(sections))


def _is_lists(block: Details) -> bool:
    return all(isinstance(each, HitLists) for each in block.blocks)


def _linked(block: Block, page: str) -> Block:
    if not isinstance(block, Table) or not block.columns or block.columns[0].kind != "query id":
        return block
    rows = [(Link(str(query), f"{page}/queries/{query}"), *rest) for query, *rest in block.rows]
    return replace(block, rows=rows)
