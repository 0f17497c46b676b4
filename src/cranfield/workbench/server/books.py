"""Pages of a book: dashboard, items, settings, re-opening, join links, freezing, calls of models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.responses import HTMLResponse, Response

from cranfield.base.errors import UsageError
from cranfield.books.database.engine import day_of
from cranfield.books.settings import Mode
from cranfield.books.store.schema import BookState, ItemState, Origin, SkipReason
from cranfield.judging.preference import book_preference
from cranfield.judging.quality import MIN_PAIRS, Quality, book_quality
from cranfield.judging.reports.pool import WHAT_IT_IS as PREFERENCE_NOTE
from cranfield.judging.reports.pool import preference_rows
from cranfield.judging.selection import FAST_MS, Selection, n_selected, selected_items, withdrawn_by
from cranfield.workbench.server.access import Caller, require
from cranfield.workbench.server.documents import RenderedDocument, rendered
from cranfield.workbench.server.http_errors import not_found
from cranfield.workbench.server.judging_cards import image_response, note_text
from cranfield.workbench.server.pages import render_page, see_other, segment
from cranfield.workbench.service.values import EvaluationFilter

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.books.store.values import BookInfo, FrozenInfo, ItemView
    from cranfield.workbench.server.results import RecentValues
    from cranfield.workbench.service.values import EvaluationInfo

router = APIRouter()
Reader = Annotated[Caller, Depends(require("read"))]
Lead = Annotated[Caller, Depends(require("manage"))]

CallOutcome = Literal["ok", "bad_answer", "error", "cached"]
PAGE = 50
LINK_DAYS = 14
SHOWN = 10
"""Evaluations that a page of a book names."""


def book_of(caller: Caller) -> BookInfo:
    """The book of the path."""
    if caller.book is None:
        raise not_found("book")
    return caller.book


def book_path(book: BookInfo, *rest: object, **parameters: object) -> str:
    """Address of a page of a book."""
    path = "/".join(["/books", segment(book.name), *map(segment, rest)])
    return f"{path}?{urlencode(parameters)}" if parameters else path


def quality_of(request: Request, book: BookInfo) -> Quality:
    """The figures of a book, measured again only after an event, or where its items or settings are others."""
    store: Store = request.app.state.store
    kept: RecentValues = request.app.state.reports
    last = store.reading.last_event_id(book.id)
    key = (book.id, last, book.n_items, book.settings.model_dump_json())
    found: Quality = kept.get(key, lambda: book_quality(store, book))
    return found


def lowest_grade(book: BookInfo) -> float:
    """The grade that counts as not relevant."""
    return book.settings.scale.grades[0] if book.settings.mode is Mode.GRADE else 0


def books_selected(
    request: Request, book: BookInfo, chosen: Selection, *, limit: int | None = None, start: int = 0
) -> tuple[ItemView, ...]:
    """The items of a selection: all of them, or `limit` of them from a place on."""
    return selected_items(request.app.state.store, book.id, lowest_grade(book), chosen, limit=limit, start=start)


def book_page(
    request: Request, template: str, caller: Caller, /, *, http_status: int = 200, **values: object
) -> HTMLResponse:
    """A page of the book of the path."""
    book = book_of(caller)

    def items_of(**parameters: object) -> str:
        return book_path(book, "items", **parameters)

    values |= {"book": book, "base": book_path(book), "items_of": items_of}
    return render_page(request, template, caller, http_status=http_status, **values)


@router.get("/books/{book}")
def dashboard(request: Request, caller: Reader) -> HTMLResponse:
    """Show the progress of the book, and the quality of its judgments."""
    from cranfield.judging.book.freeze import is_unfinished

    book, store = book_of(caller), request.app.state.store
    is_preference = book.settings.mode is Mode.PREFERENCE
    return book_page(
        request,
        "book.html",
        caller,
        event=store.reading.last_event_id(book.id),  # before the figures are read: a later event is shown by the script
        preference=preference_rows(book_preference(store, book)) if is_preference else (),
        preference_note=PREFERENCE_NOTE,
        quality=quality_of(request, book),
        fewest=MIN_PAIRS,
        fast_ms=FAST_MS,
        n_queue=n_selected(store, book.id, lowest_grade(book), Selection(waits=True)),
        frozen=store.books.frozen(book.id),
        evaluations=evaluations_in(request, book),
        unfinished=book.settings.mode is Mode.GRADE and caller.may("manage") and is_unfinished(store, book.id),
        levels=book.settings.scale.levels,
    )


def evaluations_in(request: Request, book: BookInfo) -> Sequence[EvaluationInfo]:
    """The latest evaluations whose results are judged in a book."""
    service = request.app.state.service
    return () if service is None else service.evaluations.all(EvaluationFilter(book=book.id, limit=SHOWN))


@router.get("/books/{book}/items")
def items(request: Request, caller: Reader, chosen: Annotated[Selection, Query()]) -> HTMLResponse:
    """List items."""
    book, store = book_of(caller), request.app.state.store
    n = n_selected(store, book.id, lowest_grade(book), chosen)
    last = max(1, -(-n // PAGE))
    page = min(chosen.page, last)
    return book_page(
        request,
        "items.html",
        caller,
        chosen=chosen,
        found=books_selected(request, book, chosen, limit=PAGE, start=(page - 1) * PAGE),
        n=n,
        page=page,
        last=last,
        queries=store.reading.queries(book.id),
        raters=[member.account.name for member in store.people.members(book.id)],
        states=list(ItemState),
        origins=[each for each in Origin if each != Origin.REPEAT],
        skips=["any", *SkipReason],
    )


@router.get("/books/{book}/items/{item_id}")
def item(request: Request, caller: Reader, item_id: int) -> Response:
    """Show an item with all its judgments."""
    found = item_of_book(request, caller, item_id)
    if book_of(caller).settings.mode is Mode.REVIEW:
        return see_other(book_path(book_of(caller), "review", "records", item_id))
    return book_page(request, "item.html", caller, item=found, text=shown_text(request, found))


def item_of_book(request: Request, caller: Caller, item_id: int) -> ItemView:
    """An item of the book of the path: an id of another book gives nothing."""
    found: ItemView = request.app.state.store.reading.item(item_id)
    if found.book_id != book_of(caller).id:
        raise not_found("item")
    return found


def shown_text(request: Request, found: ItemView) -> RenderedDocument:
    """The document as the judging page shows it."""
    shown = rendered(request.app.state.texts.get(found.doc, found.fields), found.query_text)
    note_text(request.app.state.store, found.id, found.doc_digest, shown.digest)
    return shown


@router.get("/books/{book}/items/{item_id}/image")
def item_image(request: Request, caller: Reader, item_id: int) -> Response:
    """The image of an item, for users who can read its judgments."""
    found = item_of_book(request, caller, item_id)
    return image_response(request.app.state.texts, found.doc, found.fields)


@router.get("/books/{book}/reopen")
def reopen_page(request: Request, caller: Lead, chosen: Annotated[Selection, Query()]) -> HTMLResponse:
    """Show the judgments that reopening withdraws."""
    book, store = book_of(caller), request.app.state.store
    found = books_selected(request, book, chosen)
    rows = [row for each in withdrawn_by(store, book.id, found, chosen).values() for row in each]
    return book_page(
        request,
        "reopen.html",
        caller,
        chosen=chosen,
        n=len(found),
        n_judgments=len(rows),
        raters=sorted({row.rater for row in rows}),
        n_final=sum(each.final is not None for each in found),
    )


@router.post("/books/{book}/reopen")
def reopen(
    request: Request,
    caller: Lead,
    chosen: Annotated[Selection, Query()],
    expected: Annotated[int, Form()],
    judgments: Annotated[int, Form()],
    reason: Annotated[str, Form(min_length=1, max_length=1_000)],
) -> Response:
    """Withdraw the judgments of persons; the log keeps them. If the items have changed since the preview, it is shown again first."""
    book, store = book_of(caller), request.app.state.store
    found = books_selected(request, book, chosen)
    withdrawn = withdrawn_by(store, book.id, found, chosen)
    which = {item: [row.account_id for row in rows] for item, rows in withdrawn.items()}
    if (len(found), sum(map(len, which.values()))) != (expected, judgments):
        return see_other(book_path(book, "reopen", **chosen.parameters))
    store.books.reopen(book.id, which, caller.account.id, reason)
    return see_other(book_path(book), done="reopened")


@router.get("/books/{book}/settings")
def settings_page(request: Request, caller: Lead) -> HTMLResponse:
    """Show guidelines, members, links."""
    return _settings(request, caller)


def _settings(
    request: Request, caller: Caller, *, made: str = "", status: int = 200, problem: str = ""
) -> HTMLResponse:
    store, book = request.app.state.store, book_of(caller)
    members = store.people.members(book.id)
    inside = {member.account.id for member in members}
    others = [each for each in store.people.raters() if each.id not in inside]
    return book_page(
        request,
        "settings.html",
        caller,
        http_status=status,
        problem=problem,
        made=made,
        days=LINK_DAYS,
        versions=store.books.guidelines(book.id),
        members=members,
        others=others,
        links=store.people.links(book.id),
    )


@router.post("/books/{book}/guideline")
def set_guideline(
    request: Request, caller: Lead, text: Annotated[str, Form(min_length=1, max_length=100_000)]
) -> Response:
    """Make a new version of the guidelines."""
    book = book_of(caller)
    request.app.state.store.books.set_guideline(book.id, text.replace("\r\n", "\n"), caller.account.id)
    return see_other(book_path(book, "settings"), done="saved")


@router.post("/books/{book}/state")
def set_state(request: Request, caller: Lead, state: Annotated[BookState, Form()]) -> Response:
    """Open or close the book."""
    book, books = book_of(caller), request.app.state.store.books
    (books.open if state is BookState.OPEN else books.close)(book.id)
    return see_other(book_path(book, "settings"), done="saved")


@router.post("/books/{book}/members")
def set_member(
    request: Request,
    caller: Lead,
    account: Annotated[int, Form()],
    quota: Annotated[str, Form()] = "",
    action: Annotated[str, Form(pattern="^(join|leave)$")] = "join",
) -> Response:
    """Add a rater, change the quota, or end a membership."""
    book, people = book_of(caller), request.app.state.store.people
    if action == "leave":
        people.leave(book.id, account)
    elif quota and not quota.isdecimal():
        raise UsageError(f"quota {quota}", expected="a whole number, or empty for the quota of the book")
    else:
        people.join(book.id, people.get(account).id, int(quota) if quota else None)
    return see_other(book_path(book, "settings"), done="saved")


@router.post("/books/{book}/links")
def add_link(
    request: Request,
    caller: Lead,
    uses: Annotated[int, Form(ge=1, le=1_000)],
    days: Annotated[int, Form(ge=1, le=365)] = LINK_DAYS,
) -> HTMLResponse:
    """Make a join link, and show it this once."""
    raw = request.app.state.store.people.add_link(book_of(caller).id, days * 86_400_000, uses)
    return _settings(request, caller, made=f"{request.app.state.options.public}/join/{raw}")


@router.post("/books/{book}/links/{link_id}/revoke")
def revoke_link(request: Request, caller: Lead, link_id: int) -> Response:
    """Delete a join link of this book."""
    book, people = book_of(caller), request.app.state.store.people
    if link_id not in {link.id for link in people.links(book.id)} or not people.revoke_link(link_id):
        raise not_found("link")
    return see_other(book_path(book, "settings"), done="revoked")


@router.get("/books/{book}/calls")
def calls(
    request: Request,
    caller: Reader,
    after: Annotated[int, Query(ge=0)] = 0,
    call: Annotated[int | None, Query()] = None,
    outcome: CallOutcome | None = None,
) -> HTMLResponse:
    """Browse the calls of models, or show one with everything that was sent and received."""
    book, store = book_of(caller), request.app.state.store
    shown = store.calls.get(call) if call is not None else None
    if call is not None and (shown is None or shown.book_id != book.id):
        raise not_found("call")
    found = () if shown else store.calls.all(book.id, outcome=outcome, after=after, limit=PAGE + 1)
    values: dict[str, Any] = {
        "names": {account.id: account.name for account in store.people.all()},
        "more": found[PAGE - 1].id if len(found) > PAGE else None,
        "outcome": outcome,
        "outcomes": ("all", *get_args(CallOutcome)),
        "rest": _json_without(shown.request, "system", "messages") if shown else "",
        "other": _json_without(shown.response, "text") if shown else "",
    }
    return book_page(request, "calls.html", caller, calls=found[:PAGE], shown=shown, **values)


def _json_without(record: Mapping[str, object], *shown: str) -> str:
    rest = {name: value for name, value in record.items() if name not in shown}
    return json.dumps(rest, indent=2, ensure_ascii=False)


@router.post("/books/{book}/freeze")
def freeze(
    request: Request,
    caller: Lead,
    *,
    partial: Annotated[bool, Form()] = False,
    pseudonyms: Annotated[bool, Form()] = False,
    without_earlier: Annotated[bool, Form()] = False,
) -> Response:
    """Make a test set of the grades, as `cranfield book freeze` does."""
    book = book_of(caller)
    try:
        freeze_book(request, book, allow_partial=partial, pseudonyms=pseudonyms, without_earlier=without_earlier)
    except UsageError as error:
        raise with_labels(error) from None
    return see_other(book_path(book), done="frozen")


def freeze_book(
    request: Request, book: BookInfo, *, allow_partial: bool, pseudonyms: bool, without_earlier: bool
) -> FrozenInfo:
    """Freeze a book onto the test set that its pool was made over: the stored one, else the one of its file."""
    from cranfield.judging.book.freeze import freeze as frozen_book
    from cranfield.judging.book.freeze import record_frozen
    from cranfield.judging.book.grades import contents_of
    from cranfield.judging.book.onto import onto_earlier
    from cranfield.judging.use_cases import earlier_set

    store, service = request.app.state.store, request.app.state.service
    contents = contents_of(store, book.id)
    earlier, digest = None, str(book.source.get("testset_digest") or "")
    if not without_earlier:
        earlier = service.testsets.latest_of(digest) if service is not None and digest else None
        earlier = earlier or earlier_set(book.source)
    today = day_of(store.clock())
    made = frozen_book(contents, today=today, allow_partial=allow_partial, pseudonyms=pseudonyms)
    made = onto_earlier(contents, made, earlier, today, without_earlier=without_earlier)
    return record_frozen(store, contents, made)


def with_labels(error: UsageError) -> UsageError:
    """The error with the labels of the page in the place of parameters."""
    boxes = {
        "allow_partial": "the box “include partly graded and undecided items”",
        "without_earlier": "the box “without the earlier judgments”",
        "onto": "`cranfield book freeze BOOK --onto SET --out FILE`",
    }
    return UsageError(
        [
            replace(each, hint=each.hint_sentence(lambda name, _: boxes.get(name, name)) or None)
            for each in error.problems
        ]
    )


@router.get("/books/{book}/frozen/{number}")
def frozen(request: Request, caller: Reader, number: int) -> Response:
    """Give a frozen version as a file."""
    from cranfield.judging.book.freeze import frozen_text

    book = book_of(caller)
    text = frozen_text(request.app.state.store, book.id, number)
    name = f"{segment(book.name)}-{number}.yaml"
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return Response(text, media_type="application/yaml", headers=headers)
