"""The judging page and its JSON: items to judge, judgments in batches, reveal, added documents, the rater's settings.

What a rater gets before grading holds no rank, score, system, stratum, origin, or grade of others.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from cranfield.base.errors import CranfieldError, UnknownNameError, UsageError
from cranfield.books.settings import BookSettings, Mode
from cranfield.books.store.books import plan_wanted
from cranfield.books.store.schema import Action, BookState, Origin, RaterKind, SkipReason
from cranfield.books.store.values import Assignment, BookInfo, ItemView, RatingRow, SaveRequest
from cranfield.workbench.server.access import Access, Caller, Require, require
from cranfield.workbench.server.books import book_of, book_path
from cranfield.workbench.server.documents import guideline_html, unfit_texts
from cranfield.workbench.server.error_handlers import database_problem
from cranfield.workbench.server.http_errors import NO_ANSWER, RefusedRequestError, not_found
from cranfield.workbench.server.judging_cards import (
    TEXTS_S,
    PageSettings,
    cards,
    choice_to_grade,
    image_response,
    key_actions,
    note_text,
)
from cranfield.workbench.server.pages import render_page, see_other

if TYPE_CHECKING:
    from cranfield.books.store.store import Store
    from cranfield.judging.documents.texts import DocumentTexts

LOG = logging.getLogger("cranfield.workbench.server")
MAX_ITEMS = 50
MAX_ENTRIES = 200
MAX_RECENT = 50
MAX_DIGITS = 19
"""Limit on the digits of an id: longer numbers are none."""
WAIT_S = 60.0
"""Longest wait for one text."""
SKIPS = {
    SkipReason.UNCLEAR_QUERY: "The query is unclear",
    SkipReason.UNCLEAR_DOCUMENT: "The document is unclear",
    SkipReason.BROKEN: "The document is missing or broken",
    SkipReason.EXPERT: "It needs an expert",
}
"""In the order of the keys 1 to 4."""
PREFERENCES = (("left", "Left is better"), ("tie", "Tie"), ("right", "Right is better"))

router = APIRouter()
pages_of_book = APIRouter(prefix="/books/{book}")
book_api = APIRouter(prefix="/api/books/{book}")
Judge = Annotated[Caller, Depends(require("judge"))]
BatchJudge = Annotated[Caller, Depends(Require(Access.JUDGE, checks_texts=False))]


class Entry(BaseModel):
    """A judgment from the outbox of a page."""

    model_config = ConfigDict(extra="ignore")

    key: Annotated[str, StringConstraints(min_length=1, max_length=80)]
    item: Annotated[int, Field(ge=0, lt=2**63)]
    action: Literal["grade", "skip", "later", "flag", "unflag", "undo"]
    grade: float | None = None
    choice: Literal["left", "right", "tie"] | None = None
    skip_reason: SkipReason | None = None
    reason: Annotated[str, StringConstraints(max_length=10_000)] = ""
    duration_ms: Annotated[int, Field(ge=0, le=10**12)] | None = None
    order_seen: Annotated[int, Field(ge=1, le=10**9)] | None = None
    guideline_version: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    method: Literal["key", "click", "api"] = "api"
    doc_digest: Annotated[str, StringConstraints(max_length=80)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _refuse_unfit(cls, sent: object) -> object:
        for unfit in unfit_texts([((), sent)]):
            raise ValueError(".".join(map(str, unfit["loc"])) + f": {unfit['msg']}")
        return sent


class Batch(BaseModel):
    """Judgments; each has its own result in the response."""

    entries: Annotated[list[dict[str, object]], Field(max_length=MAX_ENTRIES)]
    book: str | None = None
    """Book of the page: another database may have a book of the same name at the same address."""
    account: int | None = None


class NewDocument(BaseModel):
    """A document that no system returned."""

    query: str
    doc: Annotated[str, StringConstraints(min_length=1, max_length=2000, strip_whitespace=True)]
    title: Annotated[str, StringConstraints(max_length=2000)] = ""
    text: Annotated[str, StringConstraints(max_length=200_000)] = ""
    url: Annotated[str, StringConstraints(max_length=2000)] = ""


def store_of(request: Request) -> Store:
    """The store of the server."""
    store: Store = request.app.state.store
    return store


def texts_of(request: Request) -> DocumentTexts:
    """The texts of the server."""
    texts: DocumentTexts = request.app.state.texts
    return texts


def book_uid(book: BookInfo) -> str:
    """Distinguishes books of different databases with one name."""
    return sha256(f"{book.id} {book.name} {book.created_at}".encode()).hexdigest()[:16]


@pages_of_book.get("/judge")
def judge_page(request: Request, caller: Judge) -> Response:
    """The page; its items are fetched by its script."""
    book = book_of(caller)
    if caller.scope is not None:
        raise RefusedRequestError(403, "an API token cannot open pages", hint="sign in with a browser", code="scope")
    store, settings = store_of(request), book.settings
    if settings.mode is Mode.REVIEW:
        return see_other(book_path(book, "review"))
    if not store.people.is_member(book.id, caller.account.id):
        store.people.join(book.id, caller.account.id)
    graded = settings.mode is Mode.GRADE
    choices = (
        [
            {"value": level.grade, "label": level.label, "description": level.description}
            for level in settings.scale.levels
        ]
        if graded
        else [{"value": value, "label": label, "description": ""} for value, label in PREFERENCES]
    )
    actions = key_actions(settings.mode)
    page = {
        "book": book.name,
        "uid": book_uid(book),
        "account": caller.account.id,
        "csrf": caller.csrf,
        "mode": settings.mode,
        "closed": book.state != BookState.OPEN,
        "choices": choices,
        "skips": [{"value": reason, "label": label} for reason, label in SKIPS.items()],
        "actions": actions,
        "guideline": {"version": book.guideline_version},
        "lease_ms": 1000 * settings.lease_seconds,
        "reveal": settings.reveal == "after" and graded,
        "settings": PageSettings.of(caller.account).model_dump(),
    }
    return render_page(
        request,
        "judge.html",
        caller,
        book=book,
        choices=choices,
        scale=settings.scale.levels if graded else (),
        skips=page["skips"],
        actions=actions,
        guideline=guideline_html(book),
        page_json=json.dumps(page),
    )


@book_api.get("/next")
def next_items(
    request: Request,
    caller: Judge,
    n: Annotated[int, Query(ge=0, le=MAX_ITEMS)] = 5,
    holding: Annotated[str, Query(max_length=20_000, pattern=r"^[0-9, ]*$")] = "",
    recent: Annotated[int, Query(ge=0, le=MAX_RECENT)] = 0,
) -> dict[str, object]:
    """The next items of this rater, with their texts; those that the rater judged last, oldest first; the progress."""
    store, book, rater = store_of(request), book_of(caller), caller.account.id
    fetched = {int(each) for each in holding.replace(",", " ").split() if len(each) < MAX_DIGITS}
    if not n:
        store.queue.renew(book.id, rater)
    given = store.queue.next_items(book.id, rater, n, holding=fetched) if n else ()
    rows = store.reading.recent(book.id, rater, recent)[::-1] if recent else ()
    judged = [store.queue.own(book.id, rater, row.item_id) for row in rows]
    return {
        "ok": True,
        "items": _cards(request, book, given),
        "recent": _cards(request, book, judged, rows),
        "progress": progress(store, book, rater),
        "guideline": book.guideline_version,
    }


def _cards(
    request: Request,
    book: BookInfo,
    items: Sequence[Assignment],
    judged: Sequence[RatingRow] = (),
    seconds: float = TEXTS_S,
) -> list[dict[str, object]]:
    made = cards(texts_of(request), book, items, judged, seconds)
    for item, card in zip(items, made, strict=True):
        note_text(store_of(request), item.item_id, item.doc_digest, card["digest"])
    return made


def progress(store: Store, book: BookInfo, account_id: int) -> dict[str, object]:
    """How far a rater is."""
    found = store.reading.progress(book.id, account_id)
    counts = ("n_done", "n_left", "n_skipped", "n_later", "n_seen", "n_leased")
    names = (*counts, "median_ms", "seconds_left", "leased_until")
    return {name: getattr(found, name) for name in names}


@book_api.get("/items/{item}")
def one_item(request: Request, caller: Judge, item: int) -> dict[str, object]:
    """An item with its text, within the time limit of its source."""
    book = book_of(caller)
    found = store_of(request).queue.own(book.id, caller.account.id, item)
    return {"ok": True, "item": _cards(request, book, [found], seconds=WAIT_S)[0]}


@book_api.get("/items/{item}/image")
def item_image(request: Request, caller: Judge, item: int) -> Response:
    """The image of an item."""
    book = book_of(caller)
    found = store_of(request).queue.own(book.id, caller.account.id, item)
    return image_response(texts_of(request), found.doc, found.fields)


@book_api.post("/judgments")
def save_judgments(request: Request, caller: BatchJudge, batch: Batch) -> dict[str, object]:
    """Save judgments. Judgments with `retry` must be sent again; later judgments of the same item are not saved before them."""
    store, book = store_of(request), book_of(caller)
    if batch.book not in {None, book_uid(book)} or batch.account not in {None, caller.account.id}:
        raise RefusedRequestError(409, "this page belongs to another book or account: reload it", code="other_book")
    results, waiting = [], set[str]()
    for entry in batch.entries:
        item = str(entry.get("item"))
        if item in waiting:
            result: dict[str, object] = {
                "ok": False,
                "retry": True,
                "error": "an earlier judgment of the item is not saved yet",
            }
        else:
            result = _save(store, book, caller, entry)
        if result.get("retry"):
            waiting.add(item)
        key = entry.get("key")
        results.append({"key": None if [*unfit_texts([((), key)])] else key, **result})
    return {"ok": True, "results": results}


def _save(store: Store, book: BookInfo, caller: Caller, sent: dict[str, object]) -> dict[str, object]:
    try:
        entry = Entry.model_validate(sent)
        saved = store.log.save(_save_request(store, book, caller, entry))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "entry"
        return {"ok": False, "retry": False, "error": f"{place}: {first['msg']}", "code": "invalid"}
    except CranfieldError as error:
        return {"ok": False, "retry": False, "error": error.problems[0].sentence(), "code": type(error).__name__}
    except NO_ANSWER as error:
        return {"ok": False, "retry": True, "error": database_problem(error), "code": "database"}
    except Exception:  # a bug: the page keeps the judgment, and the log has the reason
        LOG.exception("a judgment was not saved")
        return {"ok": False, "retry": True, "error": "the server could not save it", "code": "internal"}
    # Nothing else: what becomes of an item tells what others gave it, and whether its grade is known.
    return {"ok": True, "duplicate": saved.duplicate}


def _save_request(store: Store, book: BookInfo, caller: Caller, entry: Entry) -> SaveRequest:
    grade = entry.grade
    if entry.choice is not None and book.settings.mode is Mode.PREFERENCE:
        item = store.queue.own(book.id, caller.account.id, entry.item)
        grade = choice_to_grade(entry.choice, swapped=item.swapped)
    return SaveRequest(
        book_id=book.id,
        item_id=entry.item,
        account_id=caller.account.id,
        action=Action(entry.action),
        client_key=entry.key,
        grade=grade,
        skip_reason=entry.skip_reason,
        reason=entry.reason,
        duration_ms=entry.duration_ms,
        order_seen=entry.order_seen,
        guideline_version=entry.guideline_version,
        method=entry.method,
        given=True,
        doc_digest=entry.doc_digest,
    )


@book_api.get("/progress")
def own_progress(request: Request, caller: Judge) -> dict[str, object]:
    """Progress of this rater."""
    return {"ok": True, "progress": progress(store_of(request), book_of(caller), caller.account.id)}


@book_api.get("/guidelines")
def guidelines(request: Request, caller: Judge) -> dict[str, object]:
    """All versions of the guidelines; the last holds."""
    found = store_of(request).books.guidelines(book_of(caller).id)
    return {"ok": True, "guidelines": [{"version": each.version, "text": each.text} for each in found]}


@book_api.get("/reveal")
def reveal(request: Request, caller: Judge, query: int) -> dict[str, object]:
    """Ranks and grades of the documents of a query that this rater has graded, without calibration items.

    Calibration items outside the pool have no ranks, so a book with such items shows no ranks.
    """
    store, book, rater = store_of(request), book_of(caller), caller.account.id
    name = next((each.name for each in store.reading.queries(book.id) if each.id == query), None)
    if name is None:
        raise not_found("query")
    if book.settings.reveal != "after":
        raise RefusedRequestError(403, "this book does not show ranks and grades to raters", code="blind")
    everything = store.reading.items(book.id)
    of_query = [item.id for item in everything if item.query == name]
    items = store.reading.reveal(of_query, rater)
    is_bare = any(item.origin is Origin.CALIBRATION for item in everything)
    runs = [] if is_bare else sorted({run for item in items for run in item.runs})
    columns = ["Document", "You", *runs, "Other persons", "Models", "Final"]
    return {"ok": True, "columns": columns, "rows": [_revealed(book.settings, item, runs, rater) for item in items]}


def _revealed(settings: BookSettings, item: ItemView, runs: list[str], account_id: int) -> list[str]:
    def grades(*kinds: RaterKind, own: bool = False, most: int | None = None) -> str:
        found = [each.grade for each in item.ratings if each.kind in kinds and (each.account_id == account_id) is own]
        return ", ".join(f"{grade:g}" for grade in sorted([grade for grade in found if grade is not None][:most]))

    # Every rater judges a calibration item: of each item, as many grades are shown as it has raters by the plan.
    others = (item.wanted or plan_wanted(settings, item.query, item.doc)) - 1
    return [
        str(item.fields.get("title") or item.doc),
        grades(RaterKind.PERSON, own=True),
        *(f"rank {item.runs[run]}" if run in item.runs else "–" for run in runs),
        grades(RaterKind.PERSON, most=others) or "–",
        grades(RaterKind.MODEL) or "–",
        "–" if item.final is None else f"{item.final:g}",
    ]


@book_api.post("/documents")
def add_document(request: Request, caller: Judge, document: NewDocument) -> dict[str, object]:
    """Add a document that no system returned, for every rater of the query."""
    store, book, rater = store_of(request), book_of(caller), caller.account.id
    if book.settings.mode is Mode.PREFERENCE:
        raise RefusedRequestError(422, "a preference book contains lists, not documents", code="mode")
    fields = document.model_dump(include={"title", "text", "url"})
    item_id = store.books.add_item(
        book.id, document.query, document.doc, {name: value for name, value in fields.items() if value}, rater
    )
    try:
        added = store.queue.own(book.id, rater, item_id)
    except UnknownNameError:
        hint = "its raters get it in the normal order"
        raise UsageError("the book already contains this document for the query", path="doc", hint=hint) from None
    return {"ok": True, "item": _cards(request, book, [added])[0]}


@router.put("/api/me/settings")
def save_settings(
    request: Request, caller: Annotated[Caller, Depends(require("account"))], settings: PageSettings
) -> dict[str, object]:
    """Keys and display of the page, for this account."""
    kept = {**caller.account.settings, "judging": settings.model_dump()}
    store_of(request).people.set_settings(caller.account.id, kept)
    return {"ok": True}


router.include_router(pages_of_book)
router.include_router(book_api)
