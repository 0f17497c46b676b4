"""Items as the judging page gets them: the text and the rater's own judgment; never ranks, systems, or grades of others."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self
from urllib.parse import quote

from fastapi.responses import Response
from markupsafe import Markup, escape
from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from cranfield.books.settings import Mode
from cranfield.books.store.schema import Action
from cranfield.judging.documents.values import DocumentFailureKind
from cranfield.workbench.server.documents import RenderedDocument, highlight, rendered
from cranfield.workbench.server.http_errors import not_found

if TYPE_CHECKING:
    from cranfield.books.store.accounts import AccountInfo
    from cranfield.books.store.store import Store
    from cranfield.books.store.values import Assignment, BookInfo, Json, RatingRow
    from cranfield.judging.documents.texts import DocumentTexts


TEXTS_S = 2.0
"""Longest wait for the texts of a request; the page asks for those that are late one at a time."""
READERS = 3
"""Texts of a request that are read at a time."""
SNIPPET_CHARS = 300
"""Characters of a result in a list of two that are compared."""
CHOICES = {"tie": 0, "left": 1, "right": 2}
"""Grades of preferences, where list `a` is on the left."""


class ShownDocument(NamedTuple):
    """A document to render."""

    doc_id: str
    fields: Json
    terms: str
    """Text of the query."""


@dataclass(slots=True)
class Work:
    """Documents that threads render, each at most once."""

    todo: list[tuple[int, ShownDocument]]
    done: dict[int, RenderedDocument] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, texts: DocumentTexts) -> None:
        """Render until nothing is left."""
        while True:
            with self.lock:
                if not self.todo:
                    return
                place, shown = self.todo.pop(0)
            self.done[place] = rendered(texts.get(shown.doc_id, shown.fields), shown.terms)


def render_all(texts: DocumentTexts, documents: Sequence[ShownDocument], seconds: float) -> dict[int, RenderedDocument]:
    """Place to document, for those that were rendered in time; the others go on in the background, into the cache."""
    work = Work(list(enumerate(documents)))
    threads = [
        threading.Thread(target=work.run, args=(texts,), daemon=True) for _ in range(min(READERS, len(documents)))
    ]
    until = monotonic() + seconds
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - monotonic()))
    late = DocumentFailureKind.BUSY
    return {place: found for place, found in dict(work.done).items() if found.problem_kind != late}


def choice_to_grade(choice: str, *, swapped: bool) -> int:
    """The grade of a preference: 1 where list `a` is better, 2 where `b` is, 0 for a tie."""
    grade = CHOICES[choice]
    return 3 - grade if swapped and grade else grade


def grade_to_choice(grade: float, *, swapped: bool) -> str:
    """The side that a preference names."""
    place = 3 - int(grade) if swapped and grade else int(grade)
    return next(choice for choice, value in CHOICES.items() if value == place)


def cards(
    texts: DocumentTexts,
    book: BookInfo,
    items: Sequence[Assignment],
    judged: Sequence[RatingRow] = (),
    seconds: float = TEXTS_S,
) -> list[dict[str, object]]:
    """Items for the page, in their order.

    Args:
        texts: reads documents.
        book: their book.
        items: what the rater holds, or has judged.
        judged: where the rater stands with the items that have been judged.
        seconds: longest wait for texts.
    """
    mine = {row.item_id: row for row in judged}
    parts = [_documents(book, item) for item in items]
    found = render_all(texts, [shown for of_item in parts for shown in of_item], seconds)
    made, first = [], 0
    for item, shown_of in zip(items, parts, strict=True):
        rendered = [found.get(first + place) for place in range(len(shown_of))]
        first += len(shown_of)
        card = _card(item) | _own(item, mine.get(item.item_id), book.settings.mode)
        made.append(card | (_lists(item, rendered) if _is_pair(book) else _document(book, item, rendered[0])))
    return made


def _is_pair(book: BookInfo) -> bool:
    return book.settings.mode is Mode.PREFERENCE


def pair(item: Assignment) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The left and the right list, as records with `doc` and fields."""
    lists = [[each for each in _as_list(item.fields.get(name)) if isinstance(each, dict)] for name in ("a", "b")]
    return (lists[1], lists[0]) if item.swapped else (lists[0], lists[1])


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _documents(book: BookInfo, item: Assignment) -> list[ShownDocument]:
    if not _is_pair(book):
        return [ShownDocument(item.doc, item.fields, item.query_text)]
    results = [dict(each) for side in pair(item) for each in side]
    return [ShownDocument(str(each.pop("doc", "")), each, item.query_text) for each in results]


def _card(item: Assignment) -> dict[str, object]:
    query = {
        "id": item.query_id,
        "name": item.query,
        "text": item.query_text,
        "need": item.need,
        "notes": item.notes,
        "number": item.query_number,
        "of": item.n_queries,
    }
    return {
        "item": item.item_id,
        "query": query,
        "number": item.number,
        "of": item.n_of_query,
        "doc": item.doc,
        "flagged": item.flagged,
    }


def _own(item: Assignment, row: RatingRow | None, mode: Mode) -> dict[str, object]:
    if row is None:
        return {"mine": None, "reason": ""}
    grade: object = None
    if row.grade is not None:
        grade = grade_to_choice(row.grade, swapped=item.swapped) if mode is Mode.PREFERENCE else row.grade
    action = Action.GRADE if row.action is Action.CARRY else row.action
    return {"mine": {"action": action, "grade": grade, "skip_reason": row.skip_reason}, "reason": row.reason}


def _document(book: BookInfo, item: Assignment, rendered: RenderedDocument | None) -> dict[str, object]:
    if rendered is None:
        empty = {"html": "", "open_url": None, "digest": None, "problem": None, "without_text": False}
        return {"title": item.doc, "pending": True, **empty}
    image = Markup("")
    if rendered.has_image:
        image = Markup('<p class="image"><img src="{}" alt="{}"></p>').format(
            image_path(book, item.item_id), f"Image of {rendered.title}"
        )
    return {
        "title": rendered.title,
        "html": image + rendered.html,
        "open_url": rendered.open_url,
        "digest": rendered.digest or None,
        "problem": rendered.problem,
        "pending": False,
        "without_text": not (rendered.problem or rendered.has_image or rendered.document.has_text),
    }


def image_path(book: BookInfo, item_id: int) -> str:
    """Where the image of an item is."""
    return f"/api/books/{quote(book.name, safe='')}/items/{item_id}/image"


def note_text(store: Store, item_id: int, before: str | None, now: object) -> None:
    """Note that an item has another text than the one that was shown before: judgments of that one become stale."""
    if now and before is not None and now != before:
        store.books.set_digest(item_id, str(now))


def image_response(texts: DocumentTexts, doc_id: str, fields: Json) -> Response:
    """The image of a document, with a policy of its own."""
    image = texts.image(doc_id, fields)
    if image.problem is not None:
        raise not_found("image")
    headers = {
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "Cache-Control": "private, max-age=600",
    }
    return Response(image.data, media_type=image.content_type, headers=headers)


def _lists(item: Assignment, rendered: Sequence[RenderedDocument | None]) -> dict[str, object]:
    def result(found: RenderedDocument | None, record: dict[str, object]) -> Markup:
        if found is None:
            return Markup("<li><h4>{}</h4></li>").format(str(record.get("title") or record.get("doc", "")))
        text = " ".join(found.document.text.split())
        cut = text[:SNIPPET_CHARS] + (" …" if len(text) > SNIPPET_CHARS else "")
        marked = highlight(escape(cut), item.query_text)
        return Markup("<li><h4>{}</h4><p>{}</p></li>").format(found.title, found.problem or marked)

    sides, place = [], 0
    for side in pair(item):
        rows = [result(found, record) for found, record in zip(rendered[place : place + len(side)], side, strict=True)]
        place += len(side)
        sides.append(Markup("<ol>{}</ol>").format(Markup("").join(rows)) if rows else Markup("<p>No result.</p>"))
    late = any(found is None for found in rendered)
    return {
        "title": "Which list is better?",
        "doc": "",
        "sides": sides,
        "open_url": None,
        "digest": None,
        "problem": None,
        "pending": late,
        "without_text": False,
    }


@dataclass(frozen=True, slots=True)
class KeyAction:
    """An action of the page and the key that starts it."""

    name: str
    key: str
    """A character can be changed by the rater; a named key as `ArrowLeft` cannot."""
    about: str
    other: str = ""
    """A named key that does the same."""
    repeats: bool = False
    """Whether it goes on while the key is down."""
    mode: Mode | None = None
    """None: in both modes."""


SYMBOLS = {"ArrowLeft": "←", "ArrowRight": "→", "ArrowDown": "↓"}
"""Named keys as they are shown."""
ACTIONS = (
    KeyAction("left", "ArrowLeft", "the left list is better", mode=Mode.PREFERENCE),
    KeyAction("right", "ArrowRight", "the right list is better", mode=Mode.PREFERENCE),
    KeyAction("tie", "ArrowDown", "tie: neither list is better", mode=Mode.PREFERENCE),
    KeyAction("next", "j", "next item, without grading", "ArrowRight", repeats=True),
    KeyAction("previous", "k", "previous item, without grading", "ArrowLeft", repeats=True),
    KeyAction("undo", "u", "undo"),
    KeyAction("skip", "s", "skip with a reason: 1 to 4"),
    KeyAction("later", "l", "judge later"),
    KeyAction("reason", "r", "write a reason; Enter or Esc leaves the field"),
    KeyAction("flag", "f", "flag, or remove the flag"),
    KeyAction("next_query", "n", "next query"),
    KeyAction("guidelines", "g", "show or hide the guidelines"),
    KeyAction("highlight", "h", "highlight the words of the query, or not"),
    KeyAction("layout", "v", "all documents of the query, or one at a time", mode=Mode.GRADE),
    KeyAction("open", "o", "open the source of the document", mode=Mode.GRADE),
    KeyAction("rest", "a", "give the rest of the query the lowest grade", mode=Mode.GRADE),
    KeyAction("add", "d", "add a document that no system returned", mode=Mode.GRADE),
    KeyAction("help", "?", "show the keys, and change them"),
)
"""In the order of the help."""


def key_actions(mode: Mode) -> list[dict[str, object]]:
    """The actions of a mode, for the page. With the arrows, two lists are chosen between; otherwise they move."""
    found = [action for action in ACTIONS if action.mode in {None, mode}]
    taken = {action.key for action in found}
    return [
        asdict(action)
        | {
            "other": "" if action.other in taken else action.other,
            "symbol": SYMBOLS.get(action.key, action.key.upper()),
            "other_symbol": "" if action.other in taken else SYMBOLS.get(action.other, action.other),
        }
        for action in found
    ]


OneKey = Annotated[str, StringConstraints(max_length=1, to_lower=True)]


class PageSettings(BaseModel):
    """Settings of a rater: keys and display."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = True
    """Whether single keys do anything (WCAG 2.1.4)."""
    keys: dict[str, OneKey] = {}
    """Action to key, where it is another than the table's; empty: no key."""
    highlight: bool = True
    layout: Literal["card", "list"] = "card"

    @classmethod
    def of(cls, account: AccountInfo) -> Self:
        """What an account has stored."""
        return cls.model_validate(account.settings.get("judging", {}))

    @model_validator(mode="after")
    def _checked(self) -> Self:
        if unknown := self.keys.keys() - {action.name for action in ACTIONS}:
            raise ValueError(f"unknown action {min(unknown)!r}")
        for mode in Mode:
            used = Counter(self.keys.get(action.name, action.key) for action in ACTIONS if action.mode in {None, mode})
            twice = [key for key, times in used.items() if key and times > 1]
            if twice:
                raise ValueError(f"two actions use the key {twice[0]!r}")
        digits = [key for key in self.keys.values() if key.isdigit()]
        if digits:
            raise ValueError(f"{digits[0]!r} is a grade")
        return self
