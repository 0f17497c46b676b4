"""Single queries of an evaluation or a comparison: their data for the query view, and pages that read without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, Response

from cranfield.base.errors import UnknownNameError
from cranfield.base.words import join_first
from cranfield.evaluation.verdict_table import VerdictCode
from cranfield.reporting.document import (
    HitLine,
    HitList,
    HitLists,
    Section,
    TonedCell,
    VerdictBlock,
)
from cranfield.reporting.query_data import data_json
from cranfield.reporting.sections.collection import EXPECTED_ITEMS
from cranfield.reporting.table_spec import Col, Cols, Columns, TableSpec
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.grade_hole import SIDES, grade_path
from cranfield.workbench.server.pages import render_page, segment
from cranfield.workbench.server.results import comparison_queries, evaluation_queries, service_of
from cranfield.workbench.server.summary import headline
from cranfield.workbench.server.tables import blocks, side_label

if TYPE_CHECKING:
    from cranfield.reporting.query_data import QueryData
    from cranfield.workbench.service.values import EvaluationInfo

router = APIRouter()
Reader = Annotated[Caller, Depends(require("results"))]
COMPARISONS = "/comparisons/"


def _queries(request: Request, number: int) -> QueryData:
    """The queries of the comparison or the evaluation of a path."""
    is_comparison = request.url.path.startswith(COMPARISONS)
    return (comparison_queries if is_comparison else evaluation_queries)(request, number)


def _detail(request: Request, number: int, query: str) -> dict[str, Any]:
    """The results of a query.

    Raises:
        UnknownNameError: there is no such query.
    """
    try:
        return _queries(request, number).detail(query)
    except KeyError:
        raise UnknownNameError(f"query {query} not found") from None


@router.get("/comparisons/{number:id}/queries.json")
@router.get("/evaluations/{number:id}/queries.json")
def query_index(request: Request, caller: Reader, number: int) -> Response:
    """Give the values of all queries to the page."""
    del caller
    return Response(_queries(request, number).index_json, media_type="application/json")


@router.get("/comparisons/{number:id}/query.json")
@router.get("/evaluations/{number:id}/query.json")
def query_detail(request: Request, caller: Reader, number: int, query: Annotated[str, Query(alias="id")]) -> Response:
    """Give the results of a query to the page."""
    del caller
    return Response(data_json(_detail(request, number, query)), media_type="application/json")


@router.get("/evaluations/{number:id}/queries")
def queries(request: Request, caller: Reader, number: int) -> HTMLResponse:
    """Show all queries, sorted and filtered in the browser, each with its results."""
    info = service_of(request).evaluations.get(number)
    base = f"/evaluations/{number}"
    content = blocks((), _void(info), queries=(f"{base}/queries.json", f"{base}/query.json"))
    subject = f"{info.label} on {info.testset_name}"
    return render_page(request, "queries.html", caller, base=base, subject=subject, query="", content=content)


@router.get("/evaluations/{number:id}/queries/{query:path}")
def query_of_evaluation(request: Request, caller: Reader, number: int, query: str) -> HTMLResponse:
    """Show the results of one query."""
    info = service_of(request).evaluations.get(number)
    detail = _detail(request, number, query)
    return _page(request, caller, f"/evaluations/{number}", info.label, detail, _void(info))


@router.get("/comparisons/{number:id}/queries/{query:path}")
def query_of_comparison(request: Request, caller: Reader, number: int, query: str) -> HTMLResponse:
    """Show both lists of one query."""
    info = service_of(request).comparisons.get(number)
    title = f"{side_label(info.candidate)} against {side_label(info.baseline)}"
    code = info.record.verdict
    verdict = VerdictBlock(code.text, info.record.verdict_sentence, code.tone) if code is VerdictCode.INVALID else None
    return _page(request, caller, f"/comparisons/{number}", title, _detail(request, number, query), verdict)


def _void(info: EvaluationInfo) -> VerdictBlock | None:
    return headline(info) if info.void else None


def _page(
    request: Request, caller: Caller, base: str, title: str, detail: Mapping[str, Any], verdict: VerdictBlock | None
) -> HTMLResponse:
    query = detail["id"]
    found, labels = detail["values"], [side["system"] for side in detail["sides"]]
    columns: Columns[Mapping[str, Any]] = (
        Col("measure", lambda row: row["measure"]),
        Cols(range(len(labels)), lambda row, place: row["values"][place], "value", labels.__getitem__),
        Col("difference", lambda row: TonedCell(row["delta"], row["tone"]), "delta", when=len(labels) > 1),
    )
    values = TableSpec("Values of this query", found, columns).table(shown=20)
    section = Section("query", detail["text"] or query, (_lists(detail), values))
    return render_page(
        request,
        "queries.html",
        caller,
        base=base,
        subject=title,
        query=query,
        content=blocks((section,), verdict),
        holes=list(_holes(base, detail)),
    )


def _lists(detail: Mapping[str, Any]) -> HitLists:
    expected = join_first((f"{each['item']} (grade {each['grade']:g})" for each in detail["expected"]), EXPECTED_ITEMS)
    keys = ("rank", "id", "title", "note", "tone")
    lists = (
        HitList(side["system"], side["note"], tuple(HitLine(*(hit[key] for key in keys)) for hit in side["hits"]))
        for side in detail["sides"]
    )
    return HitLists(expected or detail["expected_none"], tuple(lists))


def _holes(base: str, detail: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Results that are not judged, each document once: label of a side, id, title, address of its page."""
    shown: set[str] = set()
    query, is_pair = detail["id"], len(detail["sides"]) > 1
    for letter, of_side, side in zip("AB", detail["sides"], SIDES, strict=False):
        for hit in of_side["hits"]:
            if hit["state"] != "judged" and hit["id"] not in shown:
                shown.add(hit["id"])
                back = f"{base}/queries/{segment(query)}"
                path = grade_path(base, query, hit["id"], side=side if is_pair else None, back=back)
                yield letter if is_pair else "", hit["id"], hit["title"], path
