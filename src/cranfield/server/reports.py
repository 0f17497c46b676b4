"""What evaluations and comparisons share: the pages and data of single queries, and pages that are sent in parts."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from cranfield.errors import CranfieldError, Problem, UnknownNameError
from cranfield.ranking.value import State
from cranfield.reporting.document import (
    Block,
    Cell,
    Column,
    Details,
    Document,
    HitLists,
    Link,
    Section,
    Table,
    TonedCell,
    VerdictBlock,
)
from cranfield.reporting.query_data import QueryData, data_json
from cranfield.reporting.sections.answers import side_by_side
from cranfield.reporting.sections.labels import SIDES as SHORT
from cranfield.server.grade_hole import SIDES, grade_path
from cranfield.server.pages import environment, page_text, render_page, segment
from cranfield.server.refusal import log_failure
from cranfield.server.tables import blocks

if TYPE_CHECKING:
    from markupsafe import Markup

    from cranfield.evaluation.values import Evaluation
    from cranfield.server.access import Caller


def query_index_response(data: QueryData) -> Response:
    """The values of all queries."""
    return Response(data_json(data.index()), media_type="application/json")


def query_detail_response(data: QueryData, query: str) -> Response:
    """The results of a query.

    Raises:
        UnknownNameError: there is no such query.
    """
    try:
        found = data.detail(query)
    except KeyError:
        raise _unknown(query) from None
    return Response(data_json(found), media_type="application/json")


def query_list_page(
    request: Request, caller: Caller, base: str, title: str, verdict: VerdictBlock | None
) -> HTMLResponse:
    """All queries of a result.

    Args:
        request: of the page.
        caller: who looks.
        base: path of the evaluation.
        title: what it is.
        verdict: shown first: a result that does not count.
    """
    content = blocks((), verdict, queries=(f"{base}/queries.json", f"{base}/query.json"))
    return render_page(request, "queries.html", caller, base=base, subject=title, query="", content=content)


def one_query_page(
    request: Request, caller: Caller, base: str, title: str, data: QueryData, query: str, verdict: VerdictBlock | None
) -> HTMLResponse:
    """One query with the lists and values of each system; the arguments are those of `query_list_page`.

    Raises:
        UnknownNameError: there is no such query.
    """
    if query not in data.queries:
        raise _unknown(query)
    found = list(zip(SHORT if data.pair else ("",), data.evaluations, strict=True))
    shown = (side_by_side(query, found), _values(data, query))
    section = Section("query", data.queries[query].text or query, shown)
    return render_page(
        request,
        "queries.html",
        caller,
        base=base,
        subject=title,
        query=query,
        content=blocks((section,), verdict),
        holes=list(_holes(base, found, query)),
    )


def _values(data: QueryData, query: str) -> Table:
    """Each measure with its value on each system."""
    detail = data.detail(query)
    columns: tuple[Column, ...] = (Column("measure"), *(Column(label, "value") for label in data.labels))
    rows: list[tuple[Cell, ...]] = [(row["measure"], *row["values"]) for row in detail["values"]]
    if data.pair:
        columns = (*columns, Column("difference", "delta"))
        rows = [
            (*cells, TonedCell(row["delta"], row["tone"])) for cells, row in zip(rows, detail["values"], strict=True)
        ]
    return Table(columns, rows, "Values of this query")


def with_query_pages(document: Document, number: int) -> Document:
    """The report for a page whose queries have pages of their own: links to them, instead of lists of results.

    Args:
        document: report of a comparison.
        number: of the comparison.
    """
    sections = []
    for section in document.sections:
        kept = (each for each in section.blocks if not isinstance(each, Details) or not _is_lists(each))
        sections.append(replace(section, blocks=tuple(_linked(each, number) for each in kept)))
    return replace(document, sections=tuple(sections))


def _is_lists(block: Details) -> bool:
    return all(isinstance(each, HitLists) for each in block.blocks)


def _linked(block: Block, number: int) -> Block:
    if not isinstance(block, Table) or not block.columns or block.columns[0].title != "query":
        return block
    rows = [(Link(str(query), f"{number}/queries/{query}"), *rest) for query, *rest in block.rows]
    return replace(block, rows=rows)


def _unknown(query: str) -> UnknownNameError:
    return UnknownNameError(f"there is no query {query} here")


def _holes(base: str, found: Sequence[tuple[str, Evaluation]], query: str) -> Iterator[tuple[str, str, str, str]]:
    """Results of a query that are not judged, each document once: label of a side, id, title, address of its page."""
    shown: set[str] = set()
    for (label, evaluation), side in zip(found, SIDES, strict=False):
        for hit in evaluation.ranking.top.get(query, ()):
            if hit.state is not State.JUDGED and hit.id not in shown:
                shown.add(hit.id)
                back = f"{base}/queries/{segment(query)}"
                path = grade_path(base, query, hit.id, side=side if len(found) > 1 else None, back=back)
                yield label, hit.id, hit.title or "", path


def page_parts(
    request: Request, template: str, caller: Caller, make: Callable[[], Markup], waiting: str, /, **values: object
) -> Iterator[str]:
    """A page whose `content` takes long to make: what is before it is sent at once, and shown.

    An error of `make` is shown in its place: the status is sent already.
    """
    from markupsafe import Markup

    mark = f"<!-- {secrets.token_hex(16)} -->"
    text = page_text(request, template, caller, caller.csrf, {**values, "content": Markup(mark)})  # noqa: S704 - hexadecimal digits
    head, _, tail = text.partition(mark)
    yield f'{head}<p class="waiting" role="status">{waiting}</p>\n'
    try:
        content = make()
    except CranfieldError as error:
        content = _problems(error.problems)
    except Exception as error:  # noqa: BLE001 - the page is half sent: it ends with the number of the error
        content = _problems([log_failure(error)])
    yield str(content)
    yield tail


def _problems(problems: Sequence[Problem]) -> Markup:
    template = environment().get_template("parts.html")
    made: Markup = template.module.problems(problems)  # type: ignore[attr-defined]  # a macro of the template
    return made
